"""All methods over seeds, side by side: records of runs as a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from . import tasks
from .plan.copies import counted_factor
from .runs import Record, Work, finite, record, side_by_side
from .trainer.methods import Depth, Method
from .trainer.registry import named
from .training import prepare, scaled

__all__ = [
    "HEAD", "LEGEND", "Record", "compare", "final", "finite", "memory_factor", "methods_for",
    "record", "table",
]  # fmt: skip


def methods_for(
    task: str, names: Sequence[str], options: dict[str, Any], depth: Depth | None = None
) -> list[tuple[str, Method]]:
    """The named methods at the task's fixes for these options, the asynchronous ones at `depth` if
    it is given; ValueError for a name that is not known or comes twice, and for a depth that no
    method takes."""
    if not names:
        raise ValueError("no methods were named")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"method {name} is named twice")
    setting = tasks.get(task).setting(options.get("network"))
    fixes = scaled(setting, options.get("steps") or setting.steps)
    chosen = [(name, named(name, fixes)) for name in names]
    if depth is not None:
        if all(method.synchronous for _, method in chosen):
            raise ValueError(
                f"depth is {depth!r}, and {', '.join(names)} has none, being synchronous: leave it "
                "out, or name an asynchronous method"
            )
        chosen = [(n, m if m.synchronous else replace(m, depth=depth)) for n, m in chosen]
    return chosen


def compare(
    task: str,
    methods: Sequence[tuple[str, Method]],
    seeds: int,
    jobs: int = 1,
    **options: Any,
) -> Iterator[Record]:
    """One record per method and seed, as the runs end.

    jobs     runs side by side, in processes of their own if more than one (the bits are the same)
    options  as for `train`

    Raises ValueError before any work.  Stops after a run that was cancelled; leaving the loop stops
    the processes.
    """
    for _, method in methods:
        prepare(task, method, **options)
    return _records(task, methods, seeds, jobs, options)


def _records(
    task: str,
    methods: Sequence[tuple[str, Method]],
    seeds: int,
    jobs: int,
    options: dict[str, Any],
) -> Iterator[Record]:
    work = [
        Work(task, name, method, seed, options) for name, method in methods for seed in range(seeds)
    ]
    with closing(side_by_side(work, jobs)) as reports:
        for _, report in reports:
            if not isinstance(report, float):
                yield report


HEAD = ("method", "mean", "spread", "diverged", "staleness", "utilization", "memory", "seconds")


def table(records: Iterable[Record], task: str) -> str:
    """The comparison as aligned text; every column is explained in `LEGEND`."""
    rows: list[tuple[str, ...]] = [HEAD]
    groups: dict[str, list[Record]] = {}
    for r in records:
        groups.setdefault(r["method"], []).append(r)
    score = tasks.get(task).score
    for name, runs in groups.items():
        rows.append(_row(name, runs, score))
    widths = [max(len(row[c]) for row in rows) for c in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


LEGEND = """mean, spread: {score} on the test set after the last step; a diverged run counts 0
staleness: of the first stage's forward weights, in steps, measured once the pipe is full
utilization: by the clock, in steady state; memory: weights, gradients, optimizer and extra copies
over weights, gradients and optimizer alone"""


def _row(name: str, runs: Sequence[Record], score: str) -> tuple[str, ...]:
    values = [final(r, score) for r in runs if r["status"] != "cancelled"]
    diverged = sum(r["status"] == "diverged" for r in runs)
    delays = [r["staleness"]["forward"][0]["mean"] for r in runs]
    return (
        name,
        f"{statistics.mean(values):.2f}" if values else "-",
        f"{statistics.pstdev(values):.2f}" if len(values) > 1 else "-",
        f"{diverged} of {len(runs)}",
        f"{max(delays):.2f}",
        f"{runs[0]['utilization']['model']:.2f}",
        f"{max(memory_factor(r) for r in runs):.2f}x",
        f"{statistics.mean(r['seconds'] for r in runs):.1f}",
    )


def final(r: Record, score: str) -> float:
    """The last value of a metric; 0 for a run that diverged."""
    values = r["metrics"].get(score) or []
    return float(values[-1][1] or 0.0) if values and r["status"] != "diverged" else 0.0


def memory_factor(r: Record) -> float:
    """All weight-sized memory over what every method has: weights, gradients, optimizer."""
    return counted_factor(r["memory"])
