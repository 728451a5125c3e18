"""How long the operations of each stage take, in real runs; and how often a pipeline of stages with
these times would end a minibatch, each of them on a device of its own."""

from __future__ import annotations

import statistics
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..plan.machine import Strategy
from ..plan.scale import steady_interval
from ..plan.timetable import Pipe
from ..reproduce.study import Case
from ..trainer.methods import Method
from ..trainer.run import Run
from ..training import prepare

MEASURED = ("gpipe", "pipedream", "pipemare-naive", "pipemare-t1t2")
STEPS, ROUNDS = 40, 3  # of a run; runs of which the fastest median counts


@dataclass(frozen=True)
class StageTimes:
    """Seconds of a forward, a backward and an update at each stage."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    update: tuple[float, ...]

    def as_json(self) -> list[list[float]]:
        return [[float(f"{s:.3g}") for s in row] for row in self.rows]

    @property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        return self.forward, self.backward, self.update

    def work(self, microbatches: int) -> list[float]:
        """What each stage computes in a minibatch."""
        return [microbatches * (f + b) + u for f, b, u in zip(*self.rows, strict=True)]

    def interval(self, method: Method, microbatches: int) -> float:
        """Seconds per minibatch once the pipe is full, by the clock; messages take no time."""
        stages = len(self.forward)
        depth = method.depth if isinstance(method.depth, str) else tuple(method.depth)
        strategy = Strategy(depth, microbatches)
        none = [0.0] * (stages - 1)
        return steady_interval(
            Pipe(
                strategy.depths(stages), microbatches, strategy.flushes, strategy.reruns(stages),
                self.forward, self.backward, self.update, none, none, tuple(range(stages)),
            )
        )  # fmt: skip


def measuring(case: Case, method: str, rounds: int = ROUNDS) -> Generator[float, None, StageTimes]:
    """Train the first steps of a case for real: medians over the operations of a run, and of some
    runs the least, because whatever else the machine does only adds.

    Yields which part of a run is done, chunk after chunk; returns the times.
    """
    found = []
    for seed in range(rounds):
        found.append(_medians((yield from _training(case, method, seed))))
    kinds = ([run[kind] for run in found] for kind in "FBU")
    return StageTimes(*(tuple(map(min, zip(*rows, strict=True))) for rows in kinds))


def measure(case: Case, method: str, rounds: int = ROUNDS) -> StageTimes:
    """What `measuring` returns."""
    running = measuring(case, method, rounds)
    while True:
        try:
            next(running)
        except StopIteration as end:
            times: StageTimes = end.value
            return times


def _training(case: Case, method: str, seed: int) -> Generator[float, None, Run]:
    options: dict[str, Any] = case.options | {"eval_every": case.steps}
    job = prepare(case.part.task, case.methods[method], seed=seed, **options)
    with closing(job.chunks()) as chunks:
        for run in chunks:
            yield min(run.steps / STEPS, 1.0)
            if run.steps >= STEPS:
                break
    return run


def _medians(run: Run) -> Mapping[str, list[float]]:
    """Per kind of operation, a median for each stage."""
    spent: dict[tuple[str, int], list[float]] = {}
    for e in run.trace.events:
        spent.setdefault((e.kind, e.stage), []).append(e.end - e.start)
    stages = range(run.trace.stages)
    return {kind: [statistics.median(spent[kind, i]) for i in stages] for kind in "FBU"}
