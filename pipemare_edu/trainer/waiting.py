"""Where a worker's time goes: it computes, a message is on its way to it, or it waits for one.

From events alone, on one clock.  A worker that stands idle before an operation is waiting until the
neighbour has sent what the operation needs; from then on the message is on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..plan.clock import Event
from ..plan.ops import Op, sender


@dataclass(frozen=True)
class Waiting:
    """Seconds of one stage: in its operations; before them with the message on its way; and with
    nothing to do.  A worker's stages share its idle time, each by the operations it led to."""

    compute: float
    transfer: float
    wait: float


def waiting(windows: Iterable[Sequence[Event]], homes: Sequence[int]) -> tuple[Waiting, ...]:
    """Per stage, over stretches of events without a gap; homes: each stage's worker."""
    sums = [[0.0, 0.0, 0.0] for _ in homes]
    for events in windows:
        _add(sums, events, homes)
    return tuple(Waiting(*row) for row in sums)


def _add(sums: list[list[float]], events: Sequence[Event], homes: Sequence[int]) -> None:
    stages = len(homes)
    free: dict[int, float] = {}  # per worker
    ordered = sorted(events, key=lambda e: e.start)
    ends = {(e.stage, e.kind, e.index): e.end for e in ordered}
    for e in ordered:
        idle_from = free.get(homes[e.stage], e.start)
        source = sender(Op(e.kind, e.index), e.stage, stages)
        sent = idle_from if source is None else ends.get((source, e.kind, e.index), idle_from)
        between = min(max(sent, idle_from), max(e.start, idle_from))
        away = source is not None and homes[source] != homes[e.stage]
        row = sums[e.stage]
        row[0] += e.end - e.start
        row[1 if away else 2] += max(0.0, e.start - between)
        row[2] += between - idle_from
        free[homes[e.stage]] = max(e.end, idle_from)
