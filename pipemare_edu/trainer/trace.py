"""What happened: one event per operation, with its times and the weight version it read."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from copy import copy
from operator import attrgetter
from typing import Any

from ..plan.clock import Event
from ..plan.ops import Op, Operations
from ..plan.staleness import Delay, Stamps
from .stage import Read

_start = attrgetter("start")


class Trace:
    """Events of a run: the first and the last `window` of them, or all with full=True.

    full_from   the first step at which the pipe is full
    reads       per stage, how often each delay was measured, over the whole run
    seconds     per stage and kind of operation, over the whole run
    Times of events are seconds since the run began.
    """

    def __init__(
        self, stages: int, full_from: int = 0, window: int = 1000, full: bool = False
    ) -> None:
        self.stages, self.full_from, self.window, self.full = stages, full_from, window, full
        self.count = 0
        self.seconds: list[dict[str, float]] = [dict.fromkeys("FBUER", 0.0) for _ in range(stages)]
        self.reads: list[Counter[Read]] = [Counter() for _ in range(stages)]
        self._first: list[Event] = []
        self._last: deque[Event] = deque(maxlen=window)

    def record(self, event: Event) -> None:
        """Add one event; a stage's events come in the order in which it ran them."""
        stage, kind, index, start, end, version = event
        self.count += 1
        self.seconds[stage][kind] += end - start
        if self.full or len(self._first) < self.window:
            self._first.append(event)
        else:
            self._last.append(event)

    @property
    def events(self) -> list[Event]:
        """The kept events by their start."""
        return sorted([*self._first, *self._last], key=_start)  # workers report in turn

    @property
    def windows(self) -> list[list[Event]]:
        """The kept events in stretches without a gap."""
        return (
            [self.events]
            if self.count <= len(self._first) + len(self._last)
            else [self.first, self.last]
        )

    @property
    def first(self) -> list[Event]:
        """The first window of events."""
        return sorted(self._first[: self.window], key=_start)

    @property
    def last(self) -> list[Event]:
        """The last window of events."""
        return sorted(self._last or self._first[-self.window :], key=_start)

    def shifted(self, seconds: float) -> Trace:
        """The same on another clock."""
        moved = copy(self)
        moved._first = [
            e._replace(start=e.start + seconds, end=e.end + seconds) for e in self._first
        ]
        moved._last = deque(
            (e._replace(start=e.start + seconds, end=e.end + seconds) for e in self._last),
            maxlen=self.window,
        )
        return moved

    @classmethod
    def joined(cls, traces: Sequence[Trace]) -> Trace:
        """The traces of workers on one clock as one, which begins at 0."""
        whole = copy(traces[0])
        zero = min((e.start for t in traces for e in t._first), default=0.0)
        parts = [t.shifted(-zero) for t in traces]
        whole.count = sum(t.count for t in traces)
        whole.seconds = [
            {kind: sum(t.seconds[i][kind] for t in traces) for kind in whole.seconds[i]}
            for i in range(whole.stages)
        ]
        whole._first = sorted((e for t in parts for e in t._first), key=_start)
        whole._last = deque(sorted((e for t in parts for e in t._last), key=_start))
        return whole

    def busy(self, homes: Sequence[int]) -> tuple[float, ...] | None:
        """Per worker, the share of the run's time that it computed; None for a single one.

        homes: each stage's worker.  Evaluations, in which it waits for others, do not count.
        """
        workers = len(set(homes))
        if workers < 2 or not self.count:
            return None
        length = max(e.end for e in self.events) - min(e.start for e in self.events)
        busy = [0.0] * workers
        for home, row in zip(homes, self.seconds, strict=True):
            busy[home] += sum(s for kind, s in row.items() if kind != "E")
        return tuple(b / length for b in busy)

    def operations(self, stage: int) -> Operations:
        """The operations that `stage` (from 0) ran, among the kept events."""
        return Operations(Op(e.kind, e.index) for e in self.events if e.stage == stage)

    def staleness(self, stage: int) -> tuple[Delay, ...]:
        """The delay of each microbatch at `stage` (from 0), among the kept events."""
        stamps = Stamps()
        mine = (e for e in self.events if e.stage == stage)
        return tuple(d for e in mine for d in stamps.add(e.kind, e.index, e.version))

    def as_json(self) -> dict[str, Any]:
        """Lists and numbers that `from_json` turns back into this trace."""
        return {
            "stages": self.stages,
            "full_from": self.full_from,
            "count": self.count,
            "seconds": self.seconds,
            "reads": [[[*read, n] for read, n in row.items()] for row in self.reads],
            "events": self.events,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Trace:
        trace = cls(values["stages"], values["full_from"], full=True)
        for event in values["events"]:
            trace.record(Event(*event))
        trace.count, trace.seconds = values["count"], values["seconds"]
        trace.reads = [Counter({Read(*r[:-1]): r[-1] for r in row}) for row in values["reads"]]
        return trace
