"""Lesson 09, two stages and more: the gain of a second worker, and stages balanced by cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from ...plan.clock import simulate
from ...plan.schedules import schedule
from ..exercise import Exercise, Property
from ..reading import numbers

SPEED = "a function of (forward, backward, N) that returns a number"
COUNTS = "a function of (costs, stages) that returns a list of layer counts"


# 9.1 two workers


class Pair(NamedTuple):
    """What the learner's function is called with."""

    forward: Sequence[float]
    backward: Sequence[float]
    microbatches: int

    @property
    def equal(self) -> bool:
        return len(set(self.forward)) == len(set(self.backward)) == 1

    @property
    def alone(self) -> float:
        return self.microbatches * (sum(self.forward) + sum(self.backward))

    @property
    def true(self) -> float:
        """By the clock."""
        lists = schedule("gpipe", 2, self.microbatches)
        return self.alone / simulate(lists, self.forward, self.backward).makespan

    def __str__(self) -> str:
        forward, backward, n = self
        return f"with forward={forward}, backward={backward} and N={n}"


def pairs() -> Iterator[Pair]:
    """One microbatch first, then equal stages, then others."""
    draw = random.Random(9)
    times = lambda: [draw.randint(1, 9), draw.randint(1, 9)]  # noqa: E731
    yield from (Pair(times(), times(), 1) for _ in range(3))
    yield from (Pair([f, f], [2 * f, 2 * f], n) for f, n in ((1, 2), (3, 4), (2, 9)))
    yield from (Pair(times(), times(), draw.randint(2, 9)) for _ in range(12))


def is_number(speed_up: Callable[..., Any]) -> str:
    """What is not a number above 0."""
    for pair in pairs():
        found = speed_up(*pair)
        if not numbers([found]) or found <= 0:
            return f"{pair} it returns {found!r}"
    return ""


def agrees(which: Callable[[Pair], bool]) -> Callable[[Callable[..., Any]], str]:
    """The first pair of this kind at which the clock says otherwise."""

    def fault(speed_up: Callable[..., Any]) -> str:
        for pair in filter(which, pairs()):
            found = float(speed_up(*pair))
            if abs(found - pair.true) > 1e-6 * pair.true:
                return (
                    f"{pair} yours is {found:.3g}, the clock's {pair.true:.3g}{_guess(pair, found)}"
                )
        return ""

    return fault


def _guess(pair: Pair, found: float) -> str:
    """What another number is."""
    (f1, f2), (b1, b2), n = pair
    long = max(f1, f2) + max(b1, b2)
    known = {
        "one over the other: how many times as fast, not as long": 1 / pair.true,
        "a time, and not how many times as fast": pair.alone / pair.true,
        "in per cent": 100 * pair.true,
        "one process takes N times that": pair.true / n,
        "true of equal stages": 2 * n / (n + 1),
        "the limit of a pipe that never empties": pair.alone / n / max(f1 + b1, f2 + b2),
        "N of the slower stage, and only N - 1 follow the first microbatch": pair.alone
        / (sum(pair.forward) + sum(pair.backward) + n * long),
        "as if forwards and backwards had no turn between them": pair.alone
        / (sum(pair.forward) + sum(pair.backward) + (n - 1) * max(f1 + b1, f2 + b2)),
    }
    return next((f" ({says})" for says, x in known.items() if abs(found - x) < 1e-6 * x), "")


def speed_up(forward: Sequence[float], backward: Sequence[float], N: int) -> float:
    alone = N * (sum(forward) + sum(backward))
    down = sum(forward) + (N - 1) * max(forward)
    up = sum(backward) + (N - 1) * max(backward)
    return alone / (down + up)


# 9.2 layers to stages


def layers() -> Iterator[tuple[list[float], int]]:
    """Costs and stages: equal layers first, then one expensive layer, then random ones."""
    draw = random.Random(9)
    yield [1, 1, 1, 1], 2
    yield [1, 1, 1, 1, 1, 5], 2
    yield [5, 1, 1, 1, 1, 1], 3
    for _ in range(14):
        size = draw.randint(2, 8)
        yield [draw.randint(1, 9) for _ in range(size)], draw.randint(1, min(size, 5))


