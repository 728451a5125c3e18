# ruff: noqa: B018, E402, F704
# mypy: ignore-errors
# %% [markdown]
# # 03 · Why it blows up: delayed SGD on a quadratic
#
# **60 minutes** for you; for the machine, {{machine time}}.
#
# **You will do** four things: move the roots of a polynomial until a weight explodes, draw the map
# of which rates are stable at which delay, compute its edge yourself, and test on a real network
# whether it keeps to that edge.
#
# **You will learn** why old weights are fatal at one learning rate and harmless at a smaller one,
# the law $\alpha = O(1/\tau)$ behind PipeMare's first fix, and how far such a theory carries.
#
# **You need** lesson 2 (staleness $\tau$), complex numbers as points in a plane, and what an
# eigenvalue is.

# %%
import math

import numpy as np

from pipemare_edu import lessons, panels
from pipemare_edu.lessons import check, compare, doctor, hint, predict, use
from pipemare_edu.plan import theory
from pipemare_edu.studies import threshold

doctor()

# %% [markdown]
# ## One weight, one delay
#
# Lesson 2 ended with a learning rate at which the synchronous pipeline was fine and the
# asynchronous one died. To see why, take away all that can be taken away: one weight $w$, the loss
# $\frac{L}{2}w^2$ with curvature $L$, and gradients that are $\tau$ steps old:
#
# $$w_{t+1} = w_t - \alpha L\, w_{t-\tau} \qquad (3.1)$$
#
# with $w = 1$ up to the first step. Without delay each step multiplies $w$ by $1 - \alpha L$, so
# $w$ shrinks as long as $\alpha < 2/L$. **What changes with a delay of 10 steps?** Take $L = 1$.
# From which rate on do you expect $w$ to grow?

# %%
EDGE = "the rate from which w grows at delay 10"
# BEGIN SOLUTION
predict(EDGE, 0.2)
# STUB
# predict(EDGE, ...)
# END SOLUTION

# %% [markdown]
# Try a rate that is a quarter of what is safe without delay. The next call runs equation (3.1) for
# 120 steps (the line), and trains one weight with the course's own asynchronous trainer (the dots).

# %%
panels.roots(rate=0.5, tau=10)

# %% [markdown]
# On the right $w$ swings wider and wider, soon beyond the picture's $\pm 20$. The other two
# pictures say why, and they are worth a slow look.
#
# Try a solution of the form $w_t = z^t$, with a complex number $z$. Put into (3.1) and divided by
# $z^{t-\tau}$, it gives the *characteristic polynomial*
#
# $$z^\tau (z - 1) + \alpha L = 0 \qquad (3.2)$$
#
# It has $\tau + 1$ roots, and every course of $w$ is a mixture of their powers. A root inside the
# unit circle is a part that dies out, one outside is a part that grows: per step by the root's
# *modulus*, its distance from zero, while its angle makes $w$ swing. So one rule decides all:
#
# > $w$ is **stable** if and only if **all** roots lie **inside** the unit circle.
#
# The middle picture shows the roots, a cross where one is outside. The left one is a map: rate to
# the right, delay upwards, coloured by the modulus of the largest root; blue shrinks, orange
# grows, and the line between them is the *edge*. The diamond is where you are.
#
# Now move it. Drag the sliders, or focus one and use the arrow keys: all three pictures follow.

# %%
panel = panels.Roots(rate=0.25, tau=4)
panel

# %% [markdown]
# Things to try: start at a small rate, where one root is real and close to 1 (slow, but no
# swinging). Raise the rate until two roots meet on the real axis and leave it as a pair: from
# there on $w$ swings. Raise it further, until the pair crosses the circle. Then lengthen the
# delay.
#
# The goal asks for the edge at delay 10, and for a run of the real trainer there. This cell does
# it too:

# %%
panel.controls["tau"].value = 10
panel.controls["rate"].value = theory.lemma1(10)  # the edge: Lemma 1 comes below
panel.run.click()
print(await panel.wait(), "- goal reached:", panel.reached())

