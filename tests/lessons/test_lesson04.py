"""The exercises of lesson 04: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import math

import pytest
import torch
from judging import refused
from torch.optim.lr_scheduler import LambdaLR, LinearLR

from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find, lesson04_choice

THREE, SCHEDULER, FACTOR, PAIR = (find(f"4.{n}") for n in range(1, 5))


# 4.1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([1, 7**-0.5, 1 / 7], "at k = 0 nothing has been annealed yet"),  # the wrong way round
        ([7, 7**0.5, 1], "multiply the rate by tau instead of dividing"),  # wrong sign
        ([1 / 8, 8**-0.5, 1], "tau is 7, not 8"),  # off by one
        ([1 / 7, 4 / 7, 1], "the mean of the two ends"),
        ([1 / 7, 2 / 7, 1], "twice the first"),
        ([1 / 7, 1 / 14, 1], "half of the first"),
        ([1 / 7, 7**-0.5, 1 / 7], "from k = K on the base rate is back: yours is 0.1429"),
        ([0.14, 0.378, 1], "yours is 0.14; give three digits"),
        ([1 / 7, 0.4, 1], "yours is 0.4; give three digits"),
        ([1 / 7, 1], "this one is [0.14"),
        (["1/7", "x", "1"], "An answer is a list of three numbers"),
    ],
)
def test_factors_are_wrong(answer, says) -> None:
    refused(THREE, answer, says)


@pytest.mark.parametrize("answer", [[0.143, 0.378, 1.0], (1 / 7, 1 / math.sqrt(7), 1)])
def test_factors_are_right(answer) -> None:
    assert judge(THREE, answer).outcome == "right"


# 4.2


def lambdas(f):
    return lambda optimizer, tau, K: LambdaLR(optimizer, lambda k: f(k, tau, K))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            lambdas(lambda k, tau, K: tau ** (1 - min(k / K, 1))),
            "step 0 has the rate 0.5, not 0.02",
        ),
        (lambdas(lambda k, tau, K: tau ** -(1 - min((k + 1) / K, 1))), "step 0"),  # off by one
        (lambdas(lambda k, tau, K: tau ** -min(k / K, 1)), "step 0 has the rate 0.1"),
        (lambdas(lambda k, tau, K: 1 / tau), "step 1 has the rate"),  # never annealed
        (lambdas(lambda k, tau, K: tau ** -(1 - k / K)), "from step K on"),  # not capped
        (lambdas(lambda k, tau, K: 1 / tau + (1 - 1 / tau) * min(k / K, 1)), "step 1"),
        (lambdas(lambda k, tau, K: tau ** -(1 - min(k / 10, 1))), "K=8"),  # for one K only
        (lambda optimizer, tau, K: LinearLR(optimizer, 1 / tau, 1.0, K), "step 1 has the rate"),
        (lambda optimizer, tau, K: 1 / tau, "it returns a scheduler"),
        (lambda optimizer, tau, K: optimizer, "yours returns the optimizer"),
        (lambda optimizer, tau, K: optimizer.lr, "(<SGD>, 5, 10) raised AttributeError"),
        (3, "An answer is a function of (optimizer, tau, K)"),
    ],
)
def test_scheduler_is_wrong(answer, says) -> None:
    refused(SCHEDULER, answer, says)


class Own:
    """A scheduler that is none of torch's."""

    def __init__(self, optimizer, tau, K) -> None:
        self.group, self.tau, self.K, self.k = optimizer.param_groups[0], tau, K, -1
        self.base = self.group["lr"]
        self.step()

    def step(self) -> None:
        self.k += 1
        self.group["lr"] = self.base * self.tau ** -power(self.k, self.K)


@pytest.mark.parametrize(
    "answer",
    [
        Own,
        lambda optimizer, tau, K: lambda k: tau ** -max(1 - k / K, 0),
        lambdas(lambda k, tau, K: max(tau, 1) ** -(1 - min(k / K, 1))),
        lambdas(lambda k, tau, K: torch.tensor(float(tau)).double() ** -(1 - min(k / K, 1))),
    ],
)
def test_scheduler_in_other_writings(answer) -> None:
    assert judge(SCHEDULER, answer).outcome == "right"


# 4.3


def power(k, K):
    return 1 - min(k / K, 1)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda k, tau, K: tau ** -power(k, K), "no rate is ever raised: with tau=0.125"),
        (lambda k, tau, K: min(tau, 1) ** -power(k, K), "no rate is ever raised"),
        (lambda k, tau, K: (tau + 1) ** -power(k, K), "a delay of 1 or less keeps the base rate"),
        (lambda k, tau, K: max(tau, 2) ** -power(k, K), "keeps the base rate"),
        (lambda k, tau, K: min(tau ** power(k, K), 1), "keeps the base rate"),
        (lambda k, tau, K: max(math.ceil(tau), 1) ** -power(k, K), "with tau=1.25"),
        (lambda k, tau, K: 1.0, "any other stage has the factor"),
        (lambda k, tau, K: None, "with tau=7 and K=8 yours is None"),
    ],
)
def test_factor_is_wrong(answer, says) -> None:
    refused(FACTOR, answer, says)


@pytest.mark.parametrize(
    "answer",
    [
        lambda k, tau, K: min(tau ** -power(k, K), 1),
        lambda k, tau, K: torch.tensor(float(max(tau, 1))) ** -power(k, K),
    ],
)
def test_factor_in_another_writing(answer) -> None:
    assert judge(FACTOR, answer).outcome == "right"


# 4.4


def left(k):
    return 0.2 * (1 + math.cos(math.pi * k / 400)) / 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((50, left(50)), "plain asynchronous training, which is what T1 turns into, bears"),
        ((100, left(100)), "at a rate of 0.171 it diverged at step"),
        ((300, left(100)), "at step 300 of 400 yours is 0.1707, and the cosine's 0.02929"),
        ((300, 0.2 / 23), "stage 1's first rate is something else"),
        ((300, 0.2 * 300 / 400), "the second number is the base rate at step K"),
        ((1600, 0.0), "T1 ends within the run: yours is 1600"),
        ((0, 0.2), "yours is 0"),
        ((250.5, left(250.5)), "yours is 250.5"),
        (400, "An answer is a pair"),
        ((400,), "An answer is a pair"),
    ],
)
def test_choice_is_wrong(answer, says) -> None:
    refused(PAIR, answer, says)


def test_the_reference_choice_and_one_without_a_margin() -> None:
    assert judge(PAIR, PAIR.answer()).outcome == "right"
    assert lesson04_choice.left_is_safe((230, left(230))) == ""
    assert "at a rate of 0.153 it diverged" in lesson04_choice.with_a_margin((230, left(230)))
