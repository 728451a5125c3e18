# ruff: noqa: B018, E402, E731, F704
# mypy: ignore-errors
# %% [markdown]
# # 07 · Memory: stash, correction, recompute
#
# **45 minutes** for you; for the machine, {{machine time}}.
#
# **You will do**: write the memory bill of four methods and see a real run agree with it to the
# byte, find out where a published 2.7 comes from, cut a pipe into segments that are computed
# twice, and choose the methods that fit a device.
#
# **You will learn** what each method holds and why, which of the numbers in circulation are
# formulas and which are counts, and how to trade a little more work for most of the activations.
#
# **You need** lesson 02: staleness, lockstep, and PipeDream's stash. Lesson 05's correction, T2,
# comes up in one sentence here.

# %%
import torch

import pipemare_edu as pm
from pipemare_edu import figures, lessons, panels
from pipemare_edu.lessons import check, doctor, hint, predict
from pipemare_edu.models.resnet import resnet
from pipemare_edu.plan import copies, held, ledger, theory

doctor()

# %% [markdown]
# ## The bill
#
# Stage $i$ has weights of $w_i$ bytes, and its depth is $D_i = 2(P-i)+1$: so many slots lie between
# a forward and its backward. While it trains, it holds
#
# | kind | bytes | who |
# |---|---|---|
# | weights | $w_i$ | everybody |
# | gradients | $w_i$ | everybody |
# | optimizer state | $c\,w_i$; $c$ = 0 for plain SGD, 1 with momentum, 2 for Adam | everybody |
# | stash | $\lceil D_i/N \rceil\, w_i$: old weight versions, besides the newest | PipeDream |
# | correction | $w_i$, if $D_i > 0$: one running average | PipeMare with T2 |
# | working buffer | $w_i$: the newest weights, while a backward reads others | PipeDream, T2 |
# | activations | $a_i$ for every microbatch in flight | everybody |
#
# Take the digits network again: twelve layers on twelve stages, $N = 1$, SGD with momentum.
# Weights, gradients and optimizer state are three times the weights, whatever the method. PipeDream
# adds its stash: 23 old versions at stage 1, 21 at stage 2, down to 1. How many times as much as
# those three does it hold then, over all stages?

# %%
TIMES = "weights and optimizer that PipeDream holds, over GPipe's"
# BEGIN SOLUTION
predict(TIMES, 5)
# STUB
# predict(TIMES, ...)
# END SOLUTION

# %% [markdown]
# The panel has the bill by formula on the left; it follows every control. Run trains for real and
# counts, on the right. Below, all methods stand beside each other; a diamond marks what was
# counted. Begin with weights and optimizer alone.

# %%
panel = panels.MemoryLedger(shown="weights and optimizer")
panel

# %% [markdown]
# (No panel above? `panels.memory_ledger("pipedream", shown="weights and optimizer")` draws the
# same.) In a cell:

# %%
panel.run.click()
print(await panel.wait())
counted = panel.result()
assert counted.run.memory == panel.now.rows()  # every kind, every stage
panel.figures["stages"].shown

# %% [markdown]
# Both halves are equal, to the byte. The right one comes from the tensors that the trainer held;
# the left one from $w_i$, $D_i$ and $N$. And the stash is a staircase: the first stages pay most of
# it, so a device of the same size for every stage is too small or too large.

# %%
assert 5 < counted.factor < 5.5
lessons.compare(TIMES, counted.factor, "times", 2, how="counted")

# %% [markdown]
# A little more than $1 + \frac{12}{3} = 5$, which the mean depth, 12, would give: the last layer is
# small, and it is the one with the shortest stash.
#
# **Exercise 7.1.** Write the bill. `method` is `"gpipe"`, `"pipedream"`, `"pipemare"` or
# `"pipemare-t2"`; `weights` and `depths` are lists, a number a stage; `copies` is the optimizer's
# $c$. Return a dict with the bytes of all stages together, as `"weights"`, `"gradients"`,
# `"optimizer"`, `"stash"` and `"correction"`.


