# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 00 · Find your way
#
# **15 minutes** for you; for the machine, {{machine time}}.
#
# **You will do** three things: train a real pipeline of four stages, look at where its time went,
# and train one that does not wait.
#
# **You will learn** the words of this course, how to read operations and a Gantt chart, and how
# exercises work here.
#
# **You need** to have trained a neural network once: minibatch, loss, gradient, learning rate.
# Nothing about pipelines, and no GPU.
#
# Shift+Enter runs a cell. You cannot break anything: *Restart Kernel and Run All Cells* always
# reaches the end, solved or not.

# %%
import torch

import pipemare_edu as pm
from pipemare_edu import figures, lessons, panels, tasks
from pipemare_edu.lessons import check, doctor, hint, predict
from pipemare_edu.models.mlp import mlp
from pipemare_edu.tasks.task import Shuffled

doctor()

# %% [markdown]
# If anything were missing, it would say what to do. `doctor(details=True)` lists versions, cores
# and memory.
#
# ## The course in one minute
#
# When a network is too large for one device, a *pipeline* cuts its layers into *stages*, each on a
# device of its own, and sends every minibatch through in parts, *microbatches*, so that several
# stages can work at once. A stage knows three kinds of *operation*:
#
# | | operation | what happens |
# |---|---|---|
# | `F2` | forward of microbatch 2 | compute the layers, send the output to the next stage |
# | `B2` | backward of microbatch 2 | add to the gradients, send one to the stage before |
# | `U0` | update 0 | one optimizer step, when all gradients of minibatch 0 are there |
#
# A *synchronous* pipeline finishes one minibatch before it begins the next: exact, but devices
# stand idle. An *asynchronous* one goes on at once, and pays by computing with weights that have
# changed meanwhile. PipeMare is of the second kind, with three small fixes. Lesson 1 is about
# waiting, 2 and 3 about what goes wrong without it, 4 to 6 about the fixes, 7 to 9 about memory,
# results and real devices.
#
# What should run is written down as a *schedule*, one list of operations per stage:

# %%
for stage, operations in enumerate(pm.schedule("gpipe", stages=4, microbatches=4), start=1):
    print(f"stage {stage}: {operations}")

# %% [markdown]
# Four equal lists; the waiting follows from them: stage 2 cannot do `F0` before
# stage 1 has, and stage 1 cannot do `B0` before stage 2 has.
#
# **Exercise 0.1.** From its forward to its backward a microbatch is *in flight* at a stage, which
# keeps its activations. Write a list for one stage and one minibatch of three microbatches, with
# the backwards in order: 0, 1, 2. The target: at most two in flight at any time.

# %% tags=["exercise"]
# BEGIN SOLUTION
order = "F0 F1 B0 F2 B1 B2 U0"
# STUB
# order = ...  # a text such as "F0 B0 U0"
# END SOLUTION
check("0.1", order)

# %% [markdown]
# `check` looks at properties, never at wording. It says *not attempted*; *not right yet*, with the
# first property that fails; *right, but over the target* (try `"F0 F1 F2 B0 B1 B2 U0"`); or
# *right*. Each exercise has three hints; the next cell gives one more each time you run it.

# %%
hint("0.1")

# %% [markdown]
# `lessons.solution("0.1")` shows a solution. Nothing is stored or sent anywhere.
#
# ## Where does the time go?
#
# For what share of a step, in per cent, does stage 1 have nothing to do? Guess first: nobody grades
# a prediction, but it makes you look closer.

# %%
IDLE = "idle share of stage 1"
# BEGIN SOLUTION
predict(IDLE, 30)
# STUB
# predict(IDLE, ...)
# END SOLUTION

# %% [markdown]
# Now train: 1300 small images of digits, four layers, one a stage. `GPipe` is the method with the
# lists above.

# %%
digits = tasks.get("digits")


def sgd(named_parameters):
    return torch.optim.SGD(named_parameters, lr=0.2)


def train(method):
    torch.manual_seed(0)
    layers = mlp(inputs=64, width=64, outputs=10, depth=4)
    trainer = pm.Trainer(layers, digits.loss, sgd, method, stages=4, microbatches=4)
    batches = Shuffled(digits.train, batch=64, seed=0)
    steps = lessons.profile().steps("00.first")
    return trainer.fit(batches, steps, [digits.test], every=10, metrics=digits.metrics)


gpipe = train(pm.GPipe())
print(f"{gpipe.status}: {gpipe.steps} steps, measured {gpipe.seconds:.2f} s")

# %% [markdown]
# Every operation of the lists ran, and left an *event* with its times. Here is the first step.

# %%
step = lessons.excerpt(gpipe)
figures.gantt(step, measured=True)

# %% [markdown]
# One row a stage, time to the right, the microbatch's number in each bar; grey hatching is idle.
# Below: how many microbatches are in flight. Hover over a bar for its time.
#
# Here, the stages take turns on one processor; the chart places their durations as if each had a
# device of its own. And because other programs disturb measurements, a bar has the median length
# of its kind at its stage.
#
# Stages count from 1 in text and from 0 in code; microbatches and updates count from 0 in both.

