"""Lesson 05, first part: T2's gamma, its delta, and a gap of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...plan.velocity import averages, deltas
from ..exercise import Exercise, Property
from ..reading import number, numbers

GAMMA = "a function of (D, tau_fwd, tau_bkwd) that returns a number"
DELTA = "a function of (delta, old, new, gamma) that returns the next delta, a number"
CLOSE, EXACT = 1e-5, 1e-9  # CLOSE takes 32-bit numbers, too


def no_number(said: str, answer: Any) -> str:
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
        if fault := no_number(said, answer):
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
                f"{answer:.4g}, and an update {gap:.3g} step{'s' * (gap != 1)} old counts "
                f"{answer**gap:.3g}"
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
        if no_number("", found[-1]):
            break
    return found


def is_a_number(step: Callable[..., Any]) -> str:
    """A result that is no finite number."""
    said = "delta=0.2, old=1.0, new=1.5, gamma=0.9"
    return no_number(said, step(0.2, 1.0, 1.5, 0.9))


def settles_on_steady(step: Callable[..., Any]) -> str:
    """A gamma with which delta does not become the move of a weight that moves steadily."""
    for gamma in GAMMAS:
        for move in (0.5, -2.0):
            last = _followed(step, move * np.arange(400.0), gamma)[-1]
            if no_number("", last) or abs(last - move) > 1e-6:
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
    if off < EXACT:
        return ""
    return (
        f"with {gamma:g} the read is off by up to {off:.2g} on a random course (a steady "
        "weight forgives any gamma)"
    )


def exact_gamma() -> float:
    return 0.0


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
)