# %% tags=["exercise"]
# BEGIN SOLUTION
def bill(method, weights, depths, microbatches, copies):
    W, stash, correction = sum(weights), 0, 0
    for w, depth in zip(weights, depths, strict=True):
        if method == "pipedream":
            stash += w * -(-depth // microbatches)  # rounded up
        if method == "pipemare-t2" and depth > 0:
            correction += w
    found = {"weights": W, "gradients": W, "optimizer": copies * W}
    return found | {"stash": stash, "correction": correction}


# STUB
# def bill(method, weights, depths, microbatches, copies):
#     return ...  # {"weights": ..., "gradients": ..., "optimizer": ..., "stash": ...,
#     #              "correction": ...}
# END SOLUTION


check("7.1", bill)

# %% [markdown]
# The check tries random tables and every method. A hint a run:

# %%
hint("7.1")

# %% [markdown]
# ## One average in place of many versions
#
# PipeMare keeps no old version at all. With T2 on, it keeps one average $\delta$ of past updates,
# and guesses the old weights from it: $w - \tau\delta$. That is one more weight-sized tensor,
# however deep the pipe.

# %%
for optimizer in ("momentum", "Adam"):
    found = panels.memory_ledger("pipemare-t2", optimizer, shown="weights and optimizer")
    print(f"{optimizer}: PipeMare with T2 counted {found.value.factor:.4f} times GPipe")
found["methods"]

# %% [markdown]
# A third more with momentum, where there were three copies, and a quarter more with Adam, where
# there were four. (The figure is Adam's: PipeDream's 5.28 of above is now 4.21, by the same stash
# over more optimizer state.) Without T2, PipeMare holds what GPipe holds. The trainer's working
# buffer is left out of these factors; PipeDream and T2 need it alike.
#
# ## Whose number is 2.7?
#
# The paper *reports* that PipeDream needs 2.7 times the weights and optimizer for ResNet-50, with
# $P = 107$ stages and $N = 8$. The formula behind it has $\tau_i = D_i/N$ versions at stage $i$ in
# place of the live weights: $(2W + \sum_i w_i \tau_i)\,/\,3W$ with momentum. Put in the real
# network's weights.
#
# Then count. A running pipe holds the live weights *and* the old versions, and no stage can hold a
# part of a version. How many are alive changes with every operation, so there are two counts: over
# all stages at one instant, which the clock can follow, and every stage at its own worst moment,
# which is what its device must have room for.

# %%
with torch.device("meta"):  # shapes alone, no memory
    weights = [sum(p.nbytes for p in layer.parameters()) for layer in resnet(50)]
P, N = len(weights), 8
depths = pm.depths("lockstep", P)
reported = copies.reported_factor(weights, depths, N)
print(f"P = {P}; reported, by the paper's formula: {reported:.2f} times")

moment = copies.instants(pm.simulate(pm.schedule("lockstep", P, N, steps=60)), weights)
peaks = copies.counted_factor(ledger.ledger(weights, depths, N, stashes=True))
print(f"counted by the clock, at one instant: {moment.low:.2f} to {moment.high:.2f} times")
print(f"by formula, each stage at its peak: {peaks:.2f} times")

# %% [markdown]
# And measured? ResNet-50 itself is too much for this page, but its *weights* are not: here is a
# pipe of 107 stages, each with a 512th of the real one's weights and hardly anything to compute.
# It is real training under PipeDream, for $4P$ microbatches, which fills the stash.


# %%
class Ballast(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(max(1, size // 2048)))

    def forward(self, x):
        return x + self.w[0]


layers, x = [Ballast(size) for size in weights], torch.randn(N, 1)


def sgd(named):
    return torch.optim.SGD(named, lr=0.001, momentum=0.9)


trainer = pm.Trainer(layers, torch.nn.functional.mse_loss, sgd, pm.PipeDream(), P, N)
factor = copies.counted_factor(trainer.fit([(x, x)], steps=4 * P // N).memory)
assert abs(factor - peaks) < 0.01
print(f"counted in a run, each stage at its peak: {factor:.2f} times")

# %% [markdown]
# So 2.67 is the formula's, *reported*; about 3.0 is what is alive at any one time, a third more
# because of the live weights; and 3.20 is what the devices need, *measured*. None of them is wrong.
# But when you compare two papers, ask which one it is.
#
# ## Activations
#
# Weights and optimizer are not everything. Count activations in *stage activations*: what one
# microbatch leaves at one stage for its backward. Set "shown" in the panel to "everything", or:

# %%
assert counted.slots == 12 * 13
print(f"counted in the run: {counted.slots}; P (P+1) = {12 * 13}, and P^2 = {12**2}")
panels.memory_ledger(run=False)["methods"]

# %% [markdown]
# Most of this bill is activations. (A small network with a large batch is an extreme case.) GPipe
# with $N = 1$ has a single microbatch in the pipe; an asynchronous pipe has many. The paper counts
# $D_i$ of them at stage $i$, the slots between F and B, and $\sum_i D_i = P^2$. Inside a slot,
# though, the forward comes before the backward, and for that moment a running list holds one more:
# $D_i + 1$ at the peak, and $P(P+1)$ in all. Whichever you count, it grows with the square of the
# stages. (Larger $N$ does not change the number in flight, but each of them gets smaller. Try it in
# the panel.)
#
# ## Compute it twice
#
# *Recompute* throws activations away and makes them again. Cut the pipe into *segments* of $S$
# stages. Only the first stage of a segment keeps anything for a microbatch in flight: its input.
# Shortly before the backward arrives, the segment runs its forwards again, stage after stage: the
# operation R. Four stages, segments of two, backwards twice as long as forwards:

# %%
lists = pm.schedule("lockstep", stages=4, microbatches=1, steps=9, recompute=2)
print("stage 1:", *lists[0][:24], "...")
figures.gantt(pm.simulate(lists, forward=1, backward=2))

# %% [markdown]
# Follow microbatch 1 at stage 1, and count slots by the forwards: `R1` comes four later than `F1`,
# beside `F5`, and `B1` three more, beside `F8`. Up to `R1` only its input is kept. Stage 2 re-runs
# a slot after stage 1 and needs no input of its own: it comes from stage 1's `R1`. The last segment
# re-runs nothing, since its backwards come at once. (The strip below counts microbatches in flight,
# which stay the same; what is kept of each does not.)
#
# A short segment keeps inputs at many stages; a long one has many activations between its re-runs
# and its backwards. In stage activations, an input counted as one,
#
# $$\frac{P^2}{S} + P\,S \qquad (7.1)$$
#
# for equal segments. What is made again are $2j+2$ activations at the stage $j$ places before the
# end of its segment, $P(S+1)$ in all; the inputs are those of the other $D_i+1-2S$ microbatches at
# the first stage of a segment, $P^2/S-P$ in all. With 16 stages in segments of 4, how many is that
# instead of $16 \cdot 17 = 272$?

# %%
SLOTS = "stage activations, 16 stages in segments of 4"
# BEGIN SOLUTION
predict(SLOTS, 128)
# STUB
# predict(SLOTS, ...)
# END SOLUTION

# %% [markdown]
# The next panel counts them in the lists, for every $S$, while you move the sliders. Its second
# figure shows who holds what, and with at most nine stages there is a chart. Run trains the digits
# network with a layer a stage.

# %%
segments = panels.RecomputeSegments(stages=16, segment=4)
segments

# %% [markdown]
# (Without widgets: `panels.recompute_segments(stages=16, segment=4)`.)

# %%
segments.run.click()
print(await segments.wait())
again = segments.result()
print(lessons.compare(SLOTS, again.slots, how="counted"))
segments.figures["segments"].shown

# %% [markdown]
# Lists, formula and run agree. Where $S$ does not divide $P$, the last segment is shorter and the
# count lies below the curve. $S = 1$ gains nothing: every stage keeps an input for each activation
# that it drops. (An input is often smaller than what a stage saves, so in bytes it does gain; the
# ledger above has both.)
#
# **Exercise 7.2.** Which divisor $S$ of 16 is best, and how many stage activations does it hold?

# %% tags=["exercise"]
# BEGIN SOLUTION
best = (4, 128)
# STUB
# best = ...  # (S, stage activations)
# END SOLUTION
check("7.2", best)

# %% [markdown]
# The sum (7.1) is least where its two terms are equal, at $S = \sqrt{P}$: about $2P^{1.5}$ in place
# of $P^2$. The deeper the pipe, the more it saves. For the paper's 107 stages:

# %%
for S in (0, 10):
    slots = sum(stage.slots for stage in held.peaks(depths, recompute=S))
    print(f"{f'segments of {S}' if S else 'all kept'}: {slots} stage activations")

# %% [markdown]
# ## What it costs
#
# Time. All segments but the last run their forwards again: $(P-S)/P$ of a forward more per
# microbatch. If a backward takes as long as two forwards, by what share, in per cent, does the work
# grow with $P = 16$ and $S = 4$?

# %%
WORK = "more work with recompute"
# BEGIN SOLUTION
predict(WORK, 25)
# STUB
# predict(WORK, ...)
# END SOLUTION

# %% [markdown]
# Three answers: by the clock, as work and as the time from step to step with a device for every
# stage; and the seconds that the re-runs really took in the run above.

# %%
steps = [pm.schedule("lockstep", 16, 1, steps=96, recompute=S) for S in (0, 4)]
kept, twice = (pm.simulate(lists, forward=1, backward=2) for lists in steps)
work = [sum(e.end - e.start for row in t.events for e in row) for t in (kept, twice)]
print(lessons.compare(WORK, 100 * work[1] / work[0] - 100, "%", how="counted"))
print(f"a step {twice.interval / kept.interval:.2f} times; run: measured {100 * again.again:.0f} %")

# %% [markdown]
# A quarter more work, $\frac{12}{16} \cdot \frac{1}{3}$. But with a device a stage a step takes a
# *third* longer: everybody waits for the stages that do three things, and the last segment, which
# does two, is idle a quarter of the time. (Layers of unequal cost can make up for it: give the last
# stages more of them.) The measured share is usually larger than 25: the backwards of these tiny
# layers take less than twice a forward.
#
# ## Will it fit?
#
# Eight stages on eight devices of 1 GB ($10^9$ bytes) each, lockstep, $N = 8$, Adam. Every stage
# has 76 MB of weights; a microbatch leaves 36 MB of activations there, and its input is 9 MB.
# Recompute means segments of 3: at stage 1, 6 activations and 11 inputs at the peak.
#
# **Exercise 7.3.** Which fit? Choose from `"gpipe"`, `"pipedream"`, `"pipemare"`, `"pipemare-t2"`,
# `"pipedream, recompute"` and `"pipemare-t2, recompute"`. Do not forget the working buffer.

# %% tags=["exercise"]
# BEGIN SOLUTION
fits = {"gpipe", "pipemare", "pipedream, recompute", "pipemare-t2, recompute"}
# STUB
# fits = ...  # a set of names, such as {"gpipe", "pipedream"}
# END SOLUTION
check("7.3", fits)

# %% [markdown]
# ## Which weights does a re-run read?
#
# Between a forward and its re-run the weights have changed, and between the re-run and the backward
# they change again. So there are three delays now, of forward, re-run and backward. Version stamps
# measure all three:

# %%
run = pm.train("digits", pm.PipeMare(recompute=3), stages=12, steps=60, rate=0.01)
for i in (0, 1, 2, 3):
    delays = [getattr(run.staleness, kind)[i].mean for kind in ("forward", "recompute", "backward")]
    print(f"stage {i + 1}: F {delays[0]:.0f}, R {delays[1]:.0f}, B {delays[2]:.0f} updates old")

# %% [markdown]
# Forwards as ever; backwards the newest; and a re-run in between,
#
# $$\tau_{\mathrm{recomp}} = \frac{2j+1}{N} \qquad (7.2)$$
#
# for the stage $j$ places before the end of its segment. A backward that follows works with
# activations that no forward has made. T2 can help here, too: write weights into the stage, for the
# re-run only, that are close to those of the forward. T2's $\delta$ is the average update of a
# step.
#
# **Exercise 7.4.** Which delay belongs in it? At the re-run, the newest weights are `w`. Return
# what the re-run of stage `i` (from 1) should read, with `P` stages in segments of `S` (the last
# may be shorter, and re-runs nothing) and `N` microbatches.


# %% tags=["exercise"]
# BEGIN SOLUTION
def reread(w, delta, i, P, S, N):
    end = min(P, -(-i // S) * S)  # the last stage of i's segment
    tau_fwd = (2 * (P - i) + 1) / N
    tau_recomp = (2 * (end - i) + 1) / N
    return w - (tau_fwd - tau_recomp) * delta


# STUB
# def reread(w, delta, i, P, S, N):
#     return ...  # w, less so many delta
# END SOLUTION


check("7.4", reread)

# %% [markdown]
# Only what lies *behind* the re-run is bridged, $\tau_{\mathrm{fwd}} - \tau_{\mathrm{recomp}}$.
# Look at the stamps: 18 for all three stages of the first segment. A segment steps back as one.
#
# On lesson 3's quadratic, the largest stable rate at delays of 10, 4 and 0, with $\Delta = 5$ as in
# lesson 5; $\varphi = 2.5$ says likewise how sensitive the gradient is to what the re-run reads:

# %%
for name, gamma in (("without T2", None), ("with T2", theory.gamma_star(10))):
    case = theory.Quadratic(10, discrepancy=5, tau_recomp=4, phi=2.5, gamma=gamma)
    print(f"recompute {name}: stable below {theory.threshold(case):.4f}")

# %% [markdown]
# And in training? The digits network at its usual rate, 0.2, twelve stages, 400 steps, three seeds
# each. Say beforehand how many of the nine runs will diverge.

# %%
dead = {}
for name, S, t2 in (("all kept", 0, 0), ("recompute", 3, 0), ("recompute and T2", 3, 0.135)):
    method, steps = pm.PipeMare(recompute=S, t2=t2), lessons.profile().steps("07.seeds")
    runs = [pm.train("digits", method, steps=steps, seed=seed) for seed in range(3)]
    dead[name] = sum(run.diverged is not None for run in runs)
    scores = [f"{run.metrics['accuracy'][-1][1]:.0f}" for run in runs if not run.diverged]
    print(f"{name}: measured {dead[name]} of 3 diverged; accuracy {', '.join(scores) or 'none'}")
assert dead["all kept"] == 3 and dead["recompute and T2"] == 0

# %% [markdown]
# A surprise, if you thought that a third version could only hurt. A re-run replaces old activations
# by fresher ones, so the gradient is less stale than without: here recompute alone keeps training
# alive, though it learns badly with some seeds. With T2 on top it learns with all three. Three
# seeds of one small network prove little, and in the last segment, which re-runs nothing, nothing
# gets fresher.
#
# ## Take-aways
#
# * PipeDream pays with old versions, $\lceil D_i/N \rceil$ a stage; T2 with one average: 4/3 of
#   GPipe's weights and optimizer with momentum, 5/4 with Adam.
# * Reported 2.67 is a formula; a run at its peaks holds 3.20. Ask what a factor counts.
# * Activations grow with $P^2$. Segments of $\sqrt{P}$ make it $2P^{1.5}$, for up to a third
#   more work (a quarter with $P = 16$) and a third more time.
# * A re-run reads weights of its own age; T2 bridges the updates between F and R,
#   $\tau_{\mathrm{fwd}} - \tau_{\mathrm{recomp}}$.
#
# ## Quiz
#
# 1. Twice the microbatches: what becomes of PipeDream's stash? Of T2's average?
# 2. Why does T2 cost 33 % with momentum and 25 % with Adam, though it is the same tensor?
# 3. Which stage's device has to be the largest, with PipeDream?
# 4. $P = 36$: the best $S$, and how many stage activations?
# 5. Why does the last segment not re-run?
#
# <details><summary>Answers</summary>
#
# 1. It halves, but for rounding up; the average stays.
# 2. The same tensor is one in three of what was there, or one in four.
# 3. Stage 1's: the deepest, with most versions and most activations.
# 4. 6; $2 \cdot 36 \cdot 6 = 432$, in place of 1332.
# 5. Its microbatches turn round at once; a re-run would follow its forward directly.
#
# </details>
#
# ## Not shown
#
# Recompute inside a stage (checkpointing), moving activations to the host's memory, sharded
# optimizers, and double-buffered weights (lesson 10).
#
# ## Next
#
# Lesson 08, *End to end*: a ResNet and a Transformer, and whether it all pays off.
