"""Lesson 05: T2's gamma, its delta, a gap of one, the edge with and without it, its memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...plan import theory
from ...plan.ledger import ledger
from ...plan.velocity import averages, deltas
from ..exercise import Exercise, Property
from ..reading import number, numbers

GAMMA = "a function of (D, tau_fwd, tau_bkwd) that returns a number"
DELTA = "a function of (delta, old, new, gamma) that returns the next delta, a number"
THREE = "three rates, such as [0.1, 0.2, 0.3]"
SHARE = "a function of the number of optimizer copies that returns a number"
CLOSE = 1e-9
BESIDE = 0.01  # how far beside a rate its two sides are looked at, as a share


def _number_from(said: str, answer: Any) -> str:
    """The fault of an answer that is no finite number."""
    found = numbers([answer])
    return "" if found else f"for {said} you return {answer!r}"


# 5.1 gamma


def _gammas() -> Iterator[tuple[float, float, float]]:
    """(D, tau_fwd, tau_bkwd): whole, fractional, and with a backward delay."""
    draw = np.random.default_rng(51)
    yield 0.5, 10, 0
    yield 0.1, 4, 3
    for _ in range(6):
        behind = float(draw.uniform(0, 3))
        yield float(draw.uniform(0.01, 0.9)), behind + float(draw.uniform(0.5, 20)), behind


def between_0_and_1(gamma: Callable[..., Any]) -> str:
    """The first gamma that is no number above 0 and below 1."""
    for decay, fwd, bkwd in _gammas():
        answer = gamma(decay, fwd, bkwd)
        said = f"D={decay:.3g}, tau_fwd={fwd:.3g}, tau_bkwd={bkwd:.3g}"
        if fault := _number_from(said, answer):
            return fault
        if not 0 < answer < 1:
            return f"for {said} you return {answer:.4g}"
    return ""


def decays_to_d(gamma: Callable[..., Any]) -> str:
    """The first case in which an update as old as the gap does not count D."""
    for decay, fwd, bkwd in _gammas():
        gap, answer = fwd - bkwd, gamma(decay, fwd, bkwd)
        if abs(answer**gap - decay) > CLOSE:
            return (
                f"for D={decay:.3g}, tau_fwd={fwd:.3g}, tau_bkwd={bkwd:.3g} yours is "
                f"{answer:.4g}, and an update {gap:.3g} steps old counts {answer**gap:.3g}"
            )
    return ""


def gamma(D: float, tau_fwd: float, tau_bkwd: float) -> float:
    return D ** (1 / (tau_fwd - tau_bkwd))


# 5.2 delta

GAMMAS = (0.0, 0.5, 0.9)


def _followed(step: Callable[..., Any], course: np.ndarray, gamma: float) -> list[Any]:
    """The learner's delta at every version of a course, from 0."""
    found: list[Any] = [0.0]
    for old, new in zip(course[:-1].tolist(), course[1:].tolist(), strict=True):
        found.append(step(found[-1], old, new, gamma))
        if _number_from("", found[-1]):
            break
    return found


def is_a_number(step: Callable[..., Any]) -> str:
    """A result that is no finite number."""
    said = "delta=0.2, old=1.0, new=1.5, gamma=0.9"
    return _number_from(said, step(0.2, 1.0, 1.5, 0.9))


def settles_on_steady(step: Callable[..., Any]) -> str:
    """A gamma with which delta does not become the move of a weight that moves steadily."""
    for gamma in GAMMAS:
        for move in (0.5, -2.0):
            last = _followed(step, move * np.arange(400.0), gamma)[-1]
            if _number_from("", last) or abs(last - move) > 1e-6:
                said = f"with gamma={gamma:g} and a weight that moves {move:g} a step"
                return f"{said}, it tends to {last!r}"
    return ""


def follows_random(step: Callable[..., Any]) -> str:
    """The first version of a random course at which delta is another."""
    draw = np.random.default_rng(52)
    for gamma in (*GAMMAS, float(draw.uniform(0.1, 0.9))):
        course = draw.normal(size=8).cumsum()
        said, true = _followed(step, course, gamma), deltas(course[:, None], gamma)[:, 0]
        for t, (mine, right) in enumerate(zip(said, true.tolist(), strict=False)):
            if abs(mine - right) > CLOSE:
                average = averages(course[:, None], gamma)[t, 0]
                return (
                    f"with gamma={gamma:.3g} and weights "
                    f"{', '.join(f'{w:.3f}' for w in course[: t + 1])} yours becomes {mine:.4g}; "
                    f"(1 - gamma)(w - m), with m the average {average:.4g}, is {right:.4g}"
                )
    return ""


def next_delta(delta: float, old: float, new: float, gamma: float) -> float:
    return gamma * delta + (1 - gamma) * (new - old)


# 5.3 a gap of one


def below_1(gamma: float) -> str:
    """A gamma that is none."""
    return "" if 0 <= gamma < 1 else f"yours is {gamma:g}"


