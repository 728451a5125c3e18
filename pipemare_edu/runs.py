"""Runs as records that JSON can hold, and many runs side by side."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import cloudpickle

from .errors import PipelineError
from .limits import processes
from .trainer.members import warm_up
from .trainer.methods import Method
from .trainer.placement import here
from .trainer.run import Run
from .training import prepare

Record = dict[str, Any]
Reports = Generator[tuple[int, "float | Record"], None, None]
T = TypeVar("T")
R = TypeVar("R")

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
        with closing(in_processes(_reports, work, jobs, BEAT)) as told:
            for news in told:
                yield from news
        return
    for place, item in enumerate(work):
        report: float | Record = 0.0
        for report in _reports(item):
            yield place, report
        if isinstance(report, dict) and report["status"] == "cancelled":
            return


BEAT = 0.5  # seconds between two reports of a run


def in_processes(
    carry: Callable[[T], Iterator[R]], items: Sequence[T], jobs: int, beat: float
) -> Generator[list[tuple[int, R]], None, None]:
    """Carry out items in `jobs` processes: every `beat` seconds or sooner, what has been reported
    since, as (place in `items`, report).

    carry  a function of a module (it is sent by its name); what it yields are an item's reports, of
           which one in every `beat` seconds arrives, and always the last

    An error in `carry` ends everything and is raised here.  Closing it ends the processes, which do
    not outlive this one either.
    """
    context, others = _context(), set(multiprocessing.active_children())
    reports = context.SimpleQueue()
    with context.Pool(min(jobs, len(items)) or 1, _start, (reports, carry, beat)) as pool:
        started = set(multiprocessing.active_children()) - others
        # cloudpickle sends a method class from a notebook cell or a script by value.
        results = pool.imap_unordered(_in_process, map(cloudpickle.dumps, enumerate(items)))
        for _ in items:
            result = None
            while result is None:
                alive = all(process.is_alive() for process in started)
                result = _wait(results, beat)
                news = []
                while not reports.empty():
                    news.append(reports.get())
                if result is None and not alive:  # the pool would wait for it for ever
                    raise PipelineError(
                        "a process that trained was ended from outside (out of memory?): fewer "
                        "runs side by side need less"
                    )
                yield news if result is None else [*news, result]


def _context() -> Any:
    """Processes from the workers' server start in a tenth of a second, fresh ones in three; torch
    and a plain fork do not go well together."""
    if not here().forkserver:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    warm_up()
    return context


def _wait(results: Any, seconds: float) -> Any:
    try:
        return results.next(timeout=seconds)
    except multiprocessing.TimeoutError:
        return None


class _Here(NamedTuple):
    """In a process that trains: where its reports go, what makes them, and how often one goes."""

    reports: Any
    carry: Callable[[Any], Iterator[Any]]
    beat: float


_here: _Here


def _start(*given: Any) -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone decides what it means."""
    global _here
    _here = _Here(*given)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_process(item: bytes) -> tuple[int, Any]:
    """Send on what is reported of an item, now and then, but for the last report: returns it."""
    place, work = cloudpickle.loads(item)
    parent, due = multiprocessing.parent_process(), 0.0
    try:
        reports = _here.carry(work)
        report = next(reports)
        for later in reports:
            if monotonic() >= due:
                due = monotonic() + _here.beat
                if parent is not None and not parent.is_alive():
                    os._exit(1)
                _here.reports.put((place, report))
            report = later
    except Exception as error:
        error.__dict__.pop("run", None)  # it does not travel, and would hide the error
        raise
    return place, report


def _reports(work: Work) -> Iterator[float | Record]:
    """The share of its steps that the run has done, chunk after chunk, then its record."""
    job = prepare(work.task, work.method, seed=work.seed, **work.options)
    with closing(job.chunks()) as chunks:
        for run in chunks:
            yield run.steps / job.steps
    yield record(run, work.name, work.seed)