def dearest(costs: Sequence[float], counts: Sequence[int]) -> float:
    """The cost of the costliest stage."""
    ends = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return max(sum(costs[a:b]) for a, b in pairwise(ends))


def cheapest(costs: Sequence[float], stages: int) -> float:
    """The least that the costliest stage can cost: every way to cut is tried."""
    ways = combinations(range(1, len(costs)), stages - 1)
    return min(max(sum(costs[a:b]) for a, b in pairwise([0, *w, len(costs)])) for w in ways)


def fills_every_stage(balance: Callable[..., Any]) -> str:
    """What is no list of layer counts for these stages."""
    for costs, stages in layers():
        counts = balance(list(costs), stages)
        seen = f"for costs {costs} and {stages} stages it returns {counts!r}"
        found = numbers(counts) if isinstance(counts, list | tuple) else []
        if len(found) != stages:
            return f"{seen}, and that is not a count of layers for each stage"
        if any(n < 1 or n != int(n) for n in found):
            return f"{seen}, and every stage needs a layer"
        if sum(found) != len(costs):
            return f"{seen}, and there are {len(costs)} layers"
    return ""


def costs_least(balance: Callable[..., Any]) -> str:
    """The first list that can be cut better."""
    for costs, stages in layers():
        counts = [int(n) for n in balance(list(costs), stages)]
        mine, least = dearest(costs, counts), cheapest(costs, stages)
        if mine > least:
            why = " (as many layers each, whatever they cost)" if _even(counts) else ""
            return (
                f"for costs {costs} and {stages} stages {counts} has a stage of {mine}, and "
                f"{least} can be reached{why}"
            )
    return ""


def _even(counts: Sequence[int]) -> bool:
    return max(counts) - min(counts) <= 1


def balance(costs: list[float], stages: int) -> list[int]:
    def dearest(counts: list[int]) -> float:
        ends = [sum(counts[:i]) for i in range(stages + 1)]
        return max(sum(costs[ends[i] : ends[i + 1]]) for i in range(stages))

    if stages == 1:
        return [len(costs)]
    firsts = range(1, len(costs) - stages + 2)
    return min([[n, *balance(costs[n:], stages - 1)] for n in firsts], key=dearest)


EXERCISES = (
    Exercise(
        "9.1",
        SPEED,
        (
            Property("the speed-up is a number above 0", is_number),
            Property(
                "one microbatch alone gains nothing from a second worker",
                agrees(lambda pair: pair.microbatches == 1),
            ),
            Property("two equal stages gain what the clock says", agrees(lambda pair: pair.equal)),
            Property("any two stages gain what the clock says", agrees(lambda pair: True)),
        ),
        (
            "One process takes N times everything. For two workers draw the chart: all forwards "
            "come first, then all backwards. How long is each half?",
            "The first forward passes both stages: sum(forward). Every one of the N - 1 behind it "
            "comes out of the pipe one max(forward) later. Backwards do the same, the other way.",
            "N * (sum(forward) + sum(backward)) over sum(forward) + (N - 1) * max(forward) + "
            "sum(backward) + (N - 1) * max(backward).",
        ),
        speed_up,
        function=True,
    ),
    Exercise(
        "9.2",
        COUNTS,
        (
            Property("every stage has a layer or more, and no layer is lost", fills_every_stage),
            Property("the costliest stage is as cheap as it can be", costs_least),
        ),
        (
            "With two stages there are len(costs) - 1 places to cut. Try them all, and keep the "
            "cut whose costliest stage is cheapest.",
            "With more stages: give the first stage n layers, and ask the function itself for the "
            "rest, balance(costs[n:], stages - 1). Try every n that leaves a layer for each.",
            "One stage: [len(costs)]. Otherwise the min, by the cost of the costliest stage, over "
            "[n, *balance(costs[n:], stages - 1)] for n in range(1, len(costs) - stages + 2). (Or "
            "call pipemare_edu.plan.split.split, the trainer's own planner.)",
        ),
        balance,
        function=True,
    ),
)
