"""The exercises of lesson 05: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import math

import pytest
import torch
from judging import refused

from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find
from pipemare_edu.plan import theory

GAMMA, DELTA, EXACT, EDGES, SHARE = (find(f"5.{n}") for n in range(1, 6))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda D, fwd, bkwd: D ** (fwd - bkwd), "an update 10 steps old counts 7.89e-31"),
        (lambda D, fwd, bkwd: D ** (1 / fwd), "tau_bkwd=3 yours is 0.5623"),
        (lambda D, fwd, bkwd: D ** (-1 / (fwd - bkwd)), "you return 1.072"),
        (lambda D, fwd, bkwd: D ** (1 / (fwd - bkwd + 1)), "an update 10 steps old counts 0.533"),
        (lambda D, fwd, bkwd: 0.5 ** (1 / 10), "D=0.1, tau_fwd=4"),  # right for one case only
        (lambda D, fwd, bkwd: 1 - 2 / (fwd - bkwd + 1), "you return 0."),
        (lambda D, fwd, bkwd: D / (fwd - bkwd), "yours is 0.05"),
        (lambda D, fwd, bkwd: D ** (1 / round(fwd - bkwd)), "steps old counts"),
        (lambda D, fwd, bkwd: "D", "you return 'D'"),
        (lambda D, fwd, bkwd: 1 / 0, "raised ZeroDivisionError"),
        (0.87, "An answer is a function of (D, tau_fwd, tau_bkwd)"),
    ],
)
def test_gamma_is_wrong(answer, says) -> None:
    refused(GAMMA, answer, says)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda d, old, new, g: (1 - g) * d + g * (new - old), "with gamma=0 "),
        (
            lambda d, old, new, g: g * d + (1 - g) * (old - new),
            "moves 0.5 a step, it tends to -0.5",
        ),
        (lambda d, old, new, g: g * d + (new - old), "with gamma=0.5 and a weight that moves 0.5"),
        (lambda d, old, new, g: g * (d + (1 - g) * (new - old)), "it tends to"),
        (lambda d, old, new, g: new - old, "with gamma=0.5 and weights"),  # right for gamma = 0
        (lambda d, old, new, g: 0.9 * d + 0.1 * (new - old), "with gamma=0 and weights"),
        (lambda d, old, new, g: g * d + (1 - g) * new, "it tends to"),
        (lambda d, old, new, g: None, "you return None"),
        (lambda d, old, new, g: math.nan, "you return nan"),
        (0.5, "An answer is a function of (delta, old, new, gamma)"),
    ],
)
def test_delta_is_wrong(answer, says) -> None:
    refused(DELTA, answer, says)


def test_32_bit_numbers_are_exact_enough() -> None:
    def gamma(D, fwd, bkwd):
        return torch.tensor(D) ** (1 / (fwd - bkwd))

    def delta(d, old, new, gamma):
        return torch.lerp(torch.tensor(float(new - old)), torch.tensor(float(d)), gamma)

    assert judge(GAMMA, gamma).outcome == judge(DELTA, delta).outcome == "right"


def test_delta_written_with_the_average_is_right() -> None:
    def by_averages(delta, old, new, gamma):  # w - m from delta, then one step of m
        if gamma == 1:
            return delta
        average = gamma * (old - delta / (1 - gamma)) + (1 - gamma) * old
        return (1 - gamma) * (new - average)

    assert judge(DELTA, by_averages).outcome == "right"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (1, "yours is 1"),
        (-0.5, "yours is -0.5"),
        (0.5, "with 0.5 the read is off by up to"),
        (math.exp(-2), "a steady weight forgives any gamma"),
        (theory.gamma_star(2), "off by"),
        ("0", "An answer is a number"),
    ],
)
def test_exact_gamma_is_wrong(answer, says) -> None:
    refused(EXACT, answer, says)


BARE, BEST, HALF = EDGES.answer()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([theory.lemma1(10), BEST, HALF], "without T2 you say 0.1495, and w grows"),
        ([BARE, HALF, BEST], "with D = e^-2 you say 0.029, and w shrinks"),
        ([BARE, BEST, BEST], "with D = 0.5 you say 0.09711, and w grows"),
        ([BARE, theory.threshold(theory.Quadratic(10, discrepancy=5, gamma=0.1353)), HALF], "e^-2"),
        ([BARE, theory.threshold(theory.Quadratic(9, discrepancy=5, gamma=0.8)), HALF], "e^-2"),
        ([-BARE, BEST, HALF], "a rate is above 0"),
        ([0.01, BEST, HALF], "without T2 you say 0.01, and w shrinks 1 % above"),
        ([BARE, BEST], "An answer is a list of three rates"),
        ({BARE, BEST, HALF}, "in the order of the question"),
        ("0.1 0.2 0.3", "An answer is a list of three rates"),
    ],
)
def test_edges_are_wrong(answer, says) -> None:
    refused(EDGES, answer, says)


def test_edges_are_the_test_values_and_may_be_read_off_the_map() -> None:
    assert [BARE, BEST, HALF] == pytest.approx([0.017556, 0.097106, 0.028998], abs=1e-6)
    assert judge(EDGES, (0.0176, 0.0971, 0.029)).outcome == "right"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda copies: 1 / (1 + copies), "with 1 optimizer copy"),  # forgets the gradients
        (lambda copies: 1 / (3 + copies), "you say a share of 0.25"),  # counts delta as there
        (lambda copies: 1 / 3, "with 2 optimizer copies"),  # right for one case only
        (lambda copies: 2 + copies, "you say a share of 3"),
        (lambda copies: 100 / (2 + copies), "you say a share of 33.33"),
        (lambda copies: "a third", "for 1 optimizer copy you return 'a third'"),
        (1 / 3, "An answer is a function of the number of optimizer copies"),
    ],
)
def test_share_is_wrong(answer, says) -> None:
    refused(SHARE, answer, says)
