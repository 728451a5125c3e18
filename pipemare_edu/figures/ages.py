"""How old the weights were that an operation read, and which operations belong to a microbatch.

    F9 reads version 2 ... U2 U3 U4 U5 U6 U7 U8 ... B9 U9 applies the gradient to version 9
                           |<-- 7 updates: tau -->|

An operation's age is the version that its microbatch's gradient is applied to, less the version
that it read: tau of a forward, tau_bkwd of a backward.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..plan.clock import Event, Timeline
from ..plan.ops import Op, parse
from ..plan.staleness import Stamps

Place = tuple[int, str]  # stage (from 0) and operation, such as (0, "F9")
READS = "FBR"  # the kinds of operation that read weights for a gradient


class Passage(NamedTuple):
    """What one microbatch meets at one stage.

    forward, backward  its own operations; backward is None if it is not among the events
    applied            the update that uses its gradient; None if it is not among them
    between            the updates after the forward and before `applied`: tau of them
    """

    forward: Event
    backward: Event | None
    applied: Event | None
    between: tuple[Event, ...]

    @property
    def tau(self) -> int | None:
        """Updates between the forward's read and the gradient's use; None if it is not known."""
        return None if self.applied is None else len(self.between)


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
    used = _used(row)
    return {
        Op(e.kind, e.index): used[e.index].version - e.version
        for e in row
        if e.kind in READS and e.index in used
    }


def passage(row: Iterable[Event], microbatch: int) -> Passage | None:
    """The passage of a microbatch through one stage; None if its forward is not there."""
    row = list(row)
    found = {e.kind: e for e in row if e.kind in "FB" and e.index == microbatch}
    if "F" not in found:
        return None
    applied = _used(row).get(microbatch)
    end = row.index(applied) if applied is not None else len(row)
    between = tuple(e for e in row[row.index(found["F"]) : end] if e.kind == "U")
    return Passage(found["F"], found.get("B"), applied, between)


def find(rows: Sequence[Sequence[Event]], place: Place) -> Event:
    """The event of an operation.  Raises ValueError, saying what there is, if it is not there."""
    stage, text = place
    ops = parse(text)
    if len(ops) != 1:
        raise ValueError(f'{text!r} is not one operation, such as "F9"')
    if not 0 <= stage < len(rows):
        raise ValueError(f"stage {stage}: there are stages 0 to {len(rows) - 1}")
    for e in rows[stage]:
        if (e.kind, e.index) == ops[0]:
            return e
    raise ValueError(f"stage {stage + 1} (in code {stage}) has no {text} among these events")


def stashed(events: Timeline | Iterable[Event]) -> list[Event]:
    """The same events, every backward reading the version that its forward read (PipeDream)."""
    out = []
    for row in by_stage(events):
        read = {e.index: e.version for e in row if e.kind == "F"}
        out += [e._replace(version=read[e.index]) if e.kind == "B" else e for e in row]
    return out


def _used(row: Iterable[Event]) -> dict[int, Event]:
    """{microbatch: the update that uses its gradient}."""
    stamps, out = Stamps(), dict[int, Event]()
    for e in row:
        out |= {d.microbatch: e for d in stamps.add(e.kind, e.index, e.version)}
    return out