def exact_on_random(gamma: float) -> str:
    """By how much T2's read misses the forward's on a random course with a gap of one."""
    course = np.random.default_rng(54).normal(size=(12, 1)).cumsum(axis=0)
    read = course - deltas(course, gamma)
    off = float(np.abs(read[1:] - course[:-1]).max())
    if off < CLOSE:
        return ""
    return (
        f"with {gamma:g} the read is off by up to {off:.2g} on a random course (a steady "
        "weight forgives any gamma)"
    )


def exact_gamma() -> float:
    return 0.0


# 5.4 the edge at delay 10 and Delta = 5: no T2, D = e^-2, D = 0.5

TAU, DISCREPANCY, DECAYS = 10, 5.0, (None, math.exp(-2), 0.5)
NAMED = ("without T2", "with D = e^-2", "with D = 0.5")


def as_three(answer: Any) -> list[float]:
    """Three numbers, from any sequence."""
    values = numbers(answer)
    if len(values) != 3:
        raise ValueError(f"An answer is {THREE}; this one is {answer!r}.")
    return values


def at_the_edges(rates: Sequence[float]) -> str:
    """The first rate that is not within a hundredth of where the largest root gets outside."""
    for rate, decay, name in zip(rates, DECAYS, NAMED, strict=True):
        g = None if decay is None else theory.gamma(decay, TAU)
        case = theory.Quadratic(TAU, discrepancy=DISCREPANCY, gamma=g)
        said = f"{name} you say {rate:.4g}"
        if rate <= 0:
            return f"{said}, and a rate is above 0"
        if theory.spectral_radius(case.polynomial(rate * (1 - BESIDE))) > 1:
            return f"{said}, and w grows a hundredth below that already"
        if theory.spectral_radius(case.polynomial(rate * (1 + BESIDE))) < 1:
            return f"{said}, and w shrinks a hundredth above that still"
    return ""


def edges() -> list[float]:
    gammas = [None, math.exp(-2) ** (1 / 10), 0.5 ** (1 / 10)]
    return [theory.threshold(theory.Quadratic(10, discrepancy=5, gamma=g)) for g in gammas]


# 5.5 the memory of delta


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
        if fault := _number_from(f"{copies} copies", answer):
            return fault
        if abs(answer - extra / kept) > CLOSE:
            return (
                f"with {copies} optimizer {'copy' if copies == 1 else 'copies'} the ledger of a "
                f"pipeline of {len(weights)} stages has {kept} bytes of weights, gradients and "
                f"optimizer and {extra} for delta; you say a share of {answer:.4g}"
            )
    return ""


def delta_share(copies: int) -> float:
    return 1 / (2 + copies)


EXERCISES: Sequence[Exercise] = (
    Exercise(
        "5.1",
        GAMMA,
        (
            Property("gamma is above 0 and below 1", between_0_and_1),
            Property(
                "an update that is tau_fwd - tau_bkwd steps older counts D times as much",
                decays_to_d,
            ),
        ),
        (
            "Each step multiplies what an update counts by gamma. After k steps it has been "
            "multiplied k times: what must gamma to the power of the gap be?",
            "gamma ** gap == D. Solve it for gamma: take the gap-th root.",
            "return D ** (1 / (tau_fwd - tau_bkwd))",
        ),
        gamma,
        function=True,
    ),
    Exercise(
        "5.2",
        DELTA,
        (
            Property("the result is a number", is_a_number),
            Property("for a weight that moves steadily, delta becomes its move", settles_on_steady),
            Property("on random courses delta is the average of equation (5.4)", follows_random),
        ),
        (
            "The new delta is a mixture of the old delta and of the update that was just made.",
            "The update is new - old. The old delta counts gamma; the two shares add up to 1.",
            "return gamma * delta + (1 - gamma) * (new - old)",
        ),
        next_delta,
        function=True,
    ),
    Exercise(
        "5.3",
        "a number",
        (
            Property("gamma is at least 0 and below 1", below_1),
            Property("with a gap of 1 T2 reads what the forward read", exact_on_random),
        ),
        (
            "With a gap of 1 the forward read the weights of one update ago: w - (the last "
            "update). T2 reads w - 1 * delta.",
            "So delta must be the last update alone. Which gamma forgets all others?",
            "The theory's 1 - 2/(gap + 1), at gap = 1.",
        ),
        exact_gamma,
        read=number("a number", "0.5"),
    ),
    Exercise(
        "5.4",
        THREE,
        (Property("w shrinks just below each of your rates and grows just above", at_the_edges),),
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
        (Property("it is what the ledger of a random pipeline says", as_the_ledger),),
        (
            "What is there anyway? The weights, and other things of the same size.",
            "Weights, gradients, and so many optimizer copies: 2 + copies times the weights.",
            "delta is one more of that size: return 1 / (2 + copies)",
        ),
        delta_share,
        function=True,
    ),
)
