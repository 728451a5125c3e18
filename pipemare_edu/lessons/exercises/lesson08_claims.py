"""Lesson 08: what it takes for a claim about two methods to hold, and one tried on new seeds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from ...checks import unknown
from ...reproduce.presets import METHODS
from ...studies.reproduction import after, live, racers
from ..exercise import Exercise, Property
from .lesson08 import names_in

HOLDS = "a function of two dicts, {seed: score}, that returns True or False"
CLAIM = 'two methods, such as ("gpipe", "pipemare")'
Scores = Mapping[int, float | None]
Holds = Callable[[Scores, Scores], Any]

TASK, STEPS = "digits", 64  # of the slices in which a claim is tried
HIDDEN = (105, 106)  # seeds


# 8.3 does a claim hold?


def random_pairs() -> Iterator[tuple[dict[int, float], dict[int, float]]]:
    """Scores of the same seeds, the first method's above the second's with every seed."""
    draw = random.Random(83)
    for n in (1, 2, 3, 5, 5, 5):
        worse = {seed: float(draw.randint(5, 80)) for seed in draw.sample(range(20), n)}
        yield {seed: v + draw.randint(1, 15) for seed, v in worse.items()}, worse


def every_seed(holds: Holds) -> str:
    """The first claim that holds with every seed and is denied."""
    return _first(holds, random_pairs(), True)


def one_is_enough(holds: Holds) -> str:
    """The first claim that one seed contradicts and that passes, though the mean is for it."""
    broken = (
        ({**a, min(a): b[min(a)] - 1.0, 99: 100.0}, {**b, 99: 1.0}) for a, b in random_pairs()
    )
    return _first(holds, broken, False)


def no_ties(holds: Holds) -> str:
    return _first(holds, (({**a, max(a): b[max(a)]}, b) for a, b in random_pairs()), False)


def diverged_counts(holds: Holds) -> str:
    """The first claim in which a run that diverged is not the worse one."""
    lost = (({**a, max(a): None}, b) for a, b in random_pairs())
    won = ((a, {**b, max(b): None}) for a, b in random_pairs())
    return _first(holds, lost, False) or _first(holds, won, True)


def common_seeds(holds: Holds) -> str:
    """The first claim that a seed decides which only one of them has; or that none supports."""
    more = (({**a, 50: 0.0}, {**b, 51: 100.0}) for a, b in random_pairs())
    none = ((a, {seed + 100: v for seed, v in b.items()}) for a, b in random_pairs())
    return _first(holds, more, True) or _first(holds, none, False)


def _first(holds: Holds, some: Iterator[tuple[Any, Any]], right: bool) -> str:
    for better, worse in some:
        if bool(got := holds(dict(better), dict(worse))) != right:
            return f"holds({better}, {worse}) is {right}, and yours gives {got!r}"
    return ""


def holds(better: Scores, worse: Scores) -> bool:
    both = better.keys() & worse.keys()
    pairs = [(better[seed] or 0, worse[seed] or 0) for seed in both]
    return bool(pairs) and all(a > b for a, b in pairs)


# 8.4 a claim that new seeds do not refute


def as_claim(answer: Any) -> tuple[str, str]:
    """(the better method, the worse one)."""
    words = names_in(answer)
    if not isinstance(words, tuple | list) or [type(w) for w in words] != [str] * 2:
        raise ValueError(f"An answer is {CLAIM}, the better one first; this one is {answer!r}.")
    better, worse = words
    return better, worse


def known(claim: tuple[str, str]) -> str:
    """A name that there is not."""
    return next((unknown("method", m, METHODS) for m in claim if m not in METHODS), "")


def with_shipped(claim: tuple[str, str]) -> str:
    """The first shipped seed that contradicts the claim."""
    shipped = racers(TASK, claim)
    better, worse = (after(shipped, method, STEPS) for method in claim)
    return _contradiction(claim, better, worse, "shipped seed {}")


def with_hidden(claim: tuple[str, str]) -> str:
    """The first hidden seed that contradicts the claim, in real runs made now."""
    better, worse = ({seed: outcome(m, seed) for seed in HIDDEN} for m in claim)
    return _contradiction(claim, better, worse, "a hidden seed")


def _contradiction(claim: tuple[str, str], better: Scores, worse: Scores, where: str) -> str:
    for seed in sorted(better.keys() & worse.keys()):
        if (better[seed] or 0.0) <= (worse[seed] or 0.0):
            ends = zip(claim, (better[seed], worse[seed]), strict=True)
            told = " and ".join(f"{METHODS[m]} {_told(v)}" for m, v in ends)
            return f"with {where.format(seed)}, {told} after {STEPS} steps"
    return ""


def _told(score: float | None) -> str:
    return "has diverged" if score is None else f"is at {score:.1f} %"


@cache
def outcome(method: str, seed: int) -> float | None:
    """The score of a real slice; None if it diverged."""
    *_, last = live(TASK, method, seed, STEPS)
    return after([last], method, STEPS).get(seed)


def claim() -> tuple[str, str]:
    return ("gpipe", "pipemare-t1")


EXERCISES = (
    Exercise(
        id="8.3",
        expects=HOLDS,
        function=True,
        properties=(
            Property("a claim holds if the better method is above with every seed", every_seed),
            Property("one seed that says otherwise is enough to refute it", one_is_enough),
            Property("a tie is no win", no_ties),
            Property("a run that diverged (None) counts 0", diverged_counts),
            Property(
                "only seeds that both methods have count, and there must be one", common_seeds
            ),
        ),
        hints=(
            "A seed fixes the first weights and the order of the data: compare the two methods "
            "seed by seed, not as two heaps.",
            "Which seeds do both dicts have? For each of them, what is the score, if None is 0?",
            "all(a > b for the pairs), and at least one pair: all() of nothing is True.",
        ),
        reference=holds,
    ),
    Exercise(
        id="8.4",
        expects=CLAIM,
        read=as_claim,
        properties=(
            Property("both methods are the reproduction's", known),
            Property(
                f"the claim holds on {TASK} after {STEPS} steps, with the shipped seeds",
                with_shipped,
            ),
            Property("the claim holds with seeds that nobody has seen", with_hidden),
        ),
        hints=(
            f"Draw compare_runs({TASK!r}, None) and look at step {STEPS}: which lines lie far "
            "apart?",
            "A wide gap with every shipped seed is more likely to be there with a new one than a "
            "narrow gap.",
            "In the first steps nothing asynchronous comes near to GPipe, unless it has a warm-up, "
            "and then the two are the same run.",
        ),
        reference=claim,
    ),
)
