# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 09 · Real devices: processes, GPUs, several machines
#
# **45 minutes** for you; for the machine, {{machine time}}.
#
# **You will do**: run one configuration in this kernel and in two processes and look for a
# difference, predict and measure what a second worker gains, find where the rest of the time goes,
# and break a pipeline on purpose.
#
# **You will learn** what stays the same when stages move to devices of their own, what limits the
# gain, how to launch the trainer on one machine and on many, and what a failure looks like.
#
# **You need** lesson 01: GPipe, 1F1B, and balanced stages. One core is enough, and no GPU is
# needed. Windows has no worker processes: there, read this page as it stands.

# %%
import signal
import tempfile
from functools import partial

import torch

import pipemare_edu as pm
from pipemare_edu import figures, lessons, panels
from pipemare_edu.lessons import check, doctor, hint, modelled, predict
from pipemare_edu.models.away import away
from pipemare_edu.trainer.placement import Machine, place
from pipemare_edu.trainer.waiting import waiting

doctor()

# %% [markdown]
# ## One list, several engines
#
# So far every stage lived in this kernel, and the charts placed measured durations *as if* each
# had a device of its own. Now they get one. The trainer has three *engines*:
#
# * the **kernel**: all stages in this process, one after the other;
# * **worker processes**: each *worker* hosts one or several neighbouring stages, on a processor
#   core, and talks to its neighbours through torch.distributed (gloo);
# * **GPUs**: the same workers, one GPU each (NCCL).
#
# The order in which things happen in two processes is not the order in one, and changes from run
# to run. Train the same network from the same seed for 60 steps, in the kernel and in two
# processes. How many of the 60 losses will differ, be it in the last digit?

# %%
# BEGIN SOLUTION
predict("losses that differ", 0)
# STUB
# predict("losses that differ", ...)
# END SOLUTION

# %% [markdown]
# Run trains in the kernel, then on the chosen engine, and compares: the operations of every stage
# in their order, all losses, and the weights at the end, bit by bit. Try other methods, stages and
# seeds, and try to catch it at a difference.

# %%
panel = panels.EngineSwitch(steps=lessons.profile().steps("09.engines"))
panel

# %% [markdown]
# (No panel above? `panels.engine_switch("pipemare-t1t2", stages=4)` draws the same.) In a cell:

# %%
panel.run.click()
print(await panel.wait())
alike = panel.result()
assert alike.equal  # every operation, every loss, every weight, to the last bit
lessons.compare("losses that differ", alike.losses, how="counted")

# %% [markdown]
# None. Here is the second engine's chart, in model time; the kernel's, in the panel, is the same.

# %%
panel.figures["2 processes"].shown

# %% [markdown]
# Why can there be no difference? Each stage has its *list* of operations, and carries it out in
# that order whatever happens. Stages talk through links alone: first in, first out. So what a
# stage computes depends on the lists, and not on who was faster. A fast stage waits; it never does
# something else meanwhile. That also holds on GPUs, but a GPU adds numbers up in another order than
# a processor does: there the same operations give losses that agree to some digits, not to the bit.
#
# ## Who gets what?
#
# `workers="auto"` takes what there is. You need not own the machine to ask what it would get. Here
# for 12 stages with 25 million weights, on machines with eight cores:

# %%
for gpus, workers in ((0, "auto"), (1, "auto"), (4, "auto"), (2, 4)):
    print(f"{gpus} GPUs:", place(workers, "auto", 12, 25_000_000, Machine(gpus, 8, True, {})).why)

# %% [markdown]
# Two workers on one GPU are never chosen, since NCCL refuses that: too few GPUs cap the workers,
# and the run says so in `run.config["placement"]`. Small networks stay on the processor, beside a
# GPU too, where Python would take longer than the arithmetic.
#
# ## Twice the workers, twice as fast?
#
# Six equal layers, three in each stage, GPipe with $N = 4$, and a backward of twice a forward's
# time. To begin with, the layers do not compute at all: they *sleep*, as a process does that has
# handed its work to a device of its own. So two of them overlap on any machine, even on one core.
# How many times as fast are two workers as one process?

# %%
TWO = "times as fast with two workers"
# BEGIN SOLUTION
predict(TWO, 1.6)
# STUB
# predict(TWO, ...)
# END SOLUTION

# %% [markdown]
# **Exercise 9.1.** Say it for any two stages. `forward` and `backward` are lists of two: the times
# of a microbatch at stage 1 and at stage 2. Messages and updates take none. Return the time of a
# GPipe step (all N microbatches) in one process, divided by that in two workers.


