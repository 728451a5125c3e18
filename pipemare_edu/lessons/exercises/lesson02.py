"""Lesson 02: staleness counted on a chart, in closed form, and from a log."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...plan.ops import Op
from ...plan.schedules import ASYNCHRONOUS, SYNCHRONOUS, evaluated, schedule
from ...plan.staleness import staleness
from ..exercise import Exercise, Property
from ..reading import numbers

FOUR = "a list of four whole numbers, stage 1 first, such as [4, 4, 4, 4]"
MEANS = "a function of (stages, microbatches) that returns a list of numbers, stage 1 first"
COUNT = "a function of (log, microbatch) that returns a whole number"


# 2.1 tau of every stage


def as_four(answer: Any) -> list[float]:
    """Four numbers, from any sequence."""
    values = numbers(answer)
    if len(values) != 4:
        raise ValueError(f"An answer is {FOUR}; this one is {answer!r}.")
    return values


def falls(taus: Sequence[float]) -> str:
    """The first stage whose weights are not older than those of the next."""
    pairs = enumerate(zip(taus, taus[1:], strict=False), start=1)
    found = (f"stage {i} has {a:g}, stage {i + 1} {b:g}" for i, (a, b) in pairs if a <= b)
    turned = "; stage 1 comes first in the list" if list(taus)[::-1] == counted(4, 1) else ""
    return next((seen + turned for seen in found), "")


def not_its_own(taus: Sequence[float]) -> str:
    """Whether the update that uses the gradient was counted too."""
    off = {a - b for a, b in zip(taus, counted(4, 1), strict=True)}
    return "yours are one too many at every stage" if off == {1.0} else ""


def as_counted(taus: Sequence[float]) -> str:
    """The first stage at which a count in its list gives another number."""
    for i, (said, true) in enumerate(zip(taus, counted(4, 1), strict=True), start=1):
        if said != true:
            return f"stage {i}'s weights are not {said:g} updates old but {_side(said, true)}"
    return ""


def _side(said: float, true: float) -> str:
    return "older" if said < true else "newer"


def counted(stages: int, microbatches: int) -> list[float]:
    """Mean staleness of each stage in lockstep, counted from the lists of a full pipe."""
    full = 2 * stages
    lists = schedule("lockstep", stages, microbatches, full + 2)
    rows = [[d.forward for d in staleness(ops) if d.step >= full] for ops in lists]
    return [sum(row) / len(row) for row in rows]


def taus() -> list[int]:
    return [2 * (4 - i) + 1 for i in (1, 2, 3, 4)]


# 2.2 the mean over the microbatches


def as_many_as_stages(means: Callable[..., Any]) -> str:
    """The first case in which there is not a number for every stage."""
    for stages, microbatches in cases():
        found = means(stages, microbatches)
        if len(numbers(found)) != stages:
            return f"for P={stages}, N={microbatches} it returns {found!r}"
    return ""


def agrees_at_one(means: Callable[..., Any]) -> str:
    """The first case with one microbatch in a minibatch that differs from a count."""
    return next(filter(None, (_differs(means, p, 1) for p in range(1, 7))), "")


def agrees_with_lists(means: Callable[..., Any]) -> str:
    """The first case that differs from a count."""
    return next(filter(None, (_differs(means, *case) for case in cases())), "")


def _differs(means: Callable[..., Any], stages: int, microbatches: int) -> str:
    said, true = numbers(means(stages, microbatches)), counted(stages, microbatches)
    for i, (a, b) in enumerate(zip(said, true, strict=True), start=1):
        if not math.isclose(a, b, abs_tol=1e-6):
            where = f"for P={stages}, N={microbatches} you get {a:g} at stage {i}, counted {b:g}"
            return where + (", which is the largest, not the mean" if a == math.ceil(b) else "")
    return ""


def cases() -> list[tuple[int, int]]:
    """Small (stages, microbatches), the lesson's own first."""
    draw = random.Random(2)
    return [(4, 4), *((draw.randint(1, 7), draw.randint(1, 6)) for _ in range(12))]


def mean_taus(stages: int, microbatches: int) -> list[float]:
    return [(2 * (stages - i) + 1) / microbatches for i in range(1, stages + 1)]


