"""Lesson 06: a recipe that survives seeds which nobody has seen, tried in real runs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pipemare_edu as pm

from ... import tasks
from ...studies.recipe import STEPS, utilization
from ...trainer.methods import GPipe, Method, PipeMare
from ...training import prepare
from ..exercise import Exercise, Property

RECIPE = "a method, such as pm.PipeMare(t1=50, t2=0.3, t3=10)"
HARD_STAGES, HARD_RATE, LEAST = 12, 0.4, 0.8
HIDDEN = (101, 102)  # seeds
GUESSING, FAR = 10, 2 / 3  # per cent of ten digits; of the way from there to synchronous training


def is_pipemare(method: Any) -> str:
    """What is not a method of the paper, in its own order of operations."""
    if not isinstance(method, PipeMare):
        return f"yours is {method!r}"
    if method.depth != "lockstep" or method.recompute:
        return f"yours has depth={method.depth!r} and recompute={method.recompute!r}"
    return ""


def quick_enough(method: PipeMare) -> str:
    """The utilization, if it is too low."""
    found = utilization(method, HARD_STAGES)
    return f"yours reaches {found:.2f}: {_waits(method)}" if found < LEAST else ""


def _waits(method: PipeMare) -> str:
    return f"{min(method.t3, STEPS)} of {STEPS} steps wait for the whole pipe"


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
            "T1 and T2 together without a synchronous step; T1 alone only with a very long K.",
        ),
        reference=recipe,
    ),
)
