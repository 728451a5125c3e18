# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 02 · Going asynchronous: weight versions and staleness
#
# **50 minutes** for you; for the machine, {{machine time}}.
#
# **You will do**: click on a forward and count the updates that overtake it, measure the same
# number in real training, count it from a log, and find a learning rate at which waiting is fine
# and not waiting is fatal.
#
# **You will learn** what a *weight version* is, why each stage has a *staleness* $\tau_i$ of its
# own, where $\tau_i = (2(P-i)+1)/N$ comes from and when it is another number, and what PipeDream
# pays to avoid a part of the problem.
#
# **You need** lessons 00 and 01: the operations `F`, `B` and `U`, and what a schedule is.

# %%
import pipemare_edu as pm
from pipemare_edu import figures, lessons, panels
from pipemare_edu.lessons import check, doctor, hint, predict

doctor()

# %% [markdown]
# ## Nobody waits
#
# A synchronous pipeline empties itself before every update; lesson 01 counted what that costs.
# Leave the waiting out, and each stage has one long list: forwards and backwards alternate, an
# update stands after every $N$-th backward, and the pipe empties only at the end of training. The
# paper's pipeline runs in *lockstep*: once the pipe is full, every stage does one forward and one
# backward in each *slot*, which here has room for both. Here are the first operations on $P = 4$
# stages, with one microbatch in a minibatch, $N = 1$:

# %%
lists = pm.schedule("lockstep", stages=4, microbatches=1, steps=12)
for stage, operations in enumerate(lists, start=1):
    print(f"stage {stage}:", *operations[:18], "...")

# %% [markdown]
# Stage 1 sends eight microbatches off before the first gradient comes back. Then look at `F8`: one
# update, `U0`, has happened there, so `F8` computes with *weight version* 1. (Version $v$ is what
# $v$ updates have made; a run begins with version 0.) Its gradient comes back much later. By then,
# how many further updates has stage 1 applied? That number is the **staleness** $\tau$ of the
# microbatch at this stage: the version that its gradient is applied to, less the version that its
# forward read. Guess it for `F8` at stage 1, from the list or by feel.

# %%
AGE = "staleness of stage 1, with P = 4 and N = 1"
# BEGIN SOLUTION
predict(AGE, 7)
# STUB
# predict(AGE, ...)
# END SOLUTION

# %% [markdown]
# ## The version ladder
#
# The panel draws the lists above: a row a stage, time to the right, the microbatch's number in each
# bar, backwards hatched, updates green. The colour is new: *how old the weights are that an
# operation reads*, from yellow (the newest) to dark brown. The sliders work at once, on paper. Run
# trains the digits network of lesson 00 with these very lists, and draws the versions that the
# trainer stamped on its operations.

# %%
ladder = panels.VersionLadder()
ladder

# %% [markdown]
# **Click a forward.** Its backward and the updates between light up, numbered; the last number is
# $\tau$. Or use the keyboard: Tab to the chart, then the arrow keys. Left and right go along a
# stage, up and down to its neighbours, Home and End to its ends, Escape clears; the line below the
# buttons says in words where you are. (No panel above? `panels.version_ladder(chosen=(0, "F8"))`
# draws the same.) A cell can press Run too:

# %%
ladder.run.click()
print(await ladder.wait())
run = ladder.result()
figures.ladder(run)

# %% [markdown]
# Read along stage 1. The pipe starts empty, and `F0` is not old at all: nothing overtakes it. Age
# climbs while the pipe fills, to its full value at `F7`, and stays there to the end: later forwards
# are all equally old. So the first few steps of an asynchronous run are nearly synchronous; when
# below we measure "with a full pipe", they are left out. Stage 4 is never more than one update
# behind. And every backward is yellow: in PipeMare it reads the newest weights there are. (A bar is
# drawn as early as it can run, so where a stage has only forwards to do, or only backwards, slots
# look shorter. Which updates come between does not depend on that.)
#
# A cell can choose, too. Stages count from 1 in text and from 0 in code:

# %%
print(ladder.choose("F8", stage=0))
assert ladder.tau == 7
figures.ladder(run, chosen=(0, "F8"))

