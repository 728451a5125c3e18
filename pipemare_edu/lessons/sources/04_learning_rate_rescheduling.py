# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 04 · Fix 1: learning-rate rescheduling
#
# **45 minutes** for you; for the machine, {{machine time}}.
#
# **You will do**: turn a sentence of theory into a learning rate for every stage, write it as a
# torch scheduler, race it against doing nothing, take it away too early, and choose its one setting
# and defend the choice.
#
# **You will learn** what the first of the paper's three fixes, T1, does; where it helps, where it
# is erratic, and where it is worse than nothing.
#
# **You need** lesson 02 (staleness: $\tau_i = (2(P-i)+1)/N$) and the main result of lesson 03.

# %%
import torch
from torch.optim.lr_scheduler import LambdaLR

import pipemare_edu as pm
from pipemare_edu import lessons, panels
from pipemare_edu.lessons import check, doctor, hint, predict
from pipemare_edu.panels.race import SLOWER

doctor()

# %% [markdown]
# ## From a theorem to a rate
#
# Lesson 03 ended with Lemma 1: with a delay of $\tau$ steps and curvature $L$, gradient
# descent is stable only below the rate
#
# $$\frac{2}{L}\,\sin\frac{\pi}{4\tau+2} \qquad (4.1)$$
#
# For large $\tau$ that is about $\pi/(2L\tau)$: twice the delay, half the rate. So divide
# each stage's rate by its own delay. The last stages, whose weights are fresh, stay fast; the first
# ones crawl.
#
# They should not crawl for ever. Delay does most harm early, while the rate is high and the weights
# change fast. So let the division fade out over $K$ steps. That is *learning-rate rescheduling*,
# the paper's **T1**: at step $k$, stage $i$ uses
#
# $$\alpha_{k,i} = \frac{\alpha_k}{\tau_i^{\,p}}, \qquad p = 1 - \min\left(\frac{k}{K},\,1\right)
# \qquad (4.2)$$
#
# where $\alpha_k$ is the *base rate*, what you would use without a pipeline. Take our usual twelve
# stages and $N=1$. What does T1 divide the rate of stage 1 by, at $k=0$?

# %%
DIVISOR = "what stage 1's rate is divided by, P = 12 and N = 1"
# BEGIN SOLUTION
predict(DIVISOR, 23)
# STUB
# predict(DIVISOR, ...)
# END SOLUTION

# %% [markdown]
# A method knows its stages' delays and its factors, so we can ask:

# %%
method = pm.PipeMare(t1=300)
taus = method.taus(stages=12, microbatches=1)
assert 1 / method.rate(taus[0], step=0) == 23
lessons.compare(DIVISOR, 1 / method.rate(taus[0], step=0), how="counted")

# %% [markdown]
# **Exercise 4.1.** A stage has $\tau = 7$. What is T1's factor on its rate, the number that the
# base rate is multiplied by, at $k = 0$, at $k = K/2$ and at $k = K$? Three digits will do.

# %% tags=["exercise"]
# BEGIN SOLUTION
factors = [1 / 7, 7**-0.5, 1]
# STUB
# factors = ...  # three numbers in a list
# END SOLUTION
check("4.1", factors)

# %% [markdown]
# Half-way through, the factor is not half-way: it is the *power* that falls evenly, so on a
# logarithmic axis every stage climbs to the base rate along a line of its own. Stuck? Each run of
# this cell says a little more.

# %%
hint("4.1")

# %% [markdown]
# ## A rate for every stage
#
# The panel draws equation 4.2 for five of the stages. The thick grey curve is the base rate; all
# controls redraw at once. (*power p* is $p$ at step 0, and 1 in the equation; what *guard* is for
# comes below.) Run trains the digits network for 400 steps with these very settings, marks the
# rates with which the stages' optimizers really stepped, and shows the loss.

# %%
rates = panels.StageRates()
rates

# %% [markdown]
# (Without widgets: `panels.stage_rates(annealing=300)`.) Things to try, before you read on: more
# microbatches. A shorter $K$. Another base rate. What happens to a run at step $K$ if the base rate
# is *constant*? Say first, then Run:

# %%
rates.set(base="constant", annealing=100)
rates.run.click()
await rates.wait()
run = rates.result()
assert run.diverged is not None and run.diverged[0] > 100
print(f"diverged at step {run.diverged[0] + 1}")
rates.figures["rates"].shown

# %% [markdown]
# The circles lie on the lines: the trainer does what the equation says. And they end where the run
# ends, soon after step $K$. Up to there the rates are held down, by less and less; from step $K$ on
# nothing is left of T1. This is then plain asynchronous training at the full rate, and that
# diverges. Remember this; it comes back below.
#
# ## In torch
#
# torch has schedulers for such things. `LambdaLR(optimizer, f)` multiplies an optimizer's base rate
# by `f(k)` at step `k`, counted from 0. For example:

# %%
optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
scheduler = LambdaLR(optimizer, lambda k: 1 / (1 + k))
for k in range(4):
    print(f"step {k}: rate {optimizer.param_groups[0]['lr']:.3f}")
    optimizer.step()
    scheduler.step()

# %% [markdown]
# **Exercise 4.2.** Write T1 for one stage: given its optimizer, its delay `tau` (1 or more) and
# `K`, return a scheduler. The check steps it and compares every rate with the trainer's own.


# %% tags=["exercise"]
# BEGIN SOLUTION
def t1(optimizer, tau, K):
    return LambdaLR(optimizer, lambda k: tau ** -(1 - min(k / K, 1)))


# STUB
# def t1(optimizer, tau, K):
#     return ...  # LambdaLR(optimizer, f), with a function f of k
# END SOLUTION
check("4.2", t1)

# %% [markdown]
# ## A trap
#
# Why "1 or more"? With several microbatches a delay can be a fraction: $P = 12$ and $N = 8$ give
# the last stage $\tau = 1/8$. Put that into equation 4.2 as it stands. By how much is the rate of
# the last stage multiplied, at $k=0$?

# %%
TRAP = "factor on the last stage's rate, P = 12 and N = 8, as it stands"
# BEGIN SOLUTION
predict(TRAP, 8)
# STUB
# predict(TRAP, ...)
# END SOLUTION

# %% [markdown]
# The *guard* in the panel is there for this. Switch it off with eight microbatches, or:

# %%
bare = panels.stage_rates(microbatches=8, guard=False, train=False)
print(lessons.compare(TRAP, (1 / 8) ** -1, how="counted"))
bare["rates"]

# %% [markdown]
# Eight times the base rate, on the very stage that needs no help; and every stage with
# $\tau < 1$ gets some of it. A fix against delay that raises rates is a bug, and one that is hard
# to see: nothing crashes, and with $N=1$ it is not even there.
#
# **Exercise 4.3.** Write the factor so that it is right for every delay: no rate is ever raised,
# and a stage whose delay is 1 or less keeps the base rate.


# %% tags=["exercise"]
# BEGIN SOLUTION
def safe_factor(k, tau, K):
    return max(tau, 1) ** -(1 - min(k / K, 1))


# STUB
# def safe_factor(k, tau, K):
#     return ...  # a number, at most 1
# END SOLUTION
check("4.3", safe_factor)

# %% [markdown]
# ## The race
#
# Now the real thing, at a rate that synchronous training likes: 0.2, which falls to zero along a
# cosine; twelve stages, 1,600 steps, and $K = 400$. `gpipe` is synchronous, `pipemare-naive`
# asynchronous without any fix, and
# `pipemare-t1` has T1 alone; each trains with three seeds, which change the initial weights and the
# order of the data. With how many of its three seeds does T1 get to the end without diverging?

# %%
LIVES = "seeds with which T1 does not diverge, of three"
# BEGIN SOLUTION
predict(LIVES, 3)
# STUB
# predict(LIVES, ...)
# END SOLUTION

# %% [markdown]
# These nine runs are *shipped*: they were made before, with the same trainer, and come with the
# course. Click Run to see them. Choose "live" to train here: live runs are drawn over the shipped
# ones, which turn pale.

# %%
race = panels.Race()
race

