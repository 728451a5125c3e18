"""Lesson 06: the price of a warm-up, runs that isolate T2, and a recipe that survives."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pipemare_edu as pm

from ... import tasks
from ...plan.clock import simulate
from ...plan.schedules import schedule
from ...studies.recipe import STEPS
from ...trainer.methods import GPipe, Method, PipeMare
from ...training import prepare
from ..exercise import Exercise, Property
from ..logbook import RUNS, Entry

SPEED = "a function of P, N and share that returns a number"
PAIRS = 'a list of pairs of letters, such as ["AC", "BD"]'
RECIPE = "a method, such as pm.PipeMare(t1=50, t2=0.3, t3=10)"
HARD_STAGES, HARD_RATE, LEAST = 12, 0.4, 0.8
HIDDEN = (101, 102)  # seeds
GUESSING, FAR = 10, 2 / 3  # per cent of ten digits; of the way from there to synchronous training


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
    """Pairs of letters, each in alphabetical order, from texts or from lists of two."""
    words = [answer] if isinstance(answer, str) else answer
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


# 6.3 a recipe that survives a seed that nobody has seen


def is_pipemare(method: Any) -> str:
    """What is not a method of the paper, in its own order of operations."""
    if not isinstance(method, PipeMare):
        return f"yours is {method!r}"
    if method.depth != "lockstep" or method.recompute:
        return f"yours has depth={method.depth!r} and recompute={method.recompute!r}"
    return ""


def quick_enough(method: PipeMare) -> str:
    """The utilization, if it is too low."""
    found = utilization(method)
    return f"yours reaches {found:.2f}: {_waits(method)}" if found < LEAST else ""


def _waits(method: PipeMare) -> str:
    return f"{min(method.t3, STEPS)} of {STEPS} steps wait for the whole pipe"


def utilization(method: Method) -> float:
    """Of a run of STEPS steps, filling and draining included, by the clock."""
    steps = range(STEPS)
    lists = [method.operations(i, HARD_STAGES, 1, steps) for i in range(HARD_STAGES)]
    return simulate(lists).utilization


def never_diverges(method: PipeMare) -> str:
    """The first hidden seed with which it diverges."""
    ends = {seed: outcome(method, seed) for seed in HIDDEN}
    died = (f"with a hidden seed it diverged at step {step}" for step, _ in ends.values() if step)
    return next(died, "")


def still_learns(method: PipeMare) -> str:
    """The first hidden seed with which it stays too close to guessing."""
    for seed in HIDDEN:
        found, waiting = outcome(method, seed)[1], outcome(GPipe(), seed)[1]
        if found - GUESSING < FAR * (waiting - GUESSING):
            ended = f"with a hidden seed it ended at {found:.0f} %"
            return f"{ended}, synchronous training at {waiting:.0f} %, guessing is {GUESSING:g} %"
    return ""


@cache
def outcome(method: Method, seed: int) -> tuple[int | None, float]:
    """(step at which it diverged or None, final accuracy) of a real run of the hard case."""
    score = tasks.get("digits").score
    job = prepare(
        "digits",
        method,
        stages=HARD_STAGES,
        microbatches=1,
        steps=STEPS,
        seed=seed,
        rate=HARD_RATE,
        eval_every=STEPS,
    )
    run = job.fit()
    if run.diverged is not None:
        return run.diverged[0] + 1, 0.0
    return None, run.metrics[score][-1][1]


def recipe() -> PipeMare:
    return pm.PipeMare(t1=100, t2=0.135, t3=0)


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
    Exercise(
        id="6.3",
        expects=RECIPE,
        properties=(
            Property("it is a pm.PipeMare in lockstep, without recompute", is_pipemare),
            Property(f"its utilization over {STEPS} steps is {LEAST:g} or more", quick_enough),
            Property("it does not diverge", never_diverges),
            Property(
                "it goes two thirds of the way from guessing to synchronous training", still_learns
            ),
        ),
        hints=(
            f"Set the board to {HARD_STAGES} stages and look at the column of rate {HARD_RATE:g}: "
            "which rows have no cross?",
            "A good mean is not enough: look at every seed of the cell, and at its utilization.",
            "T1 and T2 together, and no synchronous step: both are needed at this rate.",
        ),
        reference=recipe,
    ),
)
