"""Lesson 02, the price of asynchrony: versions kept, or a rate at which training dies."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pipemare_edu as pm

from ...plan.ops import Op
from ...plan.schedules import schedule
from ..exercise import Exercise, Property
from ..reading import number

VERSIONS = "a function of (stage, stages, schedule) that returns a whole number"
RATE = "a learning rate above 0"
SEEDS = range(3)  # of the runs that exercise 2.5 compares


# 2.4 versions that PipeDream keeps


def keeps_current(versions: Callable[..., Any]) -> str:
    """Whether the version that the next forward reads was left out."""
    found = [versions(p, p, "async-1f1b") for p in range(1, 5)]
    return "for the last stage in 1F1B you get 0" if found == [0, 0, 0, 0] else ""


def keeps_lockstep(versions: Callable[..., Any]) -> str:
    return _wrongly_kept(versions, "lockstep")


def keeps_1f1b(versions: Callable[..., Any]) -> str:
    return _wrongly_kept(versions, "async-1f1b")


def _wrongly_kept(versions: Callable[..., Any], kind: str) -> str:
    draw = random.Random(4)
    for stages in (4, *(draw.randint(1, 7) for _ in range(5))):
        for stage, ops in enumerate(schedule(kind, stages, 1, 4 * stages + 4), start=1):
            found, true = versions(stage, stages, kind), alive(ops)
            if found != true or isinstance(found, bool):
                where = f"for stage {stage} of {stages} you get {found!r}, counted {true}"
                forgot = found == true - 1
                return where + (": the current version counts too" if forgot else "")
    return ""


def alive(ops: Sequence[Op]) -> int:
    """The most versions that a stage holds at once: the current one, and each that the forward of
    a microbatch in flight has read."""
    version, most, flying = 0, 1, dict[int, int]()
    for op in ops:
        if op.kind == "F":
            flying[op.index] = version
        elif op.kind == "B":
            del flying[op.index]
        version += op.kind == "U"
        most = max(most, len({version, *flying.values()}))
    return most


def versions_kept(stage: int, stages: int, schedule: str) -> int:
    ahead = stages - stage
    return 2 * ahead + 2 if schedule == "lockstep" else ahead + 1


# 2.5 the rate at which only asynchrony dies


def synchronous_lives(rate: float) -> str:
    """A seed with which GPipe diverges, or learns badly."""
    for seed in SEEDS:
        diverged, accuracy = trial("gpipe", rate, seed)
        if diverged or accuracy < 90:
            what = "diverged" if diverged else f"reads only {accuracy:.0f} % right"
            return f"with seed {seed}, it {what} at {rate:g}"
    return ""


def asynchronous_dies(rate: float) -> str:
    """A seed with which asynchronous training does not diverge."""
    alive = [seed for seed in SEEDS if not trial("pipemare-naive", rate, seed)[0]]
    return f"at {rate:g} it still runs to its end with seed {alive[0]}" if alive else ""


def near_the_edge(rate: float) -> str:
    """Whether half of the rate kills it too, with every seed."""
    half = rate / 2
    dead = all(trial("pipemare-naive", half, seed)[0] for seed in SEEDS)
    return f"at {half:g} it dies as well, with every seed" if dead else ""


@cache
def trial(method: str, rate: float, seed: int) -> tuple[bool, float]:
    """A real run: (did it diverge, its test accuracy in per cent)."""
    run = pm.train("digits", method, rate=rate, seed=seed, eval_every=200, stages=6, steps=200)
    return run.diverged is not None, run.metrics.get("accuracy", [(0, 0.0)])[-1][1]


def edge() -> float:
    def dies(rate, seed):
        run = pm.train("digits", "pipemare-naive", stages=6, steps=200, rate=rate, seed=seed)
        return run.diverged is not None

    rate = 0.05
    while not all(dies(rate, seed) for seed in range(3)):
        rate *= 1.5
    return rate


EXERCISES = (
    Exercise(
        "2.4",
        VERSIONS,
        (
            Property("the newest version, which the next forward reads, counts too", keeps_current),
            Property("in lockstep it agrees with a count in the lists", keeps_lockstep),
            Property("in 1F1B it agrees with a count in the lists", keeps_1f1b),
        ),
        (
            "A version must be kept from the forward that read it until that microbatch's "
            "backward. How many microbatches are in flight at stage i, at most?",
            "With N = 1 every microbatch in flight has read another version, and the newest of "
            "them has read the current one. So count microbatches in flight: D_i + 1.",
            'D_i is 2(P-i)+1 if schedule == "lockstep" and P-i otherwise; return D_i + 1.',
        ),
        versions_kept,
        function=True,
    ),
    Exercise(
        "2.5",
        RATE,
        (
            Property("GPipe runs to its end and reads 90 % right", synchronous_lives),
            Property("without fixes, asynchronous training diverges", asynchronous_dies),
        ),
        (
            "Try a rate with which both live, such as 0.05, then twice that, and so on, with "
            "every seed.",
            "Between 0.1 and 1 asynchronous training begins to die. Look there in smaller steps, "
            "each 1.5 times the last.",
            'A loop does it: begin with rate = 0.05, and while dies("pipemare-naive", rate, '
            "seed) is not true for all of the seeds 0, 1 and 2, multiply the rate by 1.5.",
        ),
        edge,
        target=Property("at half of the rate, at least one seed lives", near_the_edge),
        read=number(RATE, "0.05", above=0),
    ),
)