# %% [markdown]
# The update that uses the gradient itself does not count: it is the moment of use, not something
# that came before.
#
# **Exercise 2.1.** Click your way through the stages. What is $\tau$, with a full pipe, at stages
# 1, 2, 3 and 4?

# %% tags=["exercise"]
# BEGIN SOLUTION
taus = [7, 5, 3, 1]
# STUB
# taus = ...  # four numbers in a list, stage 1 first
# END SOLUTION
check("2.1", taus)

# %% [markdown]
# Every exercise has three hints; this cell gives one more each time you run it:

# %%
hint("2.1")

# %% [markdown]
# Now your prediction, beside what the run stamped:

# %%
assert [stage.mean for stage in run.staleness.forward] == [7, 5, 3, 1]
lessons.compare(AGE, run.staleness.forward[0].mean, "updates")

# %% [markdown]
# ## Where the formula comes from
#
# Follow microbatch $m$ through the slots. It takes a slot for each stage: stage $i$ does its
# forward in slot $m + i - 1$. The last stage, $P$, does it in slot $m + P - 1$ and its backward one
# slot later; then it goes back up, a slot for each stage. So stage $i$ does the backward in slot
# $m + 2P - i$. In between lie
#
# $$D_i = (m + 2P - i) - (m + i - 1) = 2(P - i) + 1 \qquad (2.1)$$
#
# slots, the *depth* of stage $i$: $P - i$ on the way down, as many on the way back, and one for
# turning round. With $N = 1$ each slot brings one update, so $\tau_i = D_i$.
#
# With $N$ microbatches in a minibatch, an update comes only every $N$-th slot. Whole updates are
# counted, so the $N$ microbatches of a minibatch may differ by one, but over them the mean is
# exactly
#
# $$\tau_i = D_i/N \qquad (2.2)$$
#
# What is it for stage 1, with $P = 4$ and $N = 4$?

# %%
MEAN = "mean staleness of stage 1, with P = 4 and N = 4"
# BEGIN SOLUTION
predict(MEAN, 1.75)
# STUB
# predict(MEAN, ...)
# END SOLUTION

# %% [markdown]
# The next panel draws the formula as diamonds, what the lists imply as hatched bars, and, after
# Run, what the version stamps of a real run measure. Move $P$ and $N$ first and say what will
# happen; then Run. The goal asks for a pipe of eight stages whose first is less than two updates
# behind.

# %%
measured = panels.MeasuredStaleness()
measured

# %% [markdown]
# In a cell, with four microbatches (without widgets: `panels.measured_staleness(microbatches=4)`):

# %%
measured.controls["microbatches"].value = 4
measured.run.click()
print(await measured.wait())
four = measured.result()
assert [stage.mean for stage in four.staleness.forward] == [1.75, 1.25, 0.75, 0.25]
lessons.draw(measured.figures["staleness"].shown, MEAN)

# %% [markdown]
# More microbatches, fresher weights: stage 1 is 1.75 updates old instead of 7. Nothing about the
# way through the pipe became shorter; there are just fewer updates on it. A mean hides something,
# though: no microbatch is 1.75 updates old. Put the pointer on a bar, and it says the most: 2.
#
# **Exercise 2.2.** Write the formula as a function: the means for all stages, as a list. The check
# compares it with counts in the lists of pipelines of its own.


# %% tags=["exercise"]
# BEGIN SOLUTION
def mean_taus(stages, microbatches):
    return [(2 * (stages - i) + 1) / microbatches for i in range(1, stages + 1)]


# STUB
# def mean_taus(stages, microbatches):
#     return ...  # a list of numbers, stage 1 first
# END SOLUTION


check("2.2", mean_taus)

# %% [markdown]
# ## From a log
#
# A formula is right for the schedule that it was derived for. Real systems differ, so you should be
# able to measure without one. All it takes is a log. This is what stage 1 did in the run with four
# microbatches, from its beginning:

# %%
log = [str(operation) for operation in four.trace.operations(stage=0)]
print(*log[:30], "...")

# %% [markdown]
# **Exercise 2.3.** Write a function that takes such a log, a list of texts, and the number of a
# microbatch, and returns its $\tau$. The check tries logs of synchronous and asynchronous
# schedules, with any $N$; some contain evaluations, such as `E3`, which change no weights.


