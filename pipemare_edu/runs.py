"""Runs as records that JSON can hold, and many runs side by side."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from time import monotonic
from typing import Any, NamedTuple

import cloudpickle

from .errors import PipelineError
from .limits import processes
from .trainer.methods import Method
from .trainer.run import Run
from .training import prepare

Record = dict[str, Any]
Reports = Generator[tuple[int, "float | Record"], None, None]

RUN_BYTES = 400 << 20  # of a process with torch that trains one of the small tasks


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


class Work(NamedTuple):
    """One run to do; `name` is the method's, `options` are as for `train`."""

    task: str
    name: str
    method: Method
    seed: int
    options: dict[str, Any]


def jobs_here() -> int:
    """How many runs fit side by side here."""
    return processes(each=RUN_BYTES)


def side_by_side(work: Sequence[Work], jobs: int) -> Reports:
    """Reports from the runs, (place in `work`, report): now and then the share of its steps that a
    run has done, from 0 to 1, and its record as it ends.

    jobs  runs at a time, in processes of their own if more than one (the bits are the same)

    Stops after a run that was cancelled; closing it stops the processes, which do not outlive this
    one either.
    """
    if jobs > 1:
        yield from _in_processes(work, jobs)
        return
    for place, item in enumerate(work):
        report: float | Record = 0.0
        for report in _reports(item):
            yield place, report
        if isinstance(report, dict) and report["status"] == "cancelled":
            return


def _in_processes(work: Sequence[Work], jobs: int) -> Reports:
    context = multiprocessing.get_context("spawn")  # torch and fork do not go well together
    shares, others = context.SimpleQueue(), set(multiprocessing.active_children())
    with context.Pool(min(jobs, len(work)) or 1, _start, (shares,)) as pool:
        processes = set(multiprocessing.active_children()) - others
        # cloudpickle sends a method class from a notebook cell or a script by value.
        results = pool.imap_unordered(_in_process, map(cloudpickle.dumps, enumerate(work)))
        for _ in work:
            result = None
            while result is None:
                alive = all(process.is_alive() for process in processes)
                result = _wait(results)
                while not shares.empty():
                    yield shares.get()
                if result is None and not alive:  # the pool would wait for it for ever
                    raise PipelineError(
                        "a process that trained was ended from outside (out of memory?): fewer "
                        "runs side by side need less"
                    )
            yield result


def _wait(results: Any) -> tuple[int, Record] | None:
    try:
        return results.next(timeout=BEAT)
    except multiprocessing.TimeoutError:
        return None


BEAT = 0.5  # seconds between two reports of a run
_shares: Any = None  # in a process that trains: where its reports go


def _start(shares: Any) -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone decides what it means."""
    global _shares
    _shares = shares
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_process(item: bytes) -> tuple[int, Record]:
    place, work = cloudpickle.loads(item)
    try:
        return place, _carried(place, _reports(work))
    except Exception as error:
        error.__dict__.pop("run", None)  # it does not travel, and would hide the error
        raise


def _carried(place: int, reports: Iterator[float | Record]) -> Record:
    """Send on what a run reports; returns its record."""
    parent, due = multiprocessing.parent_process(), 0.0
    for report in reports:
        if isinstance(report, dict):
            return report
        if monotonic() >= due:
            due = monotonic() + BEAT
            if parent is not None and not parent.is_alive():
                os._exit(1)
            _shares.put((place, report))
    raise AssertionError("a run ended without its record")


def _reports(work: Work) -> Iterator[float | Record]:
    """The share of its steps that the run has done, chunk after chunk, then its record."""
    job = prepare(work.task, work.method, seed=work.seed, **work.options)
    with closing(job.chunks()) as chunks:
        for run in chunks:
            yield run.steps / job.steps
    yield record(run, work.name, work.seed)