# %% [markdown]
# **Exercise 3.1.** Write the polynomial (3.2), for $L = 1$, as the list of its coefficients,
# highest power first. The check simulates equation (3.1) from random beginnings and multiplies your
# coefficients with the weights that come out: the sum must be zero.


# %% tags=["exercise"]
def characteristic(tau, rate):  # tau is 1 or more
    # BEGIN SOLUTION
    return [1, -1] + [0] * (tau - 1) + [rate]
    # STUB
    # return ...
    # END SOLUTION


check("3.1", characteristic)

# %% [markdown]
# Stuck? The next cell gives one hint more each time:

# %%
hint("3.1")

# %% [markdown]
# Does it know what you saw in the first figure, at rate 0.5 and delay 10?

# %%
largest = max(abs(np.roots(use("3.1", characteristic)(10, 0.5))))
assert abs(largest - 1.0877) < 1e-4
print(f"the largest modulus is {largest:.4f}: w grows by {100 * largest - 100:.1f} % a step")

# %% [markdown]
# With the polynomial in hand, the question from above has an answer to any number of digits: a few
# halvings find the rate at which the largest modulus is 1. It also has an answer on paper, the
# smallest rate at which a root reaches the circle:
#
# > **Lemma 1.** With delay $\tau$, $w$ is stable if and only if
# > $0 < \alpha < \frac{2}{L}\,\sin\frac{\pi}{4\tau + 2}$.
#
# <details><summary>Where it comes from</summary>
#
# Write (3.2) as $z^\tau (z - 1) = -\alpha L$ and put in a point of the circle, $z = e^{i\theta}$
# with $0 < \theta \le \pi$. Both sides must agree in length and in angle. Lengths:
# $|z - 1| = 2 \sin\frac{\theta}{2}$, so $\alpha L = 2 \sin\frac{\theta}{2}$: the smaller the angle,
# the smaller the rate. Angles: $z - 1$ points at $\frac{\theta + \pi}{2}$ and a negative number at
# $\pi$, so $\tau\theta + \frac{\theta + \pi}{2} = \pi$ up to full turns; the smallest solution is
# $\theta = \frac{\pi}{2\tau + 1}$. Below that rate no root can have crossed, and near rate 0 all
# are inside but one, which moves inwards from 1.
#
# </details>
#
# **Exercise 3.2.** Write it down as a function of $\tau$ and $L$. The check looks at the roots a
# thousandth below and above your rate.


# %% tags=["exercise"]
def alpha_max(tau, curvature):
    # BEGIN SOLUTION
    return 2 / curvature * math.sin(math.pi / (4 * tau + 2))
    # STUB
    # return ...
    # END SOLUTION


check("3.2", alpha_max)

# %% [markdown]
# What does it say about delay 10, and about much longer ones?

# %%
alpha_max = use("3.2", alpha_max)
edge = alpha_max(10, 1)
assert abs(edge - 0.149460) < 1e-6
print(f"delay 10: your guess {lessons.prediction(EDGE) or 'is missing'}, Lemma 1 {edge:.6f}")
for tau in (0, 1, 5, 10, 20, 40):
    rate = alpha_max(tau, 1)
    print(f"tau {tau:>2}: rate below {rate:.4f}, times tau {tau * rate:.3f}")
print(f"pi/2 is {math.pi / 2:.3f}")

# %% [markdown]
# The last column settles down: for long delays the edge is $\pi/(2 \tau L)$. **Twice the delay,
# half the rate.** That is the whole story of this course's cliff: a pipeline with more stages has
# longer delays, its edge moves left, and a rate that was fine is suddenly beyond it. It is also
# the idea of PipeMare's first fix, T1 (lesson 4): a stage with delay $\tau$ gets a rate divided by
# $\tau$.
#
# ## The map, checked
#
# Is the map right? And real gradients are noisy: every minibatch has its own. **Does noise move
# the edge?** Say by which factor you expect the largest stable rate to change: 1 is not at all,
# 0.5 is half.

