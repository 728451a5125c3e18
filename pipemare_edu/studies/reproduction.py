"""The paper's comparison on small tasks, as it is shipped with the lessons.

    python -m pipemare_edu reproduce --preset full --out FOLDER
    python -m pipemare_edu.studies.reproduction FOLDER [--times] [--write]

The second command takes the finished runs from the folder and prints every task's table; --times
measures anew how long the stages' operations take here (studies.stage_times), --write ships both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any

from .. import tasks
from ..checks import unknown, whole
from ..figures.race import Racer
from ..lessons.cache import Cache
from ..plan.copies import BASE, EXTRA
from ..reproduce.presets import METHODS, PRESETS
from ..reproduce.render import markdown
from ..reproduce.section import Section
from ..reproduce.study import Case, Study, case
from ..reproduce.summary import TARGET, pace, summarize
from ..runs import Record
from ..training import prepare
from .races import racer
from .stage_times import MEASURED, StageTimes, measure

PRESET = PRESETS["full"]
PARTS = {part.kind: part for part in PRESET.parts}
KINDS = (*BASE, *EXTRA)  # of memory


@cache
def case_of(task: str) -> Case:
    """The setting that was run for a task; ValueError with the closest one if there is none."""
    if task not in PARTS:
        raise ValueError(unknown("task", task, PARTS))
    return case(PARTS[task])


@cache
def shipped() -> Cache:
    """The shipped results."""
    return Cache("reproduction")


def config(task: str, method: str, **what: Any) -> dict[str, Any]:
    """Under what a result of a method on a task is shipped; `what`: seed=..., or part=...."""
    on = case_of(task)
    setting = tasks.get(on.part.task).setting(on.network)
    names = ("stages", "microbatches", "batch", "rate")
    known = {name: getattr(setting, name) for name in names} | on.options
    return {"reproduction": task, **known, "method": repr(on.methods[method]), **what}


@cache
def records(task: str) -> list[Record]:
    """The shipped runs of a task, by method, then by seed: as much of them as `summarize` reads."""
    found = []
    for method in METHODS:
        pipeline = shipped().get(config(task, method, part="pipeline"))
        if pipeline is None:
            continue
        rows = zip(*pipeline["memory"].values(), strict=True)
        shared = {
            "method": method,
            "staleness": {"forward": [{"mean": mean} for mean in pipeline["staleness"]]},
            "memory": [dict(zip(pipeline["memory"], row, strict=True)) for row in rows],
        }
        runs = ((s, shipped().get(config(task, method, seed=s))) for s in PRESET.seeds)
        found += [{**shared, "seed": seed, **run} for seed, run in runs if run is not None]
    return found


@cache
def section(task: str, share: float = TARGET) -> Section:
    """The shipped runs of a task with a row for each method.

    share  of GPipe's quality that is the target of time
    """
    known = records(task)
    return Section(case_of(task), known, summarize(case_of(task), known, share))


def times(task: str) -> dict[str, StageTimes]:
    """{method: how long its stages' operations took} on the machine that the runs are from."""
    found = ((name, shipped().get(config(task, source, part="times"))) for name, source in BORROWED)
    return {name: StageTimes(*map(tuple, value)) for name, value in found if value is not None}


# T1 changes a number and T3 an order: their operations take as long as those of the method beside.
BORROWED = tuple(
    (name, {"pipemare-t1": "pipemare-naive", "pipemare": "pipemare-t1t2"}.get(name, name))
    for name in METHODS
)


def racers(task: str, methods: Sequence[str] = tuple(METHODS)) -> list[Racer]:
    """The shipped runs of some methods, with the score by which a run is followed."""
    metric = pace(tasks.get(case_of(task).part.task))
    return [
        Racer(
            r["method"],
            r["seed"],
            r["steps"],
            r["status"],
            scores=tuple((k, v) for k, v in r["metrics"].get(metric, ()) if v is not None),
            diverged=r["diverged"]["step"] + 1 if r["diverged"] else None,
            shipped=True,
        )
        for r in records(task)
        if r["method"] in methods
    ]


def live(task: str, method: str, seed: int, steps: int) -> Generator[Racer, bool | None, None]:
    """The first `steps` steps of exactly the run that was shipped for a seed, or would have been.

    Yields how it goes, chunk after chunk; send(True) cancels it.  Raises ValueError before any work
    for a method or a task that was not run, and for more steps than its runs have.
    """
    on = case_of(task)
    sliced(task, steps)
    if method not in METHODS:
        raise ValueError(unknown("method", method, METHODS))
    metric = pace(tasks.get(on.part.task))
    job = prepare(on.part.task, on.methods[method], seed=seed, **on.options)
    due = steps // job.every * job.every  # an evaluation is known some steps after it was due
    with closing(job.chunks()) as chunks:
        for run in chunks:
            now = racer(method, seed, run, metric)
            known = not due or any(k >= due for k, _ in now.scores)
            there = steps < on.steps and now.steps >= steps and known
            stopped = yield cut(now, steps, there)
            if stopped or there:
                return


def sliced(task: str, steps: int) -> int:
    """`steps` if a slice of a task's runs can have so many; else ValueError with how many."""
    known = case_of(task).steps
    if whole("steps", steps, 1) > known:
        raise ValueError(
            f"steps is {steps}: a run of {task} has {known} steps, and a slice of it no more"
        )
    return steps


def cut(r: Racer, steps: int, there: bool) -> Racer:
    """A run of which only the first `steps` steps count; there: it has done them."""
    if r.status == "diverged" and (r.diverged or 0) <= steps:
        return r
    scores = tuple((k, v) for k, v in r.scores if k <= steps)
    status = "done" if there else r.status
    return Racer(r.method, r.seed, min(r.steps, steps), status, r.losses, scores)


def after(runs: Sequence[Racer], method: str, step: int) -> dict[int, float | None]:
    """{seed: score at the last evaluation up to `step`; None for a run that diverged by then}."""
    found: dict[int, float | None] = {}
    for r in (r for r in runs if r.method == method):
        if r.diverged is not None and r.diverged <= step:
            found[r.seed] = None
        elif scores := [v for k, v in r.scores if k <= step]:
            found[r.seed] = scores[-1]
    return found


# From a folder of finished runs to what is shipped


def thin(record: Record, kept: Sequence[str]) -> dict[str, Any]:
    """What is shipped of one run: how it ended, and some of its metrics in four digits."""
    metrics = {name: record["metrics"][name] for name in kept if name in record["metrics"]}
    short = {k: [[s, v and float(f"{v:.4g}")] for s, v in row] for k, row in metrics.items()}
    names = ("status", "steps", "diverged", "seconds")
    return {**{name: record[name] for name in names}, "metrics": short}


def pipeline(record: Record) -> dict[str, Any]:
    """What all runs of a method share: staleness of forwards, and bytes per kind and stage."""
    memory: Mapping[str, list[int]] = {k: [row[k] for row in record["memory"]] for k in KINDS}
    means = [stage["mean"] for stage in record["staleness"]["forward"]]
    return {"staleness": means, "memory": memory}


def take(folder: str) -> Iterator[str]:
    """Put every finished run of a folder among the shipped results; yields what it did."""
    study = Study(PRESET, folder)
    for on in study.cases:
        task = tasks.get(on.part.task)
        found = study.records(on)
        for r in found:
            kept = [pace(task), task.score, *(n for n in ENDS if n in r["metrics"])]
            where = config(on.part.kind, r["method"], seed=r["seed"])
            shipped().put(where, thin(r, list(dict.fromkeys(kept))))
        for r in sorted(found, key=lambda r: r["steps"]):  # the longest run comes last, and stays
            where = config(on.part.kind, r["method"], part="pipeline")
            shipped().put(where, pipeline(r))
        yield f"{on.part.kind}: {len(found)} runs"
    records.cache_clear()


ENDS = ("bleu_beam", "exact_beam")


def main(argv: Sequence[str] | None = None) -> int:
    """Take the runs, print their tables; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.studies.reproduction")
    parser.add_argument("folder", help="of python -m pipemare_edu reproduce --preset full")
    parser.add_argument("--times", action="store_true", help="measure the stages here, too")
    parser.add_argument("--write", action="store_true", help="ship the results with the lessons")
    args = parser.parse_args(argv)
    for said in take(args.folder):
        sys.stdout.write(f"{said}\n")
    for task in PARTS:
        for method in MEASURED if args.times else ():
            where = config(task, method, part="times")
            shipped().put(where, measure(case_of(task), method).as_json())
        part = section(task)
        sys.stdout.write(markdown([part.title, part.outcome(), part.target(TARGET)]))
        sys.stdout.write(markdown([part.to_target()]) + "\n")
    if args.write:
        shipped().write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