# %%
share = 100 * lessons.idle_share(step, stage=0)
assert 25 < share < 75  # asserts check the course itself
print(lessons.compare(IDLE, share, "%"))
clock = pm.simulate(pm.schedule("gpipe", stages=4, microbatches=4))
print(f"if all forwards and backwards took equally long: {100 * clock.idle:.1f} %")

# %% [markdown]
# The second number is the textbook's: with $P$ stages and $N$ microbatches, $(P-1)/(N+P-1)$ of the
# time is idle, here 3/7. The measured share may differ: real stages are not equally fast, and
# updates take time too.
#
# **Exercise 0.2.** Read off the chart how long stage 4 is idle in this step, in microseconds (a
# millisecond has 1000). A tenth of the chart's length to either side is close enough. Times are
# measured anew after a restart.

# %% tags=["exercise"]
# BEGIN SOLUTION
whole = max(event.end for event in step) - min(event.start for event in step)
busy = sum(event.end - event.start for event in step if event.stage == 3)
idle_us = 1e6 * (whole - busy)
# STUB
# idle_us = ...  # a number
# END SOLUTION
check("0.2", idle_us, step)

# %% [markdown]
# ## And if nobody waits?
#
# An asynchronous pipeline sends the next minibatch in while the last is on its way. When an
# update uses a gradient, the weights that its forward read are some *updates old*. How many, at
# stage 1, on average?

# %%
AGE = "how many updates old stage 1's weights are"
# BEGIN SOLUTION
predict(AGE, 1)
# STUB
# predict(AGE, ...)
# END SOLUTION

# %% [markdown]
# The same network, data and seed, now with `PipeMare`, all three fixes off. Three steps, cut
# from the middle of the run:

# %%
pipemare = train(pm.PipeMare())
steps = lessons.excerpt(pipemare, steps=3)
assert lessons.idle_share(steps) < lessons.idle_share(step)
figures.gantt(steps, measured=True)

# %% [markdown]
# Most of the hatching is gone; what is left comes from unequal stages and the chart's two ends. Now
# the price:

# %%
formula = pm.PipeMare().taus(stages=4, microbatches=4)
lessons.draw(figures.staleness_bars(pipemare.staleness, formula), AGE)

# %% [markdown]
# This age of the weights is called *staleness*, $\tau$. It is measured: every operation notes
# which version it reads. The diamonds are a formula, $\tau_i = (2(P-i)+1)/N$ for stage $i$, which
# lesson 2 derives. Do old weights hurt?

# %%
assert min(run.metrics["accuracy"][-1][1] for run in (gpipe, pipemare)) > 90
figures.curves({"GPipe": gpipe, "PipeMare without fixes": pipemare})

# %% [markdown]
# Hardly: both read over 90 % of unseen digits right. But four stages are few.
#
# ## Watch one live
#
# Many lessons have a *panel*: controls, a goal, and a pipeline that trains while you watch. This
# one has 12 layers, and $N = 1$. Press Run.

# %%
panel = panels.LiveTraining(
    method="pipemare-naive", stages=4, steps=lessons.profile().steps("00.live")
)
panel

# %% [markdown]
# (No controls above? `panels.live_training(...)` takes the same arguments and shows the same
# figures.) A cell can press Run too:

# %%
panel.run.click()
print(await panel.wait(), "- goal reached:", panel.reached())

# %% [markdown]
# Now a stage for every layer, so 12 instead of 4. Nothing else changes.

# %%
panel.controls["stages"].value = 12
panel.run.click()
print(await panel.wait(), "- diverged:", panel.result().diverged is not None)
assert panel.result().diverged
figures.curves(panel.runs)

# %% [markdown]
# The same network and learning rate, and after a few dozen steps the loss is not even a number any
# more. Why, and what to do about it, is the rest of the course.
#
# ## Take-aways
#
# * A schedule is a list of operations per stage; waiting, memory and staleness follow from it.
# * Synchronous pipelines pay in idle time, asynchronous ones in old weights.
# * $P$ stages, $N$ microbatches in a minibatch, $\tau_i$ staleness of stage $i$ in updates.
#
# ## Quiz
#
# 1. What does stage 3 of 4 wait for before `B1`?
# 2. Which stage works with the oldest weights, and why?
# 3. Eight microbatches instead of four: what becomes of 3/7?
# 4. Can two right answers to exercise 0.1 differ?
# 5. Why is a measured idle share not exactly 3/7?
#
# <details><summary>Answers</summary>
#
# 1. The gradient from `B1` of stage 4; its own `F1` was before that.
# 2. Stage 1: the way to the last stage and back is longest from there.
# 3. 3/11.
# 4. Yes: `F0 B0 F1 B1 F2 B2 U0` has all the properties too.
# 5. The stages differ in speed, and updates take time.
#
# </details>
#
# ## Not shown
#
# Stages on devices of their own (lesson 9), memory (7), why old weights can be fatal (3), and
# networks that are not tiny (8).
#
# ## Next
#
# Lesson 01, *Pipelines and bubbles*: how much idle time a schedule really costs.