# %%
NOISE = "the factor by which noise moves the edge"
# BEGIN SOLUTION
predict(NOISE, 0.8)
# STUB
# predict(NOISE, ...)
# END SOLUTION

# %% [markdown]
# This panel trains one weight with the real trainer at four delays, once a fifth below the edge
# and once a quarter above it, and marks what happened: a disc settled, a cross did not. Run it as
# it is. Then switch the noise on, and run again.

# %%
plane = panels.StabilityMap()
plane

# %% [markdown]
# The same from a cell, with noise, and the map that comes out:

# %%
plane.controls["noise"].value = "on"
plane.run.click()
print(await plane.wait(), "- goal reached:", plane.reached())
assert [mark.settled for mark in plane.result()] == [True, False] * 4
plane.figures["map"].shown

# %% [markdown]
# The edge stays where it was (your factor should have been 1): noise that does not depend on $w$ is
# added to equation (3.1) from outside and does not touch its roots. What it does is make $w$
# wander, and the colour now shows how far: the closer to the edge, the longer a disturbance echoes,
# and the further $w$ wanders. A rate just inside the edge is stable, and still a bad rate. Hover
# over a mark to compare the wandering that was measured with the one that theory gives.
#
# ## Momentum makes it worse
#
# Heavy-ball momentum $b$ adds $b\,(w_t - w_{t-1})$ to each step. For $\tau \ge 1$ the polynomial
# becomes
#
# $$z^{\tau-1}(z-1)(z-b) + \alpha L = 0 \qquad (3.3)$$
#
# There is no neat formula for its edge. The paper's Lemma 3 gives a bound: by
# $\frac{4}{L}\sin\frac{\pi}{4\tau+2}$ at the latest it is unstable. How close to the truth is that?
#
# **Exercise 3.3.** Find the edge for $L = 1$ by bisection, to four significant digits or more.
# Lemma 3's rate is a good place to begin: there you are surely outside. `hint("3.3")` starts with
# how to build the coefficients.


# %% tags=["exercise"]
def edge(tau, momentum):  # tau is 1 or more, momentum between 0 and 1
    # BEGIN SOLUTION
    low, high = 0.0, theory.lemma3(tau)
    for _ in range(40):
        middle = (low + high) / 2
        polynomial = [1, -(1 + momentum), momentum] + [0] * (tau - 1)
        polynomial[-1] += middle
        grows = max(abs(np.roots(polynomial))) > 1
        low, high = (low, middle) if grows else (middle, high)
    return low
    # STUB
    # return ...
    # END SOLUTION


check("3.3", edge)

# %% [markdown]
# With the momentum that everybody uses, and our delay of 10:

# %%
found, bound = use("3.3", edge)(10, 0.9), theory.lemma3(10)
assert abs(found - 0.011390) < 1e-5 and abs(bound - 0.298920) < 1e-6
print(f"momentum 0.9, delay 10: unstable from {found:.6f}, bound {bound:.6f}")
print(f"without momentum: {theory.lemma1(10):.6f}, {theory.lemma1(10) / found:.0f} times as much")

# %% [markdown]
# The bound is true and nearly useless: it lies 26 times too high. Remember that when you meet
# "some rate below this one is unstable" in a paper. Try momentum in the first panel as well: its
# roots crowd towards 1, where little is needed to push one out.
#
# **Exercise 3.4.** One point of the map can be done in the head. At $\tau = 1$, $\alpha = 1$,
# $L = 1$ the weight neither shrinks nor grows: $w$ goes 1, 0, -1, -1, 0, 1, 1, 0 and so on. Why?
# Equation (3.2) is quadratic there. Give one of its roots, as a Python complex number, and the
# number of steps after which the whole sequence repeats itself for the first time.

