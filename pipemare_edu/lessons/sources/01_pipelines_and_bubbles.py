# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 01 · Pipelines and bubbles
#
# **50 minutes** for you; for the machine, {{machine time}}.
#
# **You will do** four things: write the timetable of a pipeline, step through one event by event,
# turn the knobs of a schedule lab, and build a schedule that keeps within limits.
#
# **You will learn** where idle time comes from and how to count it, in both ratios that people call
# *the bubble*; what a schedule costs in memory; and what the well-known formula leaves out.
#
# **You need** lesson 00: operations, Gantt charts, `check` and `hint`.
#
# Everything in this lesson is *synchronous*: the gradients are those of ordinary training, and only
# time and memory are at stake.

# %%
import pipemare_edu as pm
from pipemare_edu import figures, lessons, panels
from pipemare_edu.lessons import check, doctor, hint, predict
from pipemare_edu.plan.clock import Event

doctor()

# %% [markdown]
# ## One microbatch at a time
#
# Take four stages, each on a device of its own, and four microbatches. The careful way is to see
# one microbatch through before the next goes in: down the stages with its forwards, up again with
# its backwards. People call it the *naive* pipeline. Every device holds a quarter of the network,
# so it fits; but how much do the devices work? Say a forward and a backward take equally
# long. For what share of the time, in per cent, is a device idle?

# %%
NAIVE = "idle share, one microbatch at a time"
# BEGIN SOLUTION
predict(NAIVE, 75)
# STUB
# predict(NAIVE, ...)
# END SOLUTION

# %% [markdown]
# Now let the *virtual clock* run the lists. It gives every operation a fixed time, here one unit
# for a forward or a backward and none for an update, and starts it as soon as its stage is free
# and its input has come.

# %%
naive = pm.simulate(pm.schedule("sequential", stages=4, microbatches=4))
figures.gantt(naive)

# %% [markdown]
# A staircase, down and up, four times over. At any time exactly one of the four stages works.

# %%
assert naive.idle == 3 / 4
lessons.compare(NAIVE, 100 * naive.idle, "%", how="counted")

# %% [markdown]
# With $P$ stages that is
#
# $$\text{idle} = \frac{P-1}{P} \qquad (1.1)$$
#
# whatever the number of microbatches. Four devices, and the speed of one. The hatched time is
# called a *bubble*.
#
# ## A timetable
#
# Why should stage 1 wait for the end of microbatch 0? It could take microbatch 1 at once. Do all
# forwards first, one close behind the other, then all backwards: that is *GPipe*, named after the
# system that made it popular.
#
# **Exercise 1.1.** Write its timetable. Time comes in slots, counted from 0; every forward and
# every backward takes one. Return a list with one triple `(slot, stage, operation)` for each F and
# B of each stage, for any numbers of stages `P` and microbatches `N`. Stages count from 1, as in
# `(0, 1, "F0")`. Leave the updates out. A microbatch's forwards go down the stages, one after the
# other, and its backwards come up. The target: as few slots as possible.


# %% tags=["exercise"]
# BEGIN SOLUTION
def timetable(P, N):
    rows = []
    for stage in range(1, P + 1):
        for m in range(N):
            rows.append((stage - 1 + m, stage, f"F{m}"))
            rows.append((N + P - 1 + P - stage + m, stage, f"B{m}"))
    return rows


# STUB
# def timetable(P, N):
#     return ...  # a list such as [(0, 1, "F0"), (1, 1, "F1"), (1, 2, "F0")]
# END SOLUTION
check("1.1", timetable)

# %% [markdown]
# The check tries small pipelines of all shapes: each operation once, nothing before what it needs,
# no two operations of a stage in one slot. Any timetable with these properties is right. Stuck?
# Each run of the next cell says a little more.

# %%
hint("1.1")

# %% [markdown]
# Here is your timetable for four stages and four microbatches, drawn.

# %%
rows = lessons.use("1.1", timetable)(4, 4)
figures.gantt([Event(i - 1, op[0], int(op[1:]), slot, slot + 1, 0) for slot, i, op in rows])