# %% [markdown]
# From a cell (the plain call is `panels.race()`):

# %%
race.run.click()
print(await race.wait())
ends = {(r.method, r.seed): r for r in race.result()}
alive = sum(ends["pipemare-t1", seed].status == "done" for seed in range(3))
for seed in range(3):
    assert ends["pipemare-naive", seed].diverged < 50
    assert ends["pipemare-t1", seed].final < ends["gpipe", seed].final
print(lessons.compare(LIVES, alive, how="counted"))
race.figures["race"].shown

# %% [markdown]
# On the left the training loss, one line a run; on the right, how many unseen digits each run reads
# right in the end. Three stories:
#
# * `gpipe` learns, with every seed alike.
# * `pipemare-naive` is dead within 50 steps, with every seed. That is the cliff of lesson 02.
# * `pipemare-t1` gets over the cliff. But its loss, after a good start, climbs again well before
#   step $K$: the rates come back bit by bit, and at step 250 stage 1 has by (4.2) a third of the
#   base rate. And look where it ends: every seed somewhere else, 62 to 93 %, and all of them below
#   `gpipe`. On this task, with this $K$, T1 alone is **erratic**. Had we shown
#   you one seed, you might have believed almost anything.
#
# Are the shipped runs what you would get? Try one, live:

# %%
race.set(methods=("pipemare-naive",), seeds=1, runs="live")
race.run.click()
print(await race.wait())
(mine,) = race.result()
assert mine.status == "diverged" and ends["pipemare-naive", 0].status == "diverged"

# %% [markdown]
# Do the same with T1 in the panel if you have the time. Runs that hover at the edge of stability
# are chaotic: another processor rounds differently, and a chaotic run may end elsewhere than the
# shipped one. Whether the plain method diverges does not depend on that.
#
# ## Annealing too short
#
# $K$ is T1's only setting, and you have seen what it does: at step $K$ the run becomes plain
# asynchronous training. So ask what the *base rate*, which falls along the cosine, is by then. If
# it is still high, the cliff is back; if it is low enough, plain asynchronous training is harmless.
#
# Shorter runs now, of 400 steps, and T1 with $K$ = 25, 50, 100, 150 and so on to 400. What is the
# smallest of these with which all three seeds get to the end?

# %%
SMALLEST = "smallest K with which no seed diverges, in 400 steps"
# BEGIN SOLUTION
predict(SMALLEST, 200)
# STUB
# predict(SMALLEST, ...)
# END SOLUTION

# %% [markdown]
# Circles are runs that got to the end, crosses those that diverged; pale ones were shipped. The
# slider moves $K$, Run trains with it. A dotted line shows your guess.

# %%
annealing = panels.Annealing(annealing=50, guess=lessons.prediction(SMALLEST))
annealing

# %% [markdown]
# (Plain: `panels.annealing(50)`.) Here is $K=50$, live, among the shipped runs:

# %%
annealing.run.click()
print(await annealing.wait())
assert all(r.status == "diverged" and r.diverged > 50 for r in annealing.result())
alive = [K for K, runs in annealing.ends.items() if all(r.status == "done" for r in runs)]
print(lessons.compare(SMALLEST, min(alive), how="counted"))
annealing.figures["ends"].shown

# %% [markdown]
# With a $K$ of 25 or 50 every run dies, within 50 steps after step $K$ and not before: T1 was not
# wrong, it was over too soon. With a long $K$ runs survive. In between nothing is certain: some
# seeds live and some do not, and those that live are often damaged. Even far to the right a single
# seed can fall, while its neighbours do well: with $K = 350$ one died at step 276, with T1 still
# on. T1 shrinks steps, and does nothing about the mismatch between the forward's and the backward's
# weights. But the trend is plain, and at $K = 400$, the whole run, T1 alone is close to synchronous
# training.
#
# **Exercise 4.4.** Choose a $K$ for these 400-step runs, and defend it. Give $K$ together with the
# base rate that is left at step $K$, where
#
# $$\alpha_k = 0.2 \cdot \frac{1 + \cos(\pi k/400)}{2} \qquad (4.3)$$
#
# The check tries both by real runs, with seeds 0, 1 and 2: T1 with your $K$ must not diverge, and
# plain asynchronous training must bear the rate that is left. The target: a margin of two, so it
# should bear twice that rate. (This takes the machine a few seconds.)