# %% tags=["exercise"]
# BEGIN SOLUTION
def speed_up(forward, backward, N):
    alone = N * (sum(forward) + sum(backward))
    down = sum(forward) + (N - 1) * max(forward)
    up = sum(backward) + (N - 1) * max(backward)
    return alone / (down + up)


# STUB
# def speed_up(forward, backward, N):
#     return ...  # a number, such as 2.0
# END SOLUTION


check("9.1", speed_up)

# %% [markdown]
# The check asks the clock, on random stages; what your machine measures does not matter to it.

# %%
hint("9.1")

# %% [markdown]
# Now measure. In this panel the clock follows every control; Run trains the layers in one process,
# then in two workers.

# %%
pair = panels.TwoWorkers(steps=lessons.profile().steps("09.workers"))
pair

# %% [markdown]
# (Without widgets: `panels.two_workers("gpipe", microbatches=4)`.)

# %%
pair.run.click()
print(await pair.wait())
both = pair.result()
print(lessons.compare(TWO, both.speedup, digits=2))
print(f"your function: {lessons.use('9.1', speed_up)([3, 3], [6, 6], 4):.2f}")
lessons.draw(pair.figures["speedup"].shown, TWO)

# %% [markdown]
# Lesson 1's bubble: one part in five idle, so two workers do the work of 1.6. With more
# microbatches it tends to 2. An asynchronous schedule is there at once: choose it in the panel.
#
# ## Where is the time?
#
# A worker that does not compute either has a message on its way to it (transfer), or waits for a
# neighbour that has not sent it yet. All workers are on one clock, so the trace can tell these
# apart: `run.waiting` has the seconds for each stage.

# %%
print(f"stage 1 waits: measured {both.workers.waiting[0].wait:.2f} s of the run")
pair.figures["time"].shown

# %% [markdown]
# The clock knows nothing of messages: time in which *a message is on its way* in a measured bar is
# waiting, or nothing, in the modelled one. Give the messages more weight in the panel (1024 KiB)
# and this part grows, though not by much: between processes of one machine a message is a copy in
# memory.
#
# A trace has more in it than a bar. `run.save_trace` writes a file for
# [Perfetto](https://ui.perfetto.dev), a viewer that runs in your browser and uploads nothing: a
# process for each worker, a row for each stage, every operation with the weight version that it
# read.

# %%
path = tempfile.mkstemp("-trace.json")[1]
both.workers.save_trace(path)
print(open(path).read(88), "...")

# %% [markdown]
# ## And real work?
#
# The same six layers, now with matrix products for this machine's processor:

# %%
steps = lessons.profile().steps("09.workers")
real = panels.two_workers("async-1f1b", layers="compute", steps=2 * steps)
print(f"computing: measured {real.value.speedup:.2f} times as fast as one process")
real["time"]

# %% [markdown]
# The clock says 2. On one core you see less than 1: two workers take turns, and changing over takes
# time of its own. Yet the bars are almost all *computes*: a measured operation ends when it is
# done, and the other worker's turns in between count as its time. On two free cores it is somewhere
# between 1 and 2. Workers, the kernel that feeds them, and whatever else you run share the
# processor, and the memory's bandwidth. **A second worker pays if it brings a device of its own.**
#
# ## Balance what you have measured
#
# Now the sixth layer takes five times as long as the others. All six have the same number of
# weights, and `stages=2` splits by that count: three and three. But what a layer *costs* one can
# measure: one layer a stage, in the kernel, and of each operation the shortest time (whatever else
# runs here can only make it longer).

# %%
layers = away([1, 1, 1, 1, 1, 5], [2, 2, 2, 2, 2, 10])
loss, x = torch.nn.functional.mse_loss, torch.zeros(8, 32)
sgd = partial(torch.optim.SGD, lr=0.001)
run = pm.Trainer(layers, loss, sgd, pm.GPipe(), stages=6, microbatches=2).fit([(x, x)], 6)
took = [(e.stage, e.kind, e.end - e.start) for e in run.trace.events]
costs = [sum(min(t for i, k, t in took if (i, k) == (n, kind)) for kind in "FB") for n in range(6)]
print("a microbatch:", ", ".join(f"measured {1000 * cost:.1f} ms" for cost in costs))

# %% [markdown]
# **Exercise 9.2.** Cut layers with these costs into stages, in their order, so that the costliest
# stage is as cheap as can be. Return how many layers each stage gets.


