"""The exercises of lesson 03: every wrong answer fails at the property it breaks."""

from __future__ import annotations

import cmath
import math

import pytest
from judging import refused

from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find
from pipemare_edu.plan.theory import Quadratic, lemma1, lemma3, threshold

SIXTH = cmath.exp(1j * math.pi / 3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda tau, rate: [1, -1] + [0] * tau + [rate], "has degree 3"),
        (lambda tau, rate: [1, -1, rate], "has degree 2"),
        (lambda tau, rate: [1, -1] + [0] * (tau - 1) + [-rate], "a simulated course of w gives"),
        (
            lambda tau, rate: [rate] + [0] * (tau - 1) + [-1, 1],
            "from last to first your list would fit",
        ),
        (lambda tau, rate: [0] * (tau + 2), "yours is zero throughout"),
        (lambda tau, rate: [1, 1] + [0] * (tau - 1) + [rate], "a simulated course of w gives"),
        (lambda tau, rate: [1, rate - 1] + [0] * tau, "a simulated course of w gives"),
        (lambda tau, rate: rate, "a list of finite numbers"),
        (lambda tau, rate: [1, math.nan], "a list of finite numbers"),
        (lambda tau: [1], "raised TypeError"),
        ([1, -1, 0.5], "a function of (tau, rate)"),
    ],
    ids="long tau-1-only sign lowest-first zero plus no-delay number nan signature list".split(),
)
def test_polynomials_that_are_wrong(wrong, says):
    refused(find("3.1"), wrong, says)


def test_a_polynomial_may_be_scaled_and_of_any_sequence():
    for right in (
        lambda tau, rate: [2, -2] + [0] * (tau - 1) + [2 * rate],
        lambda tau, rate: Quadratic(tau).polynomial(rate),
        lambda tau, rate: tuple(Quadratic(tau).polynomial(rate)),
    ):
        assert judge(find("3.1"), right).outcome == "right"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda tau, L: 2 / L * math.sin(math.pi / (4 * tau + 4)), "tau=0, L=1"),
        (lambda tau, L: 2 / L * math.sin(math.pi / (4 * (tau - 1) + 2)), "you return -2.0"),
        (lambda tau, L: 2 / L / (tau + 1), "already grows"),
        (lambda tau, L: 2 * math.sin(math.pi / (4 * tau + 2)), "L="),
        (lambda tau, L: 2 * L * math.sin(math.pi / (4 * tau + 2)), "L="),
        (lambda tau, L: 2 / L * math.sin(180 / (4 * tau + 2)), "you return -"),
        (lambda tau, L: -lemma1(tau, L), "a number above 0: for tau=0, L=1 you return"),
        (lambda tau, L: None, "a number above 0: for tau=0, L=1 you return"),
        (lambda tau, L: 1 / (tau * L), "ZeroDivisionError"),
        (lemma1(10), "a function of (tau, curvature)"),
    ],
    ids="off-by-one one-less only-0-and-1 no-L L-above degrees sign none zero number".split(),
)
def test_lemma_1_that_is_wrong(wrong, says):
    refused(find("3.2"), wrong, says)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda tau, b: lemma3(tau), "tau=10, momentum=0.9 you say 0.29892"),
        (lambda tau, b: 1 - b, "tau=10"),
        (lambda tau, b: (1 - b) * lemma1(tau), "tau=10"),
        (lambda tau, b: threshold(Quadratic(10, momentum=0.9)), "tau=1, momentum=0.9"),
        (lambda tau, b: threshold(Quadratic(tau, momentum=0.9)), "momentum=0.5"),
        (lambda tau, b: threshold(Quadratic(tau + 1, momentum=b)), "still shrinks"),
        (lambda tau, b: round(threshold(Quadratic(tau, momentum=b)), 2), "tau=10"),
    ],
    ids="bound tau-1-only scaled one-case one-momentum off-by-one rounded".split(),
)
def test_edges_with_momentum_that_are_wrong(wrong, says):
    refused(find("3.3"), wrong, says)


def test_the_edge_that_the_lesson_states():
    edge = find("3.3").answer()
    assert edge(10, 0.9) == pytest.approx(0.011390, abs=1e-6)
    assert edge(1, 0.9) == pytest.approx(0.1) and lemma3(10) == pytest.approx(0.298920, abs=1e-6)
    assert judge(find("3.3"), lambda t, b: threshold(Quadratic(t, momentum=b))).accepted


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ((1, 6), "yours gives 1"),
        ((-SIXTH, 6), "the root solves"),
        ((1j, 4), "the root solves"),
        ((SIXTH, 3), "it goes -1, 0, ... from step 3, and 1, 0, ... from step 0"),
        ((SIXTH, 5), "it goes 1, 1, ... from step 5, and 1, 0, ... from step 0"),
        ((SIXTH, 12), "it has begun again before step 12"),
        (6, "An answer is a root and a number of steps"),
        ((SIXTH, 6.5), "An answer is a root"),
        ((SIXTH, -6), "An answer is a root"),
        (("z", 6), "An answer is a root"),
        (None, "An answer is a root"),
    ],
)
def test_points_on_the_circle_that_are_wrong(wrong, says):
    refused(find("3.4"), wrong, says)


@pytest.mark.parametrize("right", [(SIXTH, 6), (SIXTH.conjugate(), 6), (0.5 + 0.866j, 6.0)])
def test_either_root_will_do(right):
    assert judge(find("3.4"), right).outcome == "right"
