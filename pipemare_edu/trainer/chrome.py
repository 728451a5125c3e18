"""A trace in the Trace Event Format, which Perfetto and chrome://tracing open.

One process per worker, one thread per stage, one complete event ("X", microseconds) per operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import NAMES
from ..plan.clock import Event


def chrome(events: Iterable[Event], homes: Sequence[int]) -> dict[str, Any]:
    """The events as one JSON object; homes: each stage's worker."""
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
        for e in events
    ]
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