# %% tags=["exercise"]
# BEGIN SOLUTION
answer = complex(0.5, math.sqrt(3) / 2), 6
# STUB
# answer = ...  # a pair: (root, steps)
# END SOLUTION
check("3.4", answer)

# %% [markdown]
# <details><summary>Why</summary>
#
# The two roots are conjugate and their product is the last coefficient, 1: so each has modulus 1,
# exactly on the circle. Their angle is 60 degrees, a sixth of a turn. Lemma 1 agrees:
# $2 \sin(\pi/6) = 1$.
#
# </details>
#
# ## Does a network obey?
#
# A network is no quadratic, has thousands of weights, and in a pipeline each stage has a delay of
# its own. Close to a minimum, though, every smooth loss looks like a bowl, and the steepest
# direction of a bowl decides which rate is too high. So here is a way to predict:
#
# 1. Train a small network to the bottom of its loss: `batchnorm`, 4 layers of Linear 16, BatchNorm
#    and ReLU, on 50 images, until the loss is 0 but for rounding.
# 2. Measure the largest eigenvalue $L$ of its Hessian there, and the eigenvector, by *power
#    iteration*: multiply a random vector by the Hessian again and again; autograd can do that
#    without ever building the matrix.
# 3. A single delay: weigh the stages' delays 7, 5, 3 and 1 by the share of the eigenvector (of its
#    squared length) that lies in each stage.
# 4. Put both into Lemma 1.
#
# And a way to find out: push the weights by a hair along that eigenvector, train asynchronously at
# a constant rate with the real trainer, and see whether the push dies out. Halve the interval
# between a rate that stayed and one that left, six times.
#
# The curvature will come out near 14, and most of the eigenvector lies in stage 1. Your guess of
# the largest stable rate?

# %%
RATE = "the largest stable rate of the network"
# BEGIN SOLUTION
predict(RATE, 0.02)
# STUB
# predict(RATE, ...)
# END SOLUTION

# %% [markdown]
# Press Run. The white marks are runs that were made beforehand and shipped with this lesson; what
# you run is drawn over them in yellow, and your guess as a dashed line.

# %%
network = panels.NetworkThreshold(guess=lessons.prediction(RATE))
network

# %% [markdown]
# Or let this cell press it:

# %%
network.run.click()
print(await network.wait())
near = network.result()
print(compare(RATE, near.rate, digits=4))
print(f"over Lemma 1: measured {near.multiple:.3f}")
assert 0.9 < near.multiple < 1.2
assert 13 < near.at.curvature < 15 and near.at.shares[0] > 0.7
network.figures["map"].shown

# %% [markdown]
# A theory of one weight predicts a network to within some per cent: not bad. Two controls show
# which of its parts hold. Without delay the edge must be at $2/L$, or we have measured the wrong
# curvature. And with the same delay on every stage there is nothing to weigh.

# %%
for delays in ("0", "4"):
    network.controls["delays"].value = delays
    network.run.click()
    await network.wait()
    print(f"delay {delays} on all stages, over Lemma 1: measured {network.result().multiple:.3f}")
    assert abs(network.result().multiple - 1) < 0.01
network.figures["map"].shown

# %% [markdown]
# There it is exact. So what was a little off before is the weighing: one number cannot stand for
# four delays. Now one run more, at a point of the map that has a white mark; it should go the same
# way.

# %%
network.controls["what"].value, network.controls["multiple"].value = "one more", 1.25
network.run.click()
print(await network.wait(), "- as shipped:", "as did the shipped run" in network.status.value)
network.figures["growth"].shown

# %% [markdown]
# Above the edge the push grows steadily, swinging as the roots said it would, until it is large
# enough to leave the bowl.
#
# **And from scratch?** The same question with the weights as they were initialized, and the
# curvature measured there. How good will the prediction be?

# %%
for name, value in {"start": "scratch", "delays": "lockstep", "what": "find the edge"}.items():
    network.controls[name].value = value