# %% tags=["exercise"]
# BEGIN SOLUTION
from math import cos, pi

K = 400
choice = K, 0.2 * (1 + cos(pi * K / 400)) / 2
# STUB
# choice = ...  # a pair, K and the base rate at step K
# END SOLUTION
check("4.4", choice)

# %% [markdown]
# The paper's own rule is shorter: $K$ is a quarter of the first constant-rate phase for its ResNet,
# and five times the linear warm-up for its Transformer (as we recall the paper). Both have momentum
# or Adam, other networks, and the other two fixes beside T1. A rule of thumb for $K$ belongs to the
# setting that it came from.
#
# ## When there is nothing to fix
#
# One more race, at a tenth of the rate: 0.02, still 400 steps, and T1 with the $K$ that was so good
# a moment ago. Which one ends highest, after `gpipe`?

# %%
three = {"gpipe": "gpipe", "plain": "pipemare-naive", "T1, K = 400": pm.PipeMare(t1=400)}
calm = panels.Race(three, rate=0.02, steps=400, show="score", goal=SLOWER)
calm

# %% [markdown]
# Again the runs are shipped, so Run takes a moment only. (Plain:
# `panels.race(three, rate=0.02, steps=400)`.) The goal of this panel asks you to find the answer.

# %%
calm.run.click()
print(await calm.wait())
assert calm.reached()
calm.figures["race"].shown

# %% [markdown]
# Nobody diverges, and with every seed plain asynchronous training ends far above T1: at 95 to 97 %,
# where T1 ends at 70 to 81. At this rate
# it bears its delay by itself; all that T1 does is to start the first stage at a twenty-third of
# the rate. **At a rate that was safe anyway, T1 is slower than doing nothing.** This is why a
# comparison of fixes needs the rate as an axis: at one end there is nothing to fix, at the other
# nothing helps.
#
# ## Take-aways
#
# * T1 divides each stage's rate by its own delay to a power that falls from 1 to 0 over $K$ steps.
#   It costs no memory and no time.
# * A delay below 1 counts as 1. Otherwise T1 raises rates.
# * At step $K$ the run becomes plain asynchronous training, so the base rate that is left by then
#   must be one that plain asynchronous training bears. With T1 alone that is needed, and not always
#   enough.
# * T1 turns certain death into survival. On digits, alone, it is erratic; show several seeds.
# * Where the rate was safe, T1 only slows down.
#
# ## Quiz
#
# 1. $P = 4$, $N = 1$. Which stages have a rate below the base rate at $k=0$, and by which factors?
# 2. The base rate is constant for the whole run. What can $K$ do for you?
# 3. A colleague shows one seed of T1 at 93 % and concludes that it works. What do you ask for?
# 4. Does T1 need more memory than plain asynchronous training?
# 5. You halve the number of stages. What happens to T1's factors at $k=0$?
#
# <details><summary>Answers</summary>
#
# 1. Stages 1, 2 and 3, by 1/7, 1/5 and 1/3. Stage 4 has a delay of 1 and keeps its rate.
# 2. Only delay the moment at which the full rate, with its full delay, is back; unless $K$ is
#    longer than the run.
# 3. More seeds, the synchronous run beside it, and the same at another rate.
# 4. No: it changes one number per stage and step.
# 5. The delays are about halved, so the first stages start about twice as fast.
#
# </details>
#
# ## Not shown
#
# After a synchronous warm-up (lesson 06), $k$ counts from the switch to asynchronous; that is our
# choice. With Adam T1 carries much more: on a small Transformer it brings most of what plain
# asynchrony loses (lesson 08). And these are the digits of one small network, at the paper's method
# but not its scale: what carries over is the order of the methods, not the numbers.
#
# ## Next
#
# Lesson 05, *Fix 2*: forward and backward read different weights. T1 made the difference smaller;
# T2 corrects it.
