"""A trace in the Trace Event Format, which Perfetto and chrome://tracing open.

One process per worker, one thread per stage, one complete event ("X", microseconds) per operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..errors import NAMES
from ..plan.clock import Event


def chrome(windows: Sequence[Sequence[Event]], homes: Sequence[int]) -> dict[str, Any]:
    """Stretches of events as one JSON object; homes: each stage's worker."""
    rows: list[dict[str, Any]] = [
        _name("process_name", home, 0, f"worker {home}") for home in sorted(set(homes))
    ]
    rows += [
        _name("thread_name", home, stage + 1, f"stage {stage + 1}")
        for stage, home in enumerate(homes)
    ]
    rows += [
        {
            "name": f"{e.kind}{e.index}",
            "cat": NAMES[e.kind],
            "ph": "X",
            "ts": 1e6 * e.start,
            "dur": 1e6 * (e.end - e.start),
            "pid": homes[e.stage],
            "tid": e.stage + 1,
            "args": {"weight version": e.version},
        }
        for events in windows
        for e in events
    ]
    rows += [
        {"name": "operations that were not kept", "ph": "X", "pid": homes[0], "tid": 0,
         "ts": 1e6 * _end(before), "dur": 1e6 * (after[0].start - _end(before))}
        for before, after in pairwise(windows)
    ]  # fmt: skip
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def _end(events: Sequence[Event]) -> float:
    return max(e.end for e in events)


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
