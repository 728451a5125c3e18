"""All methods over seeds, side by side: runs as records, records as a table."""

from __future__ import annotations

import math
import multiprocessing
import signal
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import cloudpickle

from . import tasks
from .trainer.methods import Depth, Method
from .trainer.registry import named
from .trainer.run import Run
from .training import prepare, scaled

Record = dict[str, Any]


def record(run: Run, method: str, seed: int) -> Record:
    """A run as one JSON object (DESIGN.md section 9); stages count from 1, steps are numbers of
    updates done, and a number that is not finite is None."""
    diverged = None
    if run.diverged is not None:
        step, stage, what = run.diverged
        diverged = {"step": step, "stage": stage + 1, "what": what}
    return finite(
        {
            "method": method,
            "seed": seed,
            "status": run.status,
            "steps": run.steps,
            "loss": run.losses[-1] if run.losses else None,
            "metrics": run.metrics,
            "diverged": diverged,
            "staleness": asdict(run.staleness),
            "utilization": asdict(run.utilization),
            "memory": run.memory,
            "seconds": run.seconds,
        }
    )


def finite(value: Any) -> Any:
    """`value` with every number that is not finite replaced by None."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def methods_for(
    task: str, names: Sequence[str], options: dict[str, Any], depth: Depth | None = None
) -> list[tuple[str, Method]]:
    """The named methods at the task's fixes for these options, the asynchronous ones at `depth` if
    it is given; ValueError for a name that is not known."""
    if not names:
        raise ValueError("no methods were named")
    setting = tasks.get(task).setting(options.get("network"))
    fixes = scaled(setting, options.get("steps") or setting.steps)
    chosen = [(name, named(name, fixes)) for name in names]
    if depth is not None:
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
        (task, name, method, seed, options) for name, method in methods for seed in range(seeds)
    ]
    if jobs == 1:
        for item in work:
            result = _one(item)
            yield result
            if result["status"] == "cancelled":
                return
        return
    context = multiprocessing.get_context("spawn")  # torch and fork do not go well together
    with context.Pool(min(jobs, len(work)), initializer=_ignore_interrupts) as pool:
        # cloudpickle sends a method class from a notebook cell or a script by value.
        yield from pool.imap_unordered(_unpickled, map(cloudpickle.dumps, work))


def _unpickled(item: bytes) -> Record:
    try:
        return _one(cloudpickle.loads(item))
    except Exception as error:
        error.__dict__.pop("run", None)  # it does not travel, and would hide the error
        raise


def _one(item: tuple[str, str, Method, int, dict[str, Any]]) -> Record:
    task, name, method, seed, options = item
    return record(prepare(task, method, seed=seed, **options).fit(), name, seed)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
    total = {kind: sum(stage[kind] for stage in r["memory"]) for kind in r["memory"][0]}
    base = total["weights"] + total["gradients"] + total["optimizer"]
    return (base + total["stash"] + total["correction"]) / base
