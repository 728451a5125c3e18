"""Weights and optimizer as a multiple of a synchronous method's (PAPER.md section 4).

The unit is what every method holds: weights, gradients and the optimizer's state, 3 W for momentum
SGD and 4 W for Adam.  A stashing method adds old versions.  How many depends on who counts: the
paper's formula has tau_i = D_i / N of them instead of the live weights; a run also keeps those, and
each stage's number goes up and down with the microbatch that comes next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .clock import Event, Timeline

BASE = ("weights", "gradients", "optimizer")
EXTRA = ("stash", "correction")


@dataclass(frozen=True)
class Instants:
    """Multiples of the unit at one instant of a full pipe: the lowest, the mean, the highest."""

    low: float
    mean: float
    high: float


def reported_factor(
    weights: Sequence[float], depths: Sequence[int], microbatches: int, optimizer_copies: int = 1
) -> float:
    """The paper's formula for stashing, to be labelled reported:

    ((1 + copies) W + sum_i w_i tau_i) / ((2 + copies) W)
    """
    total = sum(weights)
    old = sum(w * d / microbatches for w, d in zip(weights, depths, strict=True))
    return ((1 + optimizer_copies) * total + old) / ((2 + optimizer_copies) * total)


def counted_factor(memory: Sequence[Mapping[str, int]]) -> float:
    """The multiple in a run's memory (run.memory) or a ledger's rows: each stage at its own peak.

    Label it measured for a run; a pipe is full only after 2P microbatches.
    """
    base, extra = (sum(row[kind] for row in memory for kind in kinds) for kinds in (BASE, EXTRA))
    return (base + extra) / base


def instants(timeline: Timeline, weights: Sequence[float], optimizer_copies: int = 1) -> Instants:
    """Stashing's multiple at one instant, every stage at the moment that the clock gives.

    Taken while the pipe is full: from the backward of the first microbatch whose forward came after
    an update, as far as the depth goes, to the first stage's last forward.  Raises ValueError for a
    timeline that ends before (2 D_1 / N steps and some to look at are enough).
    """
    depth = timeline.in_flight[0] - 1
    start = max(e.end for e in timeline.events[0] if e.kind == "B" and e.index <= depth)
    end = max(e.end for e in timeline.events[0] if e.kind == "F")
    if start >= end:
        raise ValueError("the pipe is never full in this timeline: simulate more steps")
    changes = sorted(
        (time, step * w)
        for row, w in zip(timeline.events, weights, strict=True)
        for time, step in _old_versions(row)
    )
    held = sum(change for time, change in changes if time <= start)
    inside = [(time, change) for time, change in changes if start < time <= end]
    levels, area = [held], 0.0
    for (time, change), (until, _) in pairwise([(start, 0.0), *inside, (end, 0.0)]):
        held += change
        area += held * (until - time)
        if until > time:
            levels.append(held)
    base = (2 + optimizer_copies) * sum(weights)
    return Instants(*(1 + x / base for x in (min(levels), area / (end - start), max(levels))))


def _old_versions(row: Sequence[Event]) -> Iterator[tuple[float, int]]:
    """(time, +1 or -1) whenever a stage's number of old versions in flight changes."""
    read: dict[int, int] = {}
    version = 0
    for event in row:
        if event.kind == "F":
            read[event.index] = version
        elif event.kind == "U":
            if version in read.values():
                yield event.end, 1
            version += 1
        elif event.kind == "B":
            done = read.pop(event.index)
            if done < version and done not in read.values():
                yield event.end, -1
