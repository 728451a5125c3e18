"""Lesson 04: T1's factor, T1 as a torch scheduler, and the fractional delay."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

from ...trainer.rates import t1_factor
from ..exercise import Exercise, Property
from ..reading import numbers

THREE = "a list of three numbers: the factors at k = 0, at k = K/2 and at k = K"
SCHEDULER = "a function of (optimizer, tau, K) that returns a torch scheduler"
FACTOR = "a function of (k, tau, K) that returns a number"
TAU = 7


# 4.1 the factor


def as_three(answer: Any) -> list[float]:
    found = numbers(answer)
    if len(found) != 3:
        raise ValueError(f"An answer is {THREE}; this one is {answer!r}.")
    return found


def starts_at(factors: Sequence[float]) -> str:
    start = factors[0]
    if _close(start, 1 / TAU):
        return ""
    others = {
        7.0: "; that would multiply the rate by tau instead of dividing",
        1.0: "; at k = 0 nothing has been annealed yet",
        1 / 8: "; tau is 7, not 8",
    }
    return f"yours is {start:.4g}{_why(start, 1 / TAU, others)}"


def halfway(factors: Sequence[float]) -> str:
    middle = factors[1]
    if _close(middle, TAU**-0.5):
        return ""
    others = {
        (1 + 1 / TAU) / 2: ", the mean of the two ends: but it is the power that falls evenly",
        0.5 / TAU: ", half of the first: but it is the power that is halved",
        2 / TAU: ", twice the first: but it is the power that is halved",
        TAU**0.5: ", which is above 1: the power is negative",
    }
    return f"yours is {middle:.4g}{_why(middle, TAU**-0.5, others)}"


def ends_at(factors: Sequence[float]) -> str:
    return "" if _close(factors[2], 1) else f"yours is {factors[2]:.4g}"


def _close(value: float, right: float, within: float = 0.01) -> bool:
    return abs(value - right) <= within * abs(right)


def _why(value: float, right: float, others: Mapping[float, str]) -> str:
    """What a number is that is not the right one: among `others`, or rounded too far."""
    if _close(value, right, 0.1):
        return "; give three digits, or an expression such as 1 / 3"
    return next((said for other, said in others.items() if _close(value, other)), "")


def three_factors() -> list[float]:
    return [7**-1.0, 7**-0.5, 7**-0.0]


# 4.2 a torch scheduler


def rates_of(answer: Callable[..., Any], tau: float, annealing: int, steps: int) -> list[float]:
    """The rates with which an optimizer of rate 0.1 steps, under what the answer returns."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = answer(optimizer, tau, annealing)
    if not _steps(scheduler):
        scheduler = LambdaLR(optimizer, scheduler)
    seen = []
    for _ in range(steps):
        seen.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return seen


def is_scheduler(answer: Callable[..., Any]) -> str:
    made = answer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), 5, 10)
    if isinstance(made, torch.optim.Optimizer):
        return "yours returns the optimizer"
    return "" if _steps(made) or callable(made) else f"yours returns {made!r}"


def _steps(made: Any) -> bool:
    """Whether it can be stepped as a scheduler is, torch's or a learner's own."""
    return callable(getattr(made, "step", None))


def whole_cases() -> list[tuple[float, int]]:
    """Delays of 1 or more, and Ks."""
    draw = random.Random(4)
    some = [(draw.choice((1, 3, 2.5, 7, 11.5, 23)), draw.randint(2, 30)) for _ in range(8)]
    return [(5, 10), (27, 8), (1, 6), (1.25, 5), *some]


def begins(answer: Callable[..., Any]) -> str:
    return _differs(answer, lambda k, annealing: k == 0)


def anneals(answer: Callable[..., Any]) -> str:
    return _differs(answer, lambda k, annealing: k < annealing)


def ends(answer: Callable[..., Any]) -> str:
    return _differs(answer, lambda k, annealing: True)


def _differs(answer: Callable[..., Any], looked_at: Callable[[int, int], bool]) -> str:
    """The first step at which a rate is not T1's."""
    for tau, annealing in whole_cases():
        seen = rates_of(answer, tau, annealing, annealing + 5)
        for k, rate in enumerate(seen):
            right = 0.1 * t1_factor(tau, k, annealing)
            if looked_at(k, annealing) and not math.isclose(rate, right, rel_tol=1e-6):
                return (
                    f"with tau={tau}, K={annealing} and a base rate of 0.1, step {k} has the rate "
                    f"{rate:.5g}, not {right:.5g}"
                )
    return ""