# %% tags=["exercise"]
# BEGIN SOLUTION
from pipemare_edu.plan.split import split


def balance(costs, stages):
    return split(costs, stages)  # the trainer's own; lessons.solution("9.2") cuts by itself


# STUB
# def balance(costs, stages):
#     return ...  # such as [3, 3]
# END SOLUTION


check("9.2", balance)

# %% [markdown]
# The check tries every way to cut, on small random lists. The trainer's own planner is
# `plan.split.split`, exact for hundreds of layers too; its answer goes to a trainer as
# `stages=[5, 1]`. Your cut of the measured costs, beside three and three:

# %%
counts = list(lessons.use("9.2", balance)(costs, 2))
for first in (3, counts[0]):
    found = panels.two_workers("async-1f1b", 2, first, last=5.0, steps=steps)
    said = f"measured {found.value.speedup:.2f} times, by the clock {found.value.pair.speedup:.2f}"
    print(f"{first} + {6 - first} layers: {said}")
found["time"]

# %% [markdown]
# The same layers, the same two workers; only the cut has moved. A pipe is as fast as its slowest
# stage, asynchronous or not.
#
# ## Four devices that you do not have
#
# The clock can also stand in for a machine. Here is a trace of four devices, a stage on each, with
# messages that take time (the chart draws none), *modelled*: no process ran. The pipe runs far
# ahead, so no bubble is left, and still every device is idle part of the time. What holds it up?

# %%
clock = modelled.modelled()
trace = modelled.Events.of(clock)
figures.gantt(clock, title="Modelled: four devices, and none is always busy", span=(60, 140))

# %% [markdown]
# And where its time goes, told from the same events:

# %%
names = [f"device {i}" for i in (1, 2, 3, 4)]
figures.time_use(waiting([trace], range(4)), names=names, title="Modelled: device 3 computes most")

# %% [markdown]
# Device 3 is the busiest. Would a faster device 3 help?
#
# **Exercise 9.3.** Write `bottleneck(events)` for any such trace of four stages. It returns what
# holds up the pipe: `("stage", 3)` for the third stage, or `("link", 2)` for the link between the
# second and the third, which carries one message a direction at a time. An event has `stage`
# (counted from 0, so 2 for the third), `kind` (`"F"`, `"B"`, `"U"`), `index` (of the microbatch),
# `start` and `end`. Your answer is right if the pipe gets faster when that one thing becomes twice
# as fast.


# %% tags=["exercise"]
# BEGIN SOLUTION
def bottleneck(events):
    ends = {(e.stage, e.kind, e.index): e.end for e in events}
    microbatches = sum(e.stage == 0 and e.kind == "F" for e in events)
    needs = dict.fromkeys([("stage", i) for i in (1, 2, 3, 4)], 0.0)
    for e in events:
        needs["stage", e.stage + 1] += (e.end - e.start) / microbatches
        if e.kind == "F" and e.stage > 0:
            way = e.start - ends[e.stage - 1, "F", e.index]
            needs["link", e.stage] = min(way, needs.get(("link", e.stage), way))
    return max(needs, key=lambda thing: needs[thing])


# STUB
# def bottleneck(events):
#     return ...  # a pair such as ("stage", 3)
# END SOLUTION


check("9.3", bottleneck)

# %% [markdown]
# What your function says of the trace above, and what the clock says to twice the speed:

# %%
found = lessons.use("9.3", bottleneck)(trace)
print("it is held up by", found)
for thing in (("stage", 3), found):
    faster = modelled.SHOWN.faster(thing).interval
    print(f"{thing} twice as fast: {clock.interval:g} -> {faster:g} units a microbatch")

# %% [markdown]
# A slow link looks like waiting, everywhere. Before you buy a faster GPU, look at the message that
# it waits for.
#
# ## How it fails
#
# Things go wrong in other processes than the one you look at. A layer may raise, its process may be
# killed (by hand, or because memory ran out), or it may hang. This layer does what it is told to
# at its third microbatch, which is number 2, since microbatches count from 0:


# %%
class Moody(torch.nn.Module):
    def __init__(self, mood="calm"):
        super().__init__()
        self.w, self.mood, self.calls = torch.nn.Parameter(torch.ones(1)), mood, 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 3 and self.mood == "raise":
            raise ArithmeticError("I have had enough")
        if self.calls == 3 and self.mood == "kill":
            signal.raise_signal(signal.SIGKILL)
        if self.calls == 3 and self.mood == "hang":
            signal.pause()
        return x * self.w


