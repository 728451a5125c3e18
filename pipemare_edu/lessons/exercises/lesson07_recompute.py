"""Lesson 07, recompute: the best segment, and the weights that a re-run should read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ...plan.held import held
from ...plan.schedules import pipe_reruns, schedule
from ...plan.staleness import staleness
from ..exercise import Exercise, Property
from ..reading import numbers

PAIR = "a segment length and a number of stage activations, such as (2, 160)"
REREAD = "a function of (w, delta, i, P, S, N) that returns what w should be replaced by"
STAGES = 16


# 7.2 the best segment


def as_pair(answer: Any) -> tuple[int, int]:
    """(S, activations) in whole numbers; ValueError for anything else."""
    found = numbers(answer)
    if len(found) != 2 or any(x != int(x) for x in found):
        raise ValueError(f"An answer is {PAIR}; this one is {answer!r}.")
    return int(found[0]), int(found[1])


@cache
def slots(segment: int) -> int:
    """Stage activations, counted in the lists."""
    lists = schedule("lockstep", STAGES, 1, 2 * STAGES + 1, recompute=segment)
    return sum(held(ops).slots for ops in lists)


def divides(answer: tuple[int, int]) -> str:
    segment = answer[0]
    return "" if segment >= 1 and STAGES % segment == 0 else f"{segment} does not"


def is_the_count(answer: tuple[int, int]) -> str:
    """What another count may be."""
    segment, count = answer
    true = slots(segment)
    if count == true:
        return ""
    side = "few" if count < true else "many"
    return f"with segments of {segment}, {count} are too {side}"


def is_least(answer: tuple[int, int]) -> str:
    """Whether a neighbouring divisor is better."""
    segment, count = answer
    shorter = [s for s in range(1, segment) if STAGES % s == 0 and slots(s) < count]
    longer = [s for s in range(segment + 1, STAGES + 1) if STAGES % s == 0 and slots(s) < count]
    if shorter or longer:
        return f"a {'shorter' if shorter else 'longer'} segment holds fewer than {count}"
    return ""


def best_segment() -> tuple[int, int]:
    P = 16
    counts = {S: P * P // S + P * S for S in (1, 2, 4, 8, 16)}
    S = min(counts, key=lambda s: counts[s])
    return S, counts[S]


# 7.4 which delay


def cases() -> Iterator[tuple[int, int, int, int]]:
    """(i, P, S, N) of every stage that re-runs, in a few pipes; stages from 1."""
    for stages, segment, microbatches in ((4, 2, 1), (6, 2, 4), (6, 3, 1), (7, 3, 2), (5, 1, 3)):
        for i, rerun in enumerate(pipe_reruns("lockstep", stages, segment), start=1):
            if rerun is not None:
                yield i, stages, segment, microbatches


@cache
def stamped(i: int, stages: int, segment: int, microbatches: int) -> tuple[float, float]:
    """(tau_fwd, tau_recomp) of stage i, by version stamps: means over the microbatches of a step,
    the pipe full."""
    full = 2 * stages // microbatches + 2
    ops = schedule("lockstep", stages, microbatches, full + 2, recompute=segment)[i - 1]
    step = [d for d in staleness(ops) if d.step == full]
    reread = [d.recompute for d in step if d.recompute is not None]
    return sum(d.forward for d in step) / len(step), sum(reread) / len(reread)


def is_a_number(reread: Callable[..., Any]) -> str:
    for case in cases():
        found = reread(1.0, 0.5, *case)
        if not numbers([found]):
            return f"{_where(case)} it returns {found!r}"
    return ""


def keeps_still(reread: Callable[..., Any]) -> str:
    """What is changed though the weights do not move."""
    for case in cases():
        if abs((found := reread(3.0, 0.0, *case)) - 3.0) > 1e-9:
            return f"{_where(case)} w = 3 and delta = 0 give {found:g}"
    return ""


def meets_the_forward(reread: Callable[..., Any]) -> str:
    """Where weights that move by delta a step are not brought back to where they were."""
    for case in cases():
        forward, again = stamped(*case)
        found = 10.0 - reread(10.0, 1.0, *case)
        if abs(found - (forward - again)) > 1e-9:
            return f"{_where(case)} yours steps back {found:.3g} updates{_why(found, *case)}"
    return ""


def _where(case: tuple[int, int, int, int]) -> str:
    return "for i={}, P={}, S={}, N={}".format(*case)


def _why(found: float, i: int, stages: int, segment: int, microbatches: int) -> str:
    """What another distance is."""
    forward, again = stamped(i, stages, segment, microbatches)
    others = {
        "all of tau_fwd, which is the backward's way": forward,
        "tau_recomp, which is the way from the re-run to the backward": again,
        "the right way in the wrong direction": again - forward,
        "the right number of microbatches, but delays count updates": (forward - again)
        * microbatches,
        "as if no segment were cut short at the end of the pipe": forward
        - (2 * (-(-i // segment) * segment - i) + 1) / microbatches,
    }
    near = [says for says, other in others.items() if abs(found - other) < 1e-9]
    return (
        f": that is {near[0]}" if near else f", and between F and R there are {forward - again:g}"
    )


def reread(w: float, delta: float, i: int, P: int, S: int, N: int) -> float:
    end = min(P, -(-i // S) * S)  # the last stage of i's segment
    tau_fwd = (2 * (P - i) + 1) / N
    tau_recomp = (2 * (end - i) + 1) / N
    return w - (tau_fwd - tau_recomp) * delta


EXERCISES = (
    Exercise(
        "7.2",
        PAIR,
        (
            Property("S divides 16, so that all segments are equal", divides),
            Property("it is how many the lists hold, peaks of all stages summed", is_the_count),
            Property("no other divisor of 16 holds fewer", is_least),
        ),
        (
            "The divisors are 1, 2, 4, 8 and 16. Move the sliders of the panel, or put each into "
            "P^2/S + P S.",
            "Longer segments have fewer inputs to keep, P^2/S, but more to re-run at once, P S. "
            "The sum is least where the two are equal.",
            "P^2/S = P S gives S = sqrt(P) = 4; put it in, 256/4 + 16 x 4.",
        ),
        best_segment,
        read=as_pair,
    ),
    Exercise(
        "7.4",
        REREAD,
        (
            Property("the result is a number when w and delta are numbers", is_a_number),
            Property("weights that do not move are left as they are", keeps_still),
            Property(
                "weights that move by delta a step come back to where the forward read them, on "
                "average over the microbatches",
                meets_the_forward,
            ),
        ),
        (
            "T2 goes back tau_fwd updates for a backward, since all of them lie between F and B. "
            "How many lie between F and R?",
            "tau_fwd are between F and B, and tau_recomp between R and B: the rest is between F "
            "and R. tau_fwd = (2 (P-i) + 1)/N, tau_recomp = (2j + 1)/N.",
            "j = end - i, where end = min(P, -(-i // S) * S) is the last stage of i's segment. "
            "Return w - (tau_fwd - tau_recomp) * delta.",
        ),
        reread,
        function=True,
    ),
)
