"""Lesson 06: the price of a warm-up, and runs that isolate T2."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from ...plan.clock import simulate
from ...plan.schedules import schedule
from ..exercise import Exercise, Property
from ..logbook import RUNS, Entry

SPEED = "a function of P, N and share that returns a number"
PAIRS = 'a list of pairs of letters, such as ["AC", "BD"]'


# 6.1 the price of a warm-up


def nothing_waits(speed: Callable[..., Any]) -> str:
    """The first pipeline without a synchronous step whose speed is not 1."""
    return _first(speed, ((P, N, 0.0) for P, N, _ in cases()), lambda P, N, share: 1.0)


def all_wait(speed: Callable[..., Any]) -> str:
    """The first synchronous run whose speed is not that of its steps."""
    return _first(speed, ((P, N, 1.0) for P, N, _ in cases()), by_clock)


def some_wait(speed: Callable[..., Any]) -> str:
    """The first mixed run that the clock gives another speed."""
    return _first(speed, cases(), by_clock)


def _first(
    speed: Callable[..., Any],
    some: Iterator[tuple[int, int, float]],
    true: Callable[[int, int, float], float],
) -> str:
    for P, N, share in some:
        found, right = speed(P, N, share), true(P, N, share)
        if not math.isclose(found, right, rel_tol=1e-6):
            case = f"for P={P}, N={N} and a share of {share:g} you get {found:.4g}"
            return f"{case}, the clock {right:.4g}{_because(found, right, P, N, share)}"
    return ""


def _because(found: float, right: float, P: int, N: int, share: float) -> str:
    """What a well-known wrong answer has done."""
    waiting = by_clock(P, N, 1.0)
    if math.isclose(found, share * waiting + 1 - share, rel_tol=1e-6):
        return " (yours is the mean of two speeds; it is the times that add up)"
    if math.isclose(found * right, 1.0, rel_tol=1e-6):
        return " (yours is the time of a step, not the steps in a time)"
    return ""


def cases() -> Iterator[tuple[int, int, float]]:
    """(P, N, share of synchronous steps), the lesson's own first."""
    draw = random.Random(6)
    yield 8, 1, 0.1
    for _ in range(12):
        yield draw.randint(1, 12), draw.randint(1, 8), draw.randint(0, 20) / 20


@cache
def by_clock(P: int, N: int, share: float) -> float:
    """The speed of a long run, from the time of a synchronous step and of one in a full pipe."""
    waiting = simulate(schedule("gpipe", P, N, 1)).makespan
    flowing = simulate(schedule("lockstep", P, N, 4 * (2 * P // N + 2))).interval
    assert flowing is not None
    return flowing / (share * waiting + (1 - share) * flowing)


def speed(P: int, N: int, share: float) -> float:
    return 1 / (share * (N + P - 1) / N + 1 - share)


# 6.2 which runs isolate T2


def as_pairs(answer: Any) -> list[tuple[str, str]]:
    """Pairs of letters, each in alphabetical order, from a text, texts, or lists of two."""
    words = answer.replace(",", " ").split() if isinstance(answer, str) else answer
    try:
        pairs = [_pair(word) for word in words]
    except TypeError:
        pairs = [None]
    found = [pair for pair in pairs if pair is not None]
    if not found or len(found) < len(pairs):
        raise ValueError(f"An answer is {PAIRS}; this one is {answer!r}.")
    return sorted(set(found))


def _pair(word: Any) -> tuple[str, str] | None:
    letters = [c for c in "".join(map(str, word)).upper() if c.isalpha()]
    return (min(letters), max(letters)) if len(set(letters)) == len(letters) == 2 else None


def in_the_book(pairs: Sequence[tuple[str, str]]) -> str:
    """A letter that no run has."""
    letters = (letter for pair in pairs for letter in pair)
    return next((f"there is no run {letter}" for letter in letters if letter not in RUNS), "")


def differs_in_t2(pairs: Sequence[tuple[str, str]]) -> str:
    """The first pair that has T2 in both or in neither."""
    same = ((a, b) for a, b in pairs if RUNS[a].t2 == RUNS[b].t2)
    return next((f"{a} and {b} {_have(RUNS[a])} T2" for a, b in same), "")


def _have(run: Entry) -> str:
    return "both have" if run.t2 else "are both without"


def in_nothing_else(pairs: Sequence[tuple[str, str]]) -> str:
    """The first pair that differs in something beside T2, and in what."""
    for a, b in pairs:
        if others := [what for what in RUNS[a].differs(RUNS[b]) if what != "T2"]:
            return f"{a} and {b} differ in {' and '.join(others)} as well"
    return ""


def all_of_them(pairs: Sequence[tuple[str, str]]) -> str:
    """How many are missing."""
    missing = len(isolating()) - len(pairs)
    return f"{missing} more in the book {'does' if missing == 1 else 'do'}" if missing else ""


def isolating() -> list[str]:
    """Every pair that differs in T2 alone."""
    return [a + b for a in RUNS for b in RUNS if a < b and RUNS[a].differs(RUNS[b]) == ["T2"]]


def pairs() -> list[str]:
    return ["AF", "CG", "EH"]


EXERCISES = (
    Exercise(
        id="6.1",
        expects=SPEED,
        function=True,
        properties=(
            Property("without a synchronous step the speed is 1", nothing_waits),
            Property("a run of synchronous steps alone has the speed N/(N+P-1)", all_wait),
            Property("the speed is that of the clock", some_wait),
        ),
        hints=(
            "An asynchronous step takes N slots. How many does a synchronous one take?",
            "Take a run of 100 steps and add up its time: how long do its synchronous steps "
            "take, and how long the others?",
            "Speed is steps over time, in units of an asynchronous step: one over "
            "share · (N+P-1)/N + (1 - share).",
        ),
        reference=speed,
    ),
    Exercise(
        id="6.2",
        expects=PAIRS,
        read=as_pairs,
        properties=(
            Property("both runs of a pair are in the book", in_the_book),
            Property("one run of a pair has T2 and the other has not", differs_in_t2),
            Property("the two differ in nothing else", in_nothing_else),
            Property("no pair is missing that isolates T2", all_of_them),
        ),
        hints=(
            "Two runs isolate T2 if they are alike in all columns but that one.",
            "Go through the runs with T2 one by one, and look for its twin without.",
            "The seed is a column, too: another seed is another start and another order of the "
            "data.",
        ),
        reference=pairs,
    ),
)