def t1(optimizer: Any, tau: float, K: int) -> Any:
    def factor(k):
        return tau ** -(1 - min(k / K, 1))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


# 4.3 a fractional delay


def tried(answer: Callable[..., Any]) -> list[tuple[int, float, int, float]]:
    """(k, tau, K, the answer there), delays below 1 among them."""
    draw = random.Random(5)
    taus = [0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.75, 7, 23]
    grid = [(k, tau, 8) for tau in taus for k in (0, 4, 7, 8, 20)]
    grid += [(draw.randint(0, 99), draw.choice(taus), draw.randint(1, 60)) for _ in range(20)]
    return [(*point, float(answer(*point))) for point in grid]


def is_a_number(answer: Callable[..., Any]) -> str:
    value = answer(4, 7, 8)
    return "" if numbers([value]) else f"at k=4, with tau=7 and K=8 yours is {value!r}"


def never_raises(answer: Callable[..., Any]) -> str:
    for k, tau, annealing, found in tried(answer):
        if found > 1 + 1e-6:
            return f"with tau={tau}, K={annealing}, at k={k} yours is {found:.4g}"
    return ""


def leaves_small_alone(answer: Callable[..., Any]) -> str:
    for k, tau, annealing, found in tried(answer):
        if tau <= 1 and not math.isclose(found, 1, rel_tol=1e-6):
            return f"with tau={tau}, K={annealing}, at k={k} yours is {found:.4g}"
    return ""


def t1_elsewhere(answer: Callable[..., Any]) -> str:
    for k, tau, annealing, found in tried(answer):
        right = t1_factor(tau, k, annealing)
        if not math.isclose(found, right, rel_tol=1e-6):
            return f"with tau={tau}, K={annealing}, at k={k} yours is {found:.5g}, not {right:.5g}"
    return ""


def safe_factor(k: int, tau: float, K: int) -> float:
    return max(tau, 1) ** -(1 - min(k / K, 1))


EXERCISES = (
    Exercise(
        "4.1",
        THREE,
        (
            Property("at k = 0 the rate is divided by tau", starts_at),
            Property("at k = K/2 the power is one half", halfway),
            Property("from k = K on the base rate is back", ends_at),
        ),
        (
            "Put k into p = 1 - min(k/K, 1) first. What is p at k = 0, K/2 and K?",
            "p is 1, then 1/2, then 0. The factor is tau to the power -p.",
            "1/7, then 1 over the square root of 7, then 1: Python writes 7 ** -0.5.",
        ),
        three_factors,
        read=as_three,
    ),
    Exercise(
        "4.2",
        SCHEDULER,
        (
            Property("it returns a scheduler, or a function of k for LambdaLR", is_scheduler),
            Property("the first step has the base rate over tau", begins),
            Property("up to step K, the rates are those of equation 4.2", anneals),
            Property("from step K on, the rate is the base rate", ends),
        ),
        (
            "LambdaLR(optimizer, f) multiplies the base rate by f(k); k counts from 0. So what is "
            "f(k)?",
            "f(k) = tau ** -p with p = 1 - min(k / K, 1). LambdaLR adds nothing to k, so do not "
            "either.",
            "return LambdaLR(optimizer, lambda k: tau ** -(1 - min(k / K, 1)))",
        ),
        t1,
        function=True,
    ),
    Exercise(
        "4.3",
        FACTOR,
        (
            Property("the factor is a number", is_a_number),
            Property("no rate is ever raised", never_raises),
            Property("a stage with a delay of 1 or less keeps the base rate", leaves_small_alone),
            Property("any other stage has the factor of equation 4.2", t1_elsewhere),
        ),
        (
            "Only delays below 1 go wrong. What delay would give a factor of 1 at every k?",
            "1 to any power is 1. So let a smaller tau count as 1, and leave the others alone.",
            "return max(tau, 1) ** -(1 - min(k / K, 1))",
        ),
        safe_factor,
        function=True,
    ),
)