# %% tags=["exercise"]
# BEGIN SOLUTION
def count_tau(log, microbatch):
    start, end = log.index(f"F{microbatch}"), log.index(f"B{microbatch}")
    return sum(operation.startswith("U") for operation in log[start:end])


# STUB
# def count_tau(log, microbatch):
#     return ...  # a whole number
# END SOLUTION


check("2.3", count_tau)

# %% [markdown]
# Your function (or the reference, if yours is still open) on the four microbatches of one
# minibatch, number 10, when the pipe was full:

# %%
count = lessons.use("2.3", count_tau)
counts = [count(log, microbatch) for microbatch in range(40, 44)]
print(counts, "mean", sum(counts) / 4)
assert sum(counts) / 4 == four.staleness.forward[0].mean

# %% [markdown]
# The first of a minibatch is the oldest: there is the difference by one, and the mean is $D_1/N$
# all the same.
#
# ## The same devices, half as old
#
# The paper's pipeline gives every message a slot to travel in. PipeDream, and most later papers,
# run in *1F1B* order: a device does a forward *or* a backward in a slot, and the last stage turns a
# microbatch round at once. Between a forward and its backward then lie only
#
# $$D_i = P - i \qquad (2.3)$$
#
# other microbatches.

# %%
half = panels.measured_staleness("async-1f1b")
assert [stage.mean for stage in half.value.staleness.forward] == [3, 2, 1, 0]
half

# %% [markdown]
# 3, 2, 1 and 0: about half, and the last stage is not behind at all. The price is not visible in
# this picture: a message now has to arrive at once, or a device waits for it. Between (2.1) and
# (2.3) every depth is possible. So when you read a staleness in a paper, ask first which of the two
# pipelines it belongs to. **This course means lockstep unless it says otherwise.** Try both in the
# panel above.
#
# ## Two weights in one gradient
#
# In the ladder above, the forward of a microbatch was up to 7 updates old, and its backward 0. The
# gradient so computed, at $u_{\mathrm{fwd}}$ on the way down and $u_{\mathrm{bkwd}}$ on the way up,
# is the gradient of the loss at *no* set of weights at all. PipeDream refuses that: it *stashes*,
# keeping every version until the last microbatch that read it has come back. Set "B reads" to
# "stashed", or:

# %%
panels.version_ladder(backward="stashed", chosen=(0, "F8"))

# %% [markdown]
# Now the backwards are as dark as their forwards: $\tau_{\mathrm{bkwd}} = \tau_{\mathrm{fwd}}$. The
# gradient is a true one again, but it is as late as before: stashing mends the mismatch, not the
# delay. And somebody has to hold those versions.
#
# **Exercise 2.4.** How many versions of its weights does stage $i$ hold at once, at the most, with
# $N = 1$? Count the current one too; `stage` counts from 1, and `schedule` is `"lockstep"` or
# `"async-1f1b"`.


# %% tags=["exercise"]
# BEGIN SOLUTION
def versions_kept(stage, stages, schedule):
    ahead = stages - stage
    return 2 * ahead + 2 if schedule == "lockstep" else ahead + 1


# STUB
# def versions_kept(stage, stages, schedule):
#     return ...  # a whole number
# END SOLUTION


check("2.4", versions_kept)

# %% [markdown]
# A real run with stashing counts its bytes. Old versions over weights, plus the current one:

# %%
stashing = pm.train("digits", "pipedream", stages=4, steps=40, rate=0.01)
held = [1 + stage["stash"] / stage["weights"] for stage in stashing.memory]
assert held == [8, 6, 4, 2]
print("versions held, stage 1 to 4:", held)

# %% [markdown]
# Eight times the weights on stage 1. PipeMare, as it is so far, holds them once, at any depth: that
# is its promise, and the mismatch is its price. (Lesson 7 counts all memory; with larger $N$ fewer
# versions live.)
#
# ## Does it hurt?
#
# In lesson 00 twelve stages were fatal, and four were not. Is it the age alone? Six stages now, so
# stage 1 is 11 updates behind, always the same network, data and 200 steps; only the learning rate
# changes. We say that a run *dies* when its loss is not a finite number any more, or above 10,000.
# At which rate does asynchronous training begin to die?

