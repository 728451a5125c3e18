"""Seconds from train() to the first metric, cold (a new Python) and warm, per engine."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

from ..training import prepare

ENGINES = {"in the kernel": 0, "2 workers": 2}
COLD = "from pipemare_edu.bench.startup import first; print(first({workers}))"


class Row(NamedTuple):
    """Medians in seconds.  cold: a new interpreter, its imports included."""

    engine: str
    cold: float
    warm: float


def first(workers: int) -> float:
    """Seconds from train("digits", workers=...) to the first evaluation's metric."""
    start = perf_counter()
    job = prepare("digits", steps=200, eval_every=1, workers=workers)
    for run in job.chunks():
        if run.metrics:
            seconds = perf_counter() - start
            run.cancel()
            break
    return seconds


def startup(rounds: int = 9) -> Iterator[Row]:
    """Measure each engine: cold a third as often as warm."""
    for name, workers in ENGINES.items():
        cold = []
        for _ in range(max(1, rounds // 3)):
            start = perf_counter()
            command = [sys.executable, "-c", COLD.format(workers=workers)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cold.append(perf_counter() - start)
            assert float(done.stdout) > 0
        first(workers)
        yield Row(
            name, statistics.median(cold), statistics.median(first(workers) for _ in range(rounds))
        )


def heading(rounds: int) -> str:
    """What the numbers are, and the names of the columns."""
    return (
        f'seconds from train("digits") to the first metric, medians of {rounds} (cold: with a new '
        f"Python around it)\n{'engine':16}{'cold':>8}{'warm':>8}"
    )


def line(row: Row) -> str:
    """One row as text."""
    return f"{row.engine:16}{row.cold:>8.2f}{row.warm:>8.2f}"
