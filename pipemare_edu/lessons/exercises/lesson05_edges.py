"""Lesson 05, second part: the edge with and without T2, and its memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...plan import theory
from ...plan.ledger import ledger
from ..exercise import Exercise, Property
from ..reading import numbers
from .lesson05 import CLOSE, no_number

THREE = "a list of three rates in the order of the question, such as [0.1, 0.2, 0.3]"
SHARE = "a function of the number of optimizer copies that returns a number"
BESIDE = 0.01  # how far beside a rate its two sides are looked at, as a share


# 5.4 the edge at delay 10 and Delta = 5: no T2, D = e^-2, D = 0.5

TAU, DISCREPANCY, DECAYS = 10, 5.0, (None, math.exp(-2), 0.5)
NAMED = ("without T2", "with D = e^-2", "with D = 0.5")


def as_three(answer: Any) -> list[float]:
    """Three numbers, from anything that has an order."""
    values = [] if isinstance(answer, set | frozenset | dict) else numbers(answer)
    if len(values) != 3:
        raise ValueError(f"An answer is {THREE}; this one is {answer!r}.")
    return values


def above_zero(rates: Sequence[float]) -> str:
    """The first rate that is none."""
    for rate, name in zip(rates, NAMED, strict=True):
        if rate <= 0:
            return f"{name} you say {rate:.4g}, and a rate is above 0"
    return ""


def at_the_edges(rates: Sequence[float]) -> str:
    """The first rate that is not within 1 % of where the largest root gets outside."""
    for rate, decay, name in zip(rates, DECAYS, NAMED, strict=True):
        g = None if decay is None else theory.gamma(decay, TAU)
        case = theory.Quadratic(TAU, discrepancy=DISCREPANCY, gamma=g)
        said = f"{name} you say {rate:.4g}"
        if theory.spectral_radius(case.polynomial(rate * (1 - BESIDE))) > 1:
            return f"{said}, and w grows 1 % below that already"
        if theory.spectral_radius(case.polynomial(rate * (1 + BESIDE))) < 1:
            return f"{said}, and w shrinks 1 % above that still"
    return ""


def edges() -> list[float]:
    gammas = [None, math.exp(-2) ** (1 / 10), 0.5 ** (1 / 10)]
    return [theory.threshold(theory.Quadratic(10, discrepancy=5, gamma=g)) for g in gammas]


# 5.5 the memory of delta


def a_part(share: Callable[..., Any]) -> str:
    """The first number of copies at which the answer is no share of something larger."""
    for copies in (1, 2):
        answer = share(copies)
        if fault := no_number(_copies(copies), answer):
            return fault
        if not 0 < answer < 1:
            return f"with {_copies(copies)} you say a share of {answer:.4g}"
    return ""


def as_the_ledger(share: Callable[..., Any]) -> str:
    """The first optimizer at which the ledger of a random pipeline says another share."""
    draw = np.random.default_rng(55)
    for copies in (1, 2, 0, 3):
        weights = draw.integers(10, 1000, size=int(draw.integers(2, 9))).tolist()
        depths = [2 * (len(weights) - i) - 1 for i in range(len(weights))]
        rows = ledger(weights, depths, 1, copies, corrects=True)
        kept = sum(row[k] for row in rows for k in ("weights", "gradients", "optimizer"))
        extra = sum(row["correction"] for row in rows)
        answer = share(copies)
        if fault := no_number(_copies(copies), answer):
            return fault
        if abs(answer - extra / kept) > CLOSE:
            return (
                f"with {_copies(copies)} the ledger of a pipeline of {len(weights)} stages has "
                f"{kept} bytes of weights, gradients and optimizer and {extra} for delta; you say "
                f"a share of {answer:.4g}"
            )
    return ""


def _copies(count: int) -> str:
    return f"{count} optimizer {'copy' if count == 1 else 'copies'}"


def delta_share(copies: int) -> float:
    return 1 / (2 + copies)


EXERCISES: Sequence[Exercise] = (
    Exercise(
        "5.4",
        THREE,
        (
            Property("each is a rate, above 0", above_zero),
            Property("w shrinks just below each of your rates and grows just above", at_the_edges),
        ),
        (
            "theory.threshold(case) gives the edge of a case; the first is "
            "theory.Quadratic(10, discrepancy=5).",
            "For the others add gamma=..., which is not D but your gamma of exercise 5.1.",
            "theory.Quadratic(10, discrepancy=5, gamma=gamma(0.5, 10, 0)) is the third.",
        ),
        edges,
        read=as_three,
    ),
    Exercise(
        "5.5",
        SHARE,
        (
            Property("it is a share between 0 and 1", a_part),
            Property("it is what the ledger of a random pipeline says", as_the_ledger),
        ),
        (
            "What is there anyway? The weights, and other things of the same size.",
            "Weights, gradients, and so many optimizer copies: 2 + copies times the weights.",
            "delta is one more of that size: return 1 / (2 + copies)",
        ),
        delta_share,
        function=True,
    ),
)
