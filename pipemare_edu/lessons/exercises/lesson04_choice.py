"""Lesson 04: a K that holds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pipemare_edu as pm

from ...studies.rates import base_rate
from ...trainer.rates import t1_factor
from ..exercise import Exercise, Property
from ..reading import numbers

PAIR = "a pair of numbers: K, and the base rate that is left at step K"
PEAK, STEPS, SEEDS = 0.2, 400, range(3)  # of the runs
SHORT = 200  # steps in which plain asynchronous training shows whether it diverges


# 4.4 a K that holds


def as_pair(answer: Any) -> tuple[float, float]:
    found = numbers(answer)
    if len(found) != 2:
        raise ValueError(f"An answer is {PAIR}, such as (100, 0.17); this one is {answer!r}.")
    return found[0], found[1]


def within_the_run(pair: tuple[float, float]) -> str:
    k = pair[0]
    return "" if k == int(k) and 1 <= k <= STEPS else f"yours is {k:g}"


def left_over(pair: tuple[float, float]) -> str:
    k, left = pair
    right = base_rate("cosine", PEAK, int(k), STEPS)
    if abs(left - right) <= 0.02 * right + 1e-4:
        return ""
    other = ""
    if right and abs(left - PEAK * t1_factor(23, 0, 1)) < 1e-3:
        other = "; stage 1's first rate is something else"
    return f"at step {k:g} of {STEPS} yours is {left:.4g}, and the cosine's {right:.4g}{other}"


def survives(pair: tuple[float, float]) -> str:
    """A seed with which T1 with that K diverges."""
    for seed in SEEDS:
        if step := died_at(int(pair[0]), PEAK, STEPS, seed):
            return f"with seed {seed} it diverged at step {step}"
    return ""


def left_is_safe(pair: tuple[float, float]) -> str:
    """A seed with which plain asynchronous training diverges at the rate that is left."""
    return _dies_at(base_rate("cosine", PEAK, int(pair[0]), STEPS))


def with_a_margin(pair: tuple[float, float]) -> str:
    return _dies_at(2 * base_rate("cosine", PEAK, int(pair[0]), STEPS))


def _dies_at(rate: float) -> str:
    if rate < 1e-9:
        return ""
    for seed in SEEDS:
        if step := died_at(0, rate, SHORT, seed):
            return f"at a rate of {rate:.3g} it diverged at step {step} with seed {seed}"
    return ""


@cache
def died_at(annealing: int, rate: float, steps: int, seed: int) -> int:
    """A real run on digits with T1 alone (0: without): the step at which it diverged, or 0."""
    method = pm.PipeMare(t1=annealing)
    run = pm.train("digits", method, rate=rate, steps=steps, seed=seed, eval_every=steps)
    return run.diverged[0] + 1 if run.diverged else 0


def chosen() -> tuple[int, float]:
    from math import cos, pi

    K = 400
    return K, 0.2 * (1 + cos(pi * K / 400)) / 2


EXERCISES = (
    Exercise(
        "4.4",
        PAIR,
        (
            Property("K is a whole number of steps, and T1 ends within the run", within_the_run),
            Property("the second number is the base rate at step K", left_over),
            Property(
                "plain asynchronous training, which is what T1 turns into, bears that rate",
                left_is_safe,
            ),
            Property("T1 with your K diverges with none of the seeds 0, 1 and 2", survives),
        ),
        (
            "After step K a run with T1 is plain asynchronous training. At which rates did that "
            "survive?",
            "The base rate at step k is 0.2 (1 + cos(pi k/400))/2. Look for a k at which a few "
            "hundredths are left.",
            "There is no need for a short K here: K = 400 leaves a rate of 0.",
        ),
        chosen,
        target=Property("plain asynchronous training bears twice the rate, too", with_a_margin),
        read=as_pair,
    ),
)
