"""How old the weights were that an operation read.

An operation's age is the version that its microbatch's gradient is applied to, less the version
that it read: tau of a forward, tau_bkwd of a backward.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..plan.clock import Event, Timeline
from ..plan.ops import Op
from ..plan.staleness import Stamps

READS = "FBR"  # the kinds of operation that read weights for a gradient


def by_stage(events: Timeline | Iterable[Event]) -> list[list[Event]]:
    """Per stage, its events by time.  Raises ValueError without events."""
    if isinstance(events, Timeline):
        events = (e for row in events.events for e in row)
    every = sorted(events, key=lambda e: (e.start, e.end))
    if not every:
        raise ValueError("there are no events to draw")
    rows: list[list[Event]] = [[] for _ in range(1 + max(e.stage for e in every))]
    for e in every:
        rows[e.stage].append(e)
    return rows


def ages(row: Iterable[Event]) -> dict[Op, int]:
    """{operation: age of the weights it read} at one stage, given its events in order.

    What has no age is left out: updates, evaluations, and operations of a microbatch whose forward
    or whose gradient's update is not among the events.
    """
    row = list(row)
    used = used_by(row)
    return {
        Op(e.kind, e.index): used[e.index].version - e.version
        for e in row
        if e.kind in READS and e.index in used
    }


def stashed(events: Timeline | Iterable[Event]) -> list[Event]:
    """The same events, every backward reading the version that its forward read (PipeDream)."""
    out = []
    for row in by_stage(events):
        read = {e.index: e.version for e in row if e.kind == "F"}
        out += [e._replace(version=read[e.index]) if e.kind == "B" else e for e in row]
    return out


def used_by(row: Iterable[Event]) -> dict[int, Event]:
    """{microbatch: the update that uses its gradient}."""
    stamps, out = Stamps(), dict[int, Event]()
    for e in row:
        out |= {d.microbatch: e for d in stamps.add(e.kind, e.index, e.version)}
    return out