# %% [markdown]
# It is defined in a cell, and travels to the workers by value. Four stages, two workers; the moody
# layer is the third stage. The error comes back to the cell:


# %%
def attempt(mood):
    layers = [Moody(), Moody(), Moody(mood), Moody()]
    trainer = pm.Trainer(layers, loss, sgd, pm.PipeMare(), stages=4, workers=2, timeout=2)
    try:
        print(mood, "->", trainer.fit([(x, x)], steps=20))
    except pm.PipelineError as error:
        print(f"{mood} -> {type(error).__name__}: {str(error).partition(';')[0]}")
        return error


raised, killed, hung = map(attempt, ("raise", "kill", "hang"))

# %% [markdown]
# The first names stage, microbatch and operation, and what the layer raised; the second the worker,
# its stages, and how it ended; the third what has not come to an end. That one was noticed after
# the two seconds that we allowed (`timeout`; 60 unless you say otherwise). And afterwards:

# %%
print(raised.run.status, "-", raised.run.note.rpartition("; ")[2])
attempt("calm")

# %% [markdown]
# The weights are what they were before, no process is left, and the next run works. If you do not
# catch the error, the traceback from inside the worker stands below it. Interrupting a cell, a
# panel's Cancel, or the end of the kernel stop workers as well. A long run wants `save_every` and
# `save_to`, so that what is lost is little: `trainer.restore` goes on from the last checkpoint, on
# any number of workers.
#
# ## Launching it
#
# From a terminal, on one machine, with workers that the command starts itself:
#
#     python -m pipemare_edu train digits --workers 2
#
# or with torchrun, the launcher that clusters know. It starts the workers, and the trainer finds
# its rank in the environment. One node:
#
#     torchrun --standalone --nproc-per-node=2 -m pipemare_edu train digits
#
# Two nodes with two workers each: the same line on both, but for `--node-rank`, which is 1 on the
# second. `HOST` is the first one's address:
#
#     torchrun --nnodes=2 --nproc-per-node=2 --node-rank=0 --master-addr=HOST --master-port=29500 \
#         -m pipemare_edu train digits --timeout 60
#
# In a script of your own, `pm.Trainer(..., workers="env")` is all that differs. If a node goes
# away, the others end within the time-out, and name the worker and its stages. Two hints: gloo
# takes the network that `GLOO_SOCKET_IFNAME` names, and where a machine's own name does not
# resolve, torchrun wants `--local-addr` as well.
#
# With GPUs, `python -m pipemare_edu bench gpu` compares them with the processor in some minutes.
#
# ## What the trainer does not do
#
# It is one idea, asynchronous pipelines, done completely. So it does not
#
# * split a *layer* over devices (tensor parallelism), or train copies of the pipe side by side
#   (data parallelism);
# * shard weights or optimizer states, or move them to the host's memory;
# * give a worker stages that are not neighbours (interleaved schedules);
# * replace a worker while it runs: a run that loses one ends, and goes on from its checkpoint;
# * autocast: it keeps cast copies of the weights, so a backward would read old ones. Use bfloat16
#   weights.
#
# The large frameworks do these things, and in them the idea is hard to see.
#
# ## Take-aways
#
# * Lists and first-in-first-out links alone decide a result. Engines change the time, not the bits
#   (on a processor).
# * A second worker gains at most all work over that of the costliest stage; bubbles, messages and
#   shared cores take from it.
# * Balance by measured cost, not by the number of weights.
# * Compute, transfer, wait: first see which, then mend.
# * A good error says what, where, and what became of the weights.
#
# ## Quiz
#
# 1. Worker 1 is much faster than worker 2. Does it compute other gradients than in the kernel?
# 2. Two equal stages, GPipe, $N = 1$: how many times as fast are two workers?
# 3. Stages cost 6, 6 and 12. What is the most that three workers can gain?
# 4. Every device waits a third of the time, and none is always busy. What do you look at?
# 5. Why is the time-out not one second?
#
# <details><summary>Answers</summary>
#
# 1. No. It runs ahead as far as its list says, then waits.
# 2. As fast as one: nothing overlaps.
# 3. Twice: 24 over 12.
# 4. The links: a message may take longer than any stage.
# 5. An honest operation may take that long, and then nobody says anything meanwhile.
#
# </details>
#
# ## Not shown
#
# Two machines at once, which this page has not; NCCL; how the links post their receives early.
#
# ## Next
#
# This is the last lesson that is written. What has happened since the paper, other optimizers,
# other schedules and a fix of your own, is to be lesson 10.