# 2.3 tau from a log


def counts_synchronous(count: Callable[..., Any]) -> str:
    """The first microbatch of a synchronous log that is not 0 updates old."""
    return _miscounted(count, logs(SYNCHRONOUS))


def counts_single(count: Callable[..., Any]) -> str:
    """The first wrong count where every minibatch is one microbatch."""
    return _miscounted(count, logs(ASYNCHRONOUS, most=1))


def counts_any(count: Callable[..., Any]) -> str:
    """The first wrong count in any log."""
    return _miscounted(count, logs(ASYNCHRONOUS))


def _miscounted(count: Callable[..., Any], some: Iterator[list[Op]]) -> str:
    for ops in some:
        log = [str(op) for op in ops]
        for delay in staleness(ops):
            found = count(list(log), delay.microbatch)
            if found != delay.forward or isinstance(found, bool):
                text = _around(log, delay.microbatch)
                return f"for microbatch {delay.microbatch} of {text} it returns {found!r}"
    return ""


def _around(log: Sequence[str], microbatch: int) -> str:
    """The part of a log from a forward to its backward and the update that follows."""
    start, end = log.index(f"F{microbatch}"), log.index(f"B{microbatch}")
    part = log[start : end + 1]
    shown = part if len(part) <= 14 else [*part[:6], "...", *part[-6:]]
    return f'"... {" ".join(shown)} ..."'


def logs(kinds: Sequence[str], most: int = 4) -> Iterator[list[Op]]:
    """Logs of one stage under random schedules of these kinds, with evaluations between."""
    draw = random.Random(3)
    for _ in range(12):
        stages, size = draw.randint(1, 5), draw.randint(min(2, most), most)
        steps = draw.randint(3, 12 // size + 2)
        ops = draw.choice(schedule(draw.choice(kinds), stages, size, steps))
        yield list(evaluated(ops, draw.randint(0, 3), steps - 1))


def count_tau(log: Sequence[str], microbatch: int) -> int:
    start, end = log.index(f"F{microbatch}"), log.index(f"B{microbatch}")
    return sum(operation.startswith("U") for operation in log[start:end])


EXERCISES = (
    Exercise(
        "2.1",
        FOUR,
        (
            Property("the earlier a stage, the older its weights", falls),
            Property(
                "only updates before the one that uses the gradient count, not that one itself",
                not_its_own,
            ),
            Property("each is what clicking on the chart counts", as_counted),
        ),
        (
            "Click a forward in the middle of stage 1's row, such as F8, and count the updates "
            "that light up.",
            "Stage 4 is the last: its microbatch turns round at once, and still one update comes "
            "between F8 and B8. Up the pipe, each stage adds the same number.",
            "Two more at every stage towards the front: one slot on the way there, one on the way "
            "back. Begin with 1 at stage 4.",
        ),
        taus,
        read=as_four,
    ),
    Exercise(
        "2.2",
        MEANS,
        (
            Property("there is one number for every stage", as_many_as_stages),
            Property("with N = 1 they are what you counted in exercise 2.1", agrees_at_one),
            Property("they agree with a count in the lists, for any P and N", agrees_with_lists),
        ),
        (
            "D_i = 2(P-i)+1 microbatches lie between a forward and its backward. How many updates "
            "is that, when one comes after every N-th backward?",
            "Single microbatches are a whole number of updates old, some one more than others. "
            "Over the N of a minibatch the mean is exactly D_i / N.",
            "A list with (2 * (stages - i) + 1) / microbatches for i = 1 ... stages; in Python "
            "range(1, stages + 1).",
        ),
        mean_taus,
        function=True,
    ),
    Exercise(
        "2.3",
        COUNT,
        (
            Property("in the log of a synchronous pipeline nothing is old", counts_synchronous),
            Property("it counts right where a minibatch is one microbatch", counts_single),
            Property("it counts right in any log", counts_any),
        ),
        (
            "Where in the log does the microbatch's forward stand, and where its backward? "
            "log.index(...) finds a text.",
            "Take the part of the log between the two: log[start:end].",
            'Count what begins with "U" in that part; everything else is of no matter.',
        ),
        count_tau,
        function=True,
    ),
)
