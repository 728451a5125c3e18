"""The virtual clock: what a set of operation lists would do on one device per stage.

    lists + seconds per operation + seconds per message
        -> when each operation runs, bubbles, microbatches in flight, staleness, or the deadlock

An operation starts when its stage is free and the message it waits for stands first in its link.
Links are first-in, first-out and sending costs the sender nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..checks import iterable, plain
from .held import Held, held
from .ops import Op, Operations, parse, receiver, sender
from .staleness import Delay, staleness

Cost = float | Sequence[float] | Callable[[int, Op], float]


class Event(NamedTuple):
    """One operation that ran.  `version` counts the updates its stage had applied by then."""

    stage: int
    kind: str
    index: int  # type: ignore[assignment]  # as in Op
    start: float
    end: float
    version: int


@dataclass(frozen=True)
class Timeline:
    """What the clock found.  Times are in the unit of the costs; `deadlock` is None or a report."""

    lists: tuple[Operations, ...]
    events: tuple[tuple[Event, ...], ...]
    deadlock: str | None

    @property
    def makespan(self) -> float:
        """The end of the last operation."""
        return max((row[-1].end for row in self.events if row), default=0.0)

    @property
    def utilization(self) -> float:
        """Share of stage time spent in F, B, R and U, from the first operation to the last."""
        busy = sum(e.end - e.start for row in self.events for e in row if e.kind != "E")
        return busy / (len(self.events) * self.makespan) if self.makespan else 0.0

    @cached_property
    def interval(self) -> float | None:
        """Steady-state time per minibatch; None when fill and drain leave no middle to measure."""
        updates = [e.end for e in self.events[0] if e.kind == "U"]
        per_step = max(1, sum(op.kind == "B" for op in self.lists[0]) // max(1, len(updates)))
        edge = -(-max(self.in_flight) // per_step) + 1
        if self.deadlock or len(updates) < 2 * edge + 2:
            return None
        return (updates[-1 - edge] - updates[edge]) / (len(updates) - 1 - 2 * edge)

    @property
    def steady_utilization(self) -> float | None:
        """Utilization once the pipe is full: work per minibatch over the time per minibatch."""
        if self.interval is None:
            return None
        steps = sum(op.kind == "U" for op in self.lists[0])
        busy = sum(e.end - e.start for row in self.events for e in row if e.kind != "E")
        return busy / (steps * len(self.events) * self.interval)

    @property
    def idle(self) -> float:
        """The bubble fraction: 1 - utilization."""
        return 1.0 - self.utilization

    @cached_property
    def in_flight(self) -> tuple[int, ...]:
        """Per stage, the most microbatches whose forward has run and whose backward has not."""
        return tuple(_peak_in_flight(ops) for ops in self.lists)

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """Per stage, the activations that it holds at the most, in microbatches."""
        return tuple(map(held, self.lists))

    @cached_property
    def staleness(self) -> tuple[tuple[Delay, ...], ...]:
        """Per stage, the delay of every microbatch; it depends on the lists alone."""
        return tuple(staleness(ops) for ops in self.lists)


def simulate(
    lists: Iterable[str | Iterable[Op]],
    forward: Cost = 1.0,
    backward: Cost = 1.0,
    message: float | Sequence[float] = 0.0,
    update: Cost = 0.0,
    evaluate: Cost = 0.0,
    transfer: float | Sequence[float] = 0.0,
) -> Timeline:
    """Run operation lists (or their text) on a virtual clock, one device per stage.

    forward, backward, update, evaluate: a time for every stage, one per stage, or a function of
    (stage, operation); a recompute costs a forward.  message: time from the end of an operation
    until the neighbour has its output.  transfer: time before that, for which the message has its
    link to itself; forwards and re-runs share a link, backwards go the other way.  Both are one
    number, or one for each pair of neighbours.  Raises ValueError for text that does not parse, a
    cost that is negative or infinite, or as many costs as there are not stages (pairs).
    """
    wanted = 'a list with the operations of each stage, such as schedule("gpipe", stages=4)'
    rows = tuple(map(_operations, iterable("lists", lists, wanted)))
    costs = {
        kind: _cost(name, value, len(rows))
        for kind, name, value in (
            ("F", "forward", forward), ("R", "forward", forward), ("B", "backward", backward),
            ("U", "update", update), ("E", "evaluate", evaluate),
        )
    }  # fmt: skip
    pairs = [_each("message", value, max(0, len(rows) - 1)) for value in (message, transfer)]
    events = _run(rows, lambda stage, op: costs[op.kind](stage, op), *pairs)
    stuck = any(len(done) < len(row) for done, row in zip(events, rows, strict=True))
    report = deadlock_report(rows, [len(done) for done in events]) if stuck else None
    return Timeline(rows, tuple(map(tuple, events)), report)


def _run(
    rows: Sequence[Operations],
    cost: Callable[[int, Op], float],
    message: Sequence[float],
    transfer: Sequence[float],
) -> list[list[Event]]:
    stages = len(rows)
    events: list[list[Event]] = [[] for _ in rows]
    links: dict[tuple[str, int], deque[tuple[int, float]]] = {
        (kind, i): deque() for kind in "FBER" for i in range(stages)
    }
    inside = [*(row.inside for row in rows), False]
    busy: dict[tuple[int, int], float] = {}  # a link, by its ends: until when it has a message
    flying: list[set[int]] = [set() for _ in rows]
    free, version = [0.0] * stages, [0] * stages
    todo = [deque(row) for row in rows]
    wake = deque(range(stages))
    while wake:
        i = wake.popleft()
        while todo[i]:
            op, arrival = todo[i][0], 0.0
            if op.kind in "BR" and op.index not in flying[i]:
                break
            if sender(op, i, stages, inside[i]) is not None:
                link = links[op.kind, i]
                if not link or link[0][0] != op.index:
                    break
                arrival = link.popleft()[1]
            todo[i].popleft()
            start = max(free[i], arrival)
            free[i] = start + cost(i, op)
            events[i].append(Event(i, op.kind, op.index, start, free[i], version[i]))
            version[i] += op.kind == "U"
            if op.kind == "F":
                flying[i].add(op.index)
            elif op.kind == "B":
                flying[i].remove(op.index)
            if (there := receiver(op, i, stages, inside[i + 1])) is not None:
                pair = min(i, there)
                sent = max(free[i], busy.get((i, there), 0.0)) + transfer[pair]
                busy[i, there] = sent
                links[op.kind, there].append((op.index, sent + message[pair]))
                wake.append(there)
    return events


def _cost(name: str, value: Cost, stages: int) -> Callable[[int, Op], float]:
    if callable(value):
        return value
    each = _each(f"the {name} cost", value, stages)
    return lambda stage, op: each[stage]


def _each(what: str, value: float | Sequence[float], count: int) -> list[float]:
    value = plain(value)
    alone = isinstance(value, int | float)
    try:
        each = [float(value)] * count if alone else list(map(float, value))  # type: ignore
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}: give one number, or one each") from None
    if len(each) != count:
        raise ValueError(f"{what} has {len(each)} for {count}: give one number, or one each")
    if any(not 0 <= c < math.inf for c in [*each, *([value] if alone else [])]):  # type: ignore
        raise ValueError(f"{what} is {value}: nothing takes less than no time, or for ever")
    return each


def _operations(row: str | Iterable[Op]) -> Operations:
    if isinstance(row, str):
        return parse(row)
    if isinstance(row, Operations):
        return row
    ops = tuple(iterable("a stage's list", row, "operations, or their text"))
    if wrong := [op for op in ops if not isinstance(op, Op)]:
        raise ValueError(f"a stage's list holds {wrong[0]!r}: give Op values, or text")
    return Operations(ops)


def _peak_in_flight(ops: Iterable[Op]) -> int:
    flying = peak = 0
    for op in ops:
        flying += (op.kind == "F") - (op.kind == "B")
        peak = max(peak, flying)
    return peak


def waits_for(op: Op, stage: int, stages: int, inside: bool = False) -> str:
    """In words, what a blocked operation (stage from 0) is waiting for."""
    here = sender(op, stage, stages, inside)
    if here is None:
        return f"stage {stage + 1} waits to run {op}, whose forward has not run there"
    return f"stage {stage + 1} waits to run {op}: stage {here + 1} has not sent it next"


def deadlock_report(rows: Sequence[Operations], done: Sequence[int]) -> str:
    """The whole grid, one stage a line: what ran, [the stuck operation], (what never came)."""
    lines, reasons = ["deadlock: no stage can go on"], []
    for i, (row, n) in enumerate(zip(rows, done, strict=True)):
        words = [*map(str, row[:n])]
        if n < len(row):
            words += [f"[{row[n]}]", *(f"({op})" for op in row[n + 1 :])]
            reasons.append("  " + waits_for(row[n], i, len(rows), row.inside))
        lines.append(f"  stage {i + 1}: {' '.join(words)}")
    return "\n".join([*lines, *reasons])