# %% [markdown]
# GPipe has two parallelograms, and the corners that they leave free are the bubble: a stage waits
# for the first input to come down, and for the first gradient to come up. In between, the stages
# work at the same time, on different microbatches.
#
# ## Event by event
#
# A chart shows when things happen. To see *why* a stage waits, look at what has reached it.
# The next panel runs operation lists one event a click. Blue squares are microbatches that a stage
# *holds*: it has run their forward and keeps what the backward will need. Triangles wait in the
# link between two stages, outputs on their way down, gradients on their way up.
#
# Use *Forward* and *Back*, or the arrow keys on the slider.

# %%
debugger = panels.StepDebugger(pm.schedule("gpipe", stages=3, microbatches=4), pause=0.1)
debugger

# %% [markdown]
# (No buttons above? `panels.step_debugger(pm.schedule("gpipe", 3, 4), event=9)` draws the same
# for any event.) Play runs the rest; a cell can do what you do, too:

# %%
debugger.go(9)
print(debugger.reading())

# %% [markdown]
# After event 9 stage 1 has run its forwards and waits for `B0`. Play on: the gradient of microbatch
# 0 comes up link by link, and each stage drops a microbatch as its backward runs.
#
# What if the lists do not fit together? Here, stage 2 would like to begin with microbatch 1.

# %%
wrong = panels.step_debugger(["F0 F1 B0 B1 U0", "F1 F0 B1 B0 U0"], event=2)
wrong

# %% [markdown]
# Links are first in, first out. Microbatch 0 stands first in line and stage 2 does not want it
# yet, so nobody can go on: a *deadlock*. The clock finds it, and names the operations that
# would wait for ever, before any training starts. You can type lists of your own into the panel.
#
# ## Memory
#
# What a stage holds is memory. With GPipe, what is the most microbatches that
# stage 1 holds, with four stages and eight microbatches?

# %%
HELD = "most microbatches that stage 1 holds"
# BEGIN SOLUTION
predict(HELD, 8)
# STUB
# predict(HELD, ...)
# END SOLUTION

# %% [markdown]
# The strip below a chart counts them, here stage upon stage, with stage 1 at the bottom.

# %%
gpipe = pm.simulate(pm.schedule("gpipe", stages=4, microbatches=8))
assert gpipe.in_flight == (8, 8, 8, 8)
print(lessons.compare(HELD, gpipe.in_flight[0], how="counted"))
figures.gantt(gpipe, memory="stages")

# %% [markdown]
# All of them, at every stage. More microbatches would shrink the bubble, and each costs memory.
# Must it be so? Stage 4 could run `B0` straight after `F0`: the loss is there. Then the gradient
# comes up early, and stage 1 can drop microbatch 0 early. *1F1B*, one forward, one backward, does
# this at every stage: a few forwards to fill the pipe, then F and B in turn, then the backwards
# that are left.
#
# **Exercise 1.2.** Write the list of one stage in 1F1B, from `F0` to `U0`. Stage `stage` (from 1)
# of `P` may have at most `P - stage + 1` microbatches in flight, and the stages together must not
# be idle longer than with GPipe. Mind that `N` may be smaller than `P`.


# %% tags=["exercise"]
# BEGIN SOLUTION
def one_f_one_b(stage, P, N):
    words, forwards = [], 0
    for m in range(N):
        while forwards < min(m + P - stage + 1, N):
            words.append(f"F{forwards}")
            forwards += 1
        words.append(f"B{m}")
    return " ".join([*words, "U0"])


# STUB
# def one_f_one_b(stage, P, N):
#     return ...  # a text such as "F0 F1 B0 B1 U0"
# END SOLUTION
check("1.2", one_f_one_b)

# %% [markdown]
# Your lists on the clock, for the same four stages and eight microbatches:

# %%
order = lessons.use("1.2", one_f_one_b)
mine = pm.simulate([order(stage, 4, 8) for stage in (1, 2, 3, 4)])
assert max(mine.in_flight) <= 4 and mine.makespan == gpipe.makespan
figures.gantt(mine, memory="stages")

# %% [markdown]
# The chart is as long as before. But stage $i$ holds at most $P-i+1$ microbatches, however many
# there are. 1F1B does not shrink the bubble; it makes more microbatches affordable.
#
# ## The schedule lab
#
# Time to turn knobs. The chart, the counted idle fraction and the formula follow every control.

# %%
lab = panels.ScheduleLab(steps=lessons.profile().steps("01.measure"))
lab

# %% [markdown]
# (Without widgets: `panels.schedule_lab(schedule="1f1b", stages=6, microbatches=8)`.) Move the
# microbatches and watch the length of the chart. Each stage is busy for $N$ forwards and $N$
# backwards and idle for $P-1$ of each, so of all its time
#
# $$\text{idle fraction} = \frac{P-1}{N+P-1} \qquad (1.2)$$
#
# is idle. Let us try that on many pipelines.

# %%
for kind in ("gpipe", "1f1b"):
    for P, N in ((2, 3), (4, 8), (5, 2), (8, 32)):
        idle = pm.simulate(pm.schedule(kind, stages=P, microbatches=N)).idle
        assert abs(idle - (P - 1) / (N + P - 1)) < 1e-9
print("formula and count agree on every one")

# %% [markdown]
# **Exercise 1.3.** With $P=4$, what is the smallest number of microbatches for which at most 10 %
# of the time is idle?

# %% tags=["exercise"]
# BEGIN SOLUTION
smallest = 27
# STUB
# smallest = ...  # a whole number
# END SOLUTION
check("1.3", smallest)

# %% [markdown]
# ## Which ratio?
#
# Papers quote two different numbers. Equation 1.2 divides idle time by *all* time. Others divide it
# by *working* time, the time that a perfect pipeline would take:
#
# $$\text{overhead} = \frac{P-1}{N} \qquad (1.3)$$
#
# Both are called the bubble, and the overhead is always the larger. The last figure of the lab
# has both; here it is by the plain call.

# %%
panels.schedule_lab("gpipe", stages=4, microbatches=8, steps=0)["ratios"]

# %% [markdown]
# At $P=4$ and $N=3$ the idle fraction is one half and the overhead 100 %: the step takes twice as
# long as it need. To say how well devices are used, give the first; to compare step times, the
# second.
#
# **Exercise 1.4.** A colleague reports a bubble of 37.5 % for $P=4$, $N=8$, and means the overhead.
# What is the idle fraction? Give a number between 0 and 1.

# %% tags=["exercise"]
# BEGIN SOLUTION
idle = 3 / 11
# STUB
# idle = ...  # a number, such as 1 / 2
# END SOLUTION
check("1.4", idle)

# %% [markdown]
# ## What the formula leaves out
#
# First: backwards take longer than forwards, often twice as long, because they
# compute two gradients, of the weights and of the input. Say three times. What does the idle
# fraction of GPipe with $P=4$ and $N=8$ become, in per cent? With equal times it was 3/11, or 27.3.

# %%
SLOW = "idle fraction with backwards three times as long"
# BEGIN SOLUTION
predict(SLOW, 27)
# STUB
# predict(SLOW, ...)
# END SOLUTION

# %% [markdown]
# Change the knob *B / F time* in the lab and see, or count:

# %%
shape = pm.schedule("gpipe", stages=4, microbatches=8)
stretched = pm.simulate(shape, forward=1, backward=3)
assert abs(stretched.idle - 3 / 11) < 1e-9
print(lessons.compare(SLOW, 100 * stretched.idle, "%", 1, how="counted"))
lessons.draw(panels.schedule_lab(ratio=3.0, steps=0)["ratios"], SLOW)

# %% [markdown]
# No change: bubble and work stretch alike, as long as all *stages* are equal. Now let stage 2 be
# twice as slow as the others (*slow stage* in the lab):