network.run.click()
print(await network.wait())
print(f"from scratch, over Lemma 1: measured {network.result().multiple:.1f}")
assert network.result().multiple > 3

# %% [markdown]
# Far off: this network trains at rates many times higher than Lemma 1 allows. At the start the
# weights do not stay where the curvature was measured: one step later it is another one. Lemma 1
# says which rates a minimum can *hold*, not which ones can *reach* it.
#
# ## Four networks, five seeds
#
# One network is an anecdote. The same was done for four, with five seeds each (about ten minutes,
# `python -m pipemare_edu.studies.threshold`); these are the shipped results, mean ± standard
# deviation over the seeds. `deep` is `batchnorm` with 8 wider layers, `tanh` has 6 layers without
# any norm, `residual` 6 with skip connections.

# %%
rows = threshold.rows()
print(threshold.table(rows))
for prediction in ("control", "uniform", "linear"):
    assert all(abs(row.ratio(prediction) - 1) < 0.005 for row in rows)
assert all(row.ratio("longest") > 1 for row in rows)
threshold.chart(rows)

# %% [markdown]
# Every dot is a rate that was found over the rate that was predicted, so 1 is a bull's-eye. The
# first two rows sit on it, for four quite different networks: without delay $2/L$ holds, and with
# one delay for all stages Lemma 1 holds. With a delay for each stage, its one weighted number
# (third row) is right to a tenth in `deep`, to a third in `batchnorm` and `tanh`, and off by a
# factor of up to 2.2 in `residual`. Two things are missing from it:
#
# * Echoes of different age partly cancel, so several delays do less harm than their mean. The row
#   *one direction* gives each part of the eigenvector its own stage's delay; for `deep` and `tanh`
#   it is right to one or two per cent.
# * Another direction, less steep but in stages with older weights, can be the first to go. The row
#   *all directions* leaves none out, and is right to half a per cent everywhere.
#
# So the linear theory holds, and the single number is what fails. Two practical readings: Lemma 1
# with the *longest* delay was safe every time, and with the mean delay it was not. And the last
# row repeats what you saw: from scratch, no prediction.
#
# ## Take-aways
#
# * A weight with delayed gradients is stable if and only if all roots of its characteristic
#   polynomial lie inside the unit circle.
# * Lemma 1: the largest stable rate falls like $1/\tau$. Noise does not move that edge; momentum
#   moves it far to the left.
# * Near a minimum networks obey, if each stage's own delay is taken into account. From scratch they
#   do not.
#
# ## Quiz
#
# 1. A pipeline gets twice as many stages. What becomes of the largest stable rate of stage 1?
# 2. A root lies at $-0.5$. What does its part of $w$ do?
# 3. Why does noise not move the edge?
# 4. Lemma 3 says "unstable by 0.3". Is 0.2 stable?
# 5. Which delay would you put into Lemma 1 if you must be on the safe side?
#
# <details><summary>Answers</summary>
#
# 1. It is about halved: its delay is about twice as long.
# 2. It changes sign each step and halves in size.
# 3. It is added from outside; the polynomial, and so its roots, stay the same.
# 4. Nobody knows: the lemma gives an upper bound only. With momentum 0.9 and delay 10 it is far
#    outside.
# 5. The longest.
#
# </details>
#
# ## Not shown
#
# The theory has one dimension, one constant delay and plain or heavy-ball SGD. Nothing in it covers
# a delay per stage in one coupled network (the last rows of the table are this course's own
# extension), nor Adam, nor a delay that varies, nor noise that grows with $w$. All backward passes
# here were those of equation (3.1): what happens when forward and backward read *different* weights
# is lesson 5. And a rate beyond the edge does not always end in infinity: a network may leave a
# sharp minimum and settle in a flatter one.
#
# ## Next
#
# Lesson 04, *Fix 1: learning-rate rescheduling*: Lemma 1 turned into a learning rate for each
# stage.