# %%
DIES = "rate from which asynchronous training dies"
# BEGIN SOLUTION
predict(DIES, 0.3)
# STUB
# predict(DIES, ...)
# END SOLUTION

# %% [markdown]
# `"pipemare-naive"` is PipeMare without its fixes. First four rates, each four times the last:


# %%
def train(method, rate, seed=0):
    return pm.train("digits", method, stages=6, steps=200, rate=rate, seed=seed)


def dies(method, rate, seed=0):
    return train(method, rate, seed).diverged is not None


for rate in (0.025, 0.1, 0.4, 1.6):
    for method in ("gpipe", "pipemare-naive"):
        run = train(method, rate)
        end = "dies" if run.diverged else f"{run.metrics['accuracy'][-1][1]:.0f} % right"
        print(f"rate {rate}, {method}: {end}")
    assert (run.diverged is not None) == (rate > 0.2)

# %% [markdown]
# The synchronous run survives all of these. The asynchronous one lives at small rates and dies
# at large ones: old weights are harmless while weights hardly change.
#
# **Exercise 2.5.** Search for the edge. Find a rate at which GPipe reads at least 90 % of unseen
# digits right, and asynchronous training dies, both with each of the seeds 0, 1 and 2. The target:
# be so close that at *half* your rate at least one of the three lives. The check trains these nine
# runs.

# %% tags=["exercise"]
# BEGIN SOLUTION
rate = 0.05
while not all(dies("pipemare-naive", rate, seed) for seed in range(3)):
    rate *= 1.5
# STUB
# rate = ...  # a number; search in this cell or in one of your own
# END SOLUTION
check("2.5", rate)

# %% [markdown]
# The two curves at that rate:

# %%
rate = lessons.use("2.5", rate)
both = {method: train(method, rate) for method in ("gpipe", "pipemare-naive")}
assert both["pipemare-naive"].diverged and not both["gpipe"].diverged
print(lessons.compare(DIES, rate, digits=2))
figures.curves(both)

# %% [markdown]
# What stands there as measured is your rate of exercise 2.5: it kills, and half of it lets one
# live, so the edge lies between the two. One seed more or less moves it a little, which is why the
# check wants three. And living is not all: look again at rate 0.1, where both live, and old weights
# cost accuracy. Whether the edge can be *predicted*, from $\tau$ and the shape of the loss alone,
# is the subject of the next lesson.
#
# ## Take-aways
#
# * Every update makes a version. $\tau$ is the version at use, less the version at the read.
# * $\tau_i = D_i/N$: in lockstep $(2(P-i)+1)/N$, in 1F1B order $(P-i)/N$. Early stages are the
#   oldest, and more microbatches make weights fresher. It follows from the lists; it is not a
#   setting.
# * PipeMare: old forward, newest backward, one copy. PipeDream: old and equal, many copies.
# * Delay kills together with the learning rate: where steps are small, old weights are harmless;
#   where they are large, a rate that GPipe takes easily is fatal.
#
# ## Quiz
#
# 1. Why is the last stage's staleness 1 in lockstep, and 0 in 1F1B order?
# 2. $P = 12$, $N = 1$, lockstep: how old are stage 1's weights? With $N = 8$?
# 3. Does a faster device lower $\tau$?
# 4. Which versions does stage 4 of 4 hold under PipeDream, in lockstep?
# 5. A gradient computed with stashed weights is exact. For which weights?
#
# <details><summary>Answers</summary>
#
# 1. In lockstep its backward comes a slot after its forward, and the update of the microbatch
#    before falls between the two; in 1F1B order it turns the microbatch round at once.
# 2. 23 updates; 2.875 on average.
# 3. No. $\tau$ counts updates, and follows from the order of operations alone.
# 4. Two: the current one and the one before.
# 5. For those that the forward read, $\tau_i$ updates ago, at every stage another number.
#
# </details>
#
# ## Not shown
#
# What the mismatch does to a gradient (lesson 5), the fixes (4 to 6), memory of everything else
# (7), and schedules between the two depths: `pm.PipeMare(depth=[5, 3, 2, 1])` takes any.
#
# ## Next
#
# Lesson 03, *Why it blows up*: the smallest model that dies of delay, and the exact rate at which
# it does.