# %%
times = [1, 2, 1, 1]
for kind, N in (("1f1b", 800), ("gpipe", 8), ("1f1b", 8)):
    uneven = pm.simulate(pm.schedule(kind, 4, N), forward=times, backward=times)
    print(f"{kind}, {N} microbatches: idle {100 * uneven.idle:.1f} %")
    assert uneven.idle > 0.37
figures.gantt(uneven, memory="stages")

# %% [markdown]
# That hurts: everybody waits for the slowest stage, once per microbatch, and no number of
# microbatches cures it: 800 leave more than a third idle. So stages should be *balanced*: which
# layers go to which stage matters as much as the schedule. And GPipe and 1F1B are equal no longer;
# try the other stages as the slow one.
#
# ## And real layers?
#
# The clock trusts its own numbers. *Measure* in the lab trains real layers, one a stage, each with
# as many matrix products as the knobs ask for, and shows a typical step.
# The stages take turns on this machine's processor; the chart places their measured times as if
# each had a device of its own. The second figure of the lab shows it, and so does this cell.

# %%
lab.set(schedule="1f1b", stages=4, microbatches=8, ratio=2.0, slow=0)
lab.run.click()
print(await lab.wait())
measured = lab.result().idle
assert 0.15 < measured < 0.5
print(f"idle: measured {100 * measured:.1f} %, counted {100 * lab.now.timeline.idle:.1f} %")
lab.figures["measured"].shown

# %% [markdown]
# Close, and usually a little more than counted: no two stages are quite equally fast, and updates
# take time as well. On real devices messages do, too; lesson 9 shows them.
#
# ## A schedule of your own
#
# **Exercise 1.5.** Memory for four microbatches at each of four stages, and no more than 30 % of
# the time idle, with a forward and a backward equally long. Write the four lists of one step; the
# number of microbatches is yours to choose. A text with one line per stage will do, or a list of
# four texts. The function from exercise 1.2 may help, and the debugger shows where lists get stuck.

# %% tags=["exercise"]
# BEGIN SOLUTION
own = [one_f_one_b(stage, 4, 8) for stage in (1, 2, 3, 4)]
# STUB
# own = ...  # ["F0 ... U0", "F0 ... U0", "F0 ... U0", "F0 ... U0"]
# END SOLUTION
check("1.5", own)

# %% [markdown]
# ## Take-aways
#
# * A bubble is time in which a stage waits for its first input or its first gradient.
# * Idle fraction $(P-1)/(N+P-1)$, of all time; overhead $(P-1)/N$, of working time. Say which.
# * More microbatches shrink the bubble; with GPipe each costs memory, with 1F1B at most
#   $P-i+1$ are in flight at stage $i$.
# * The formula is for equal stages. One slow stage can cost more than the bubble, and more
#   microbatches do not cure that.
# * To have *no* bubble, one must not wait for the last microbatch before the next minibatch starts.
#
# ## Quiz
#
# 1. Twice the stages, twice the microbatches: what becomes of the idle fraction?
# 2. Why does stage 4 of 1F1B hold only one microbatch?
# 3. Which is idle longer with 1F1B, stage 1 or stage 4?
# 4. The overhead is 25 %. What is the idle fraction?
# 5. $N$ cannot grow without end. Name a reason.
#
# <details><summary>Answers</summary>
#
# 1. It rises a little, to $(2P-1)/(2N+2P-1)$: for $P=4$ and $N=8$, from 3/11 to 7/23.
# 2. It runs each backward straight after its forward, since nothing comes behind it.
# 3. Neither: every stage is busy for $N$ forwards and $N$ backwards of the same time.
# 4. 20 %: one part idle to four parts working.
# 5. A minibatch has only so many samples, and small microbatches use a device badly.
#
# </details>
#
# ## Not shown
#
# Time for messages (lesson 9), activations that are recomputed instead of kept (7), and schedules
# with almost no bubble that are synchronous still (10).
#
# ## Next
#
# Lesson 02, *Going asynchronous*: no waiting at all, and what it does to the weights.
