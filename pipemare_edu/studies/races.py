"""Races: the same task trained by several methods with several seeds, live or as shipped.

    python -m pipemare_edu.studies.races [--write]

trains the runs that the lessons' races show by default and prints how they ended; --write ships
them with the lessons.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from tqdm import tqdm

from .. import tasks
from ..compare import methods_for
from ..figures.curves import points
from ..figures.race import Racer, words
from ..lessons.cache import Cache
from ..runs import in_processes
from ..trainer.methods import Method, PipeMare
from ..trainer.run import Run
from ..training import prepare

POINTS = 64  # most points of a run's loss
BEAT = 0.05  # seconds between two reports of runs in processes

Methods = Sequence[str] | Mapping[str, str | Method]


@dataclass(frozen=True)
class Track:
    """What all runs of a race share; `track` fills in a task's own setting."""

    task: str
    network: str
    rate: float
    stages: int
    microbatches: int
    steps: int

    @property
    def score(self) -> str:
        """The metric that counts."""
        return tasks.get(self.task).score

    def lineup(self, methods: Methods) -> dict[str, Method]:
        """{label: method}.  Names take the task's fixes, scaled to the track's steps.

        ValueError for a name that is not known, or for none at all.
        """
        given = methods if isinstance(methods, Mapping) else {name: name for name in methods}
        options = {"network": self.network, "steps": self.steps}
        names = [value for value in given.values() if isinstance(value, str)]
        for label, value in given.items():
            if not isinstance(value, str | Method):
                raise ValueError(f"{label!r} is {value!r}: give a method or its name")
        known = dict(methods_for(self.task, names, options)) if names or not given else {}
        return {k: known[v] if isinstance(v, str) else v for k, v in given.items()}

    def run(self, method: Method, seed: int) -> Generator[Run, None, None]:
        """A real run in chunks.  ValueError, before the first, for what cannot run."""
        return prepare(**asdict(self), method=method, seed=seed).chunks()


def track(task: str = "digits", network: str | None = None, **given: Any) -> Track:
    """A track: rate, stages, microbatches and steps are those of `given`, and where there is none,
    or None, the task's own for that network."""
    known = tasks.get(task)
    setting = known.setting(network)
    asked = {name: value for name, value in given.items() if value is not None}
    own = {name: getattr(setting, name) for name in ("rate", "stages", "microbatches", "steps")}
    return Track(task, network or next(iter(known.settings)), **own | asked)


def racer(label: str, seed: int, run: Run, score: str) -> Racer:
    """How a run went, or goes so far."""
    steps, means = points(run, POINTS) if run.losses else ((), ())
    losses = [(int(step), _digits(mean)) for step, mean in zip(steps, means, strict=True)]
    if run.diverged and losses:
        finite = [loss for loss in run.losses if math.isfinite(loss)]
        losses[-1] = (losses[-1][0], _digits(finite[-1]) if finite else 0.0)
    scores = [(step, _digits(value)) for step, value in run.metrics.get(score, ())]
    diverged = run.diverged[0] + 1 if run.diverged else None
    return Racer(label, seed, run.steps, run.status, tuple(losses), tuple(scores), diverged)


def _digits(value: float) -> float:
    """Four digits, which is more than a figure shows."""
    return float(f"{value:.4g}")


class Entry(NamedTuple):
    """One run of a race, to be done."""

    on: Track
    label: str
    method: Method
    seed: int

    def carried(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Racer]:
        """How it goes, after every chunk of work.  `stop` is asked each time: True cancels it."""
        for run in self.on.run(self.method, self.seed):
            if stop():
                run.cancel()
            yield racer(self.label, self.seed, run, self.on.score)


def race(
    on: Track,
    methods: Mapping[str, Method],
    seeds: Sequence[int],
    live: bool = False,
    stop: Callable[[], bool] = lambda: False,
    jobs: int = 1,
) -> Generator[list[Racer], None, None]:
    """The racers so far, those under way among them, after every chunk of work: first those that
    were shipped, then these and the others as they are trained.

    live  trains every run here; otherwise only those that were not shipped
    stop  asked after each chunk: True cancels the runs under way and ends the race
    jobs  runs at a time: one, here, or several, in processes of their own (the bits are the same)

    Raises ValueError before any work for what cannot run.
    """
    entries = [Entry(on, k, m, seed) for seed, (k, m) in itertools.product(seeds, methods.items())]
    known = {n: None if live else shipped(*entry) for n, entry in enumerate(entries)}
    racers = {n: r for n, r in known.items() if r is not None}
    rest = [n for n in known if n not in racers]
    for label in {entries[n].label for n in rest}:
        prepare(**asdict(on), method=methods[label])
    if racers:
        yield list(racers.values())
    for news in _trained([entries[n] for n in rest], stop, jobs) if rest else ():
        racers |= {rest[place]: now for place, now in news}
        yield [racers[n] for n in sorted(racers)]


def _trained(
    entries: Sequence[Entry], stop: Callable[[], bool], jobs: int
) -> Iterator[list[tuple[int, Racer]]]:
    """The news of those runs, as (place in `entries`, how it goes)."""
    if jobs == 1:
        for place, entry in enumerate(entries):
            yield from ([(place, now)] for now in entry.carried(stop))
            if stop():
                return
        return
    latest: dict[int, Racer] = {}
    with closing(in_processes(Entry.carried, entries, jobs, BEAT)) as reports:
        for news in reports:
            latest |= dict(news)
            yield news
            if stop():
                break
    left = {n: r for n, r in latest.items() if r.status == "running"}
    yield [(n, replace(r, status="cancelled")) for n, r in left.items()]


def config(on: Track, method: Method, seed: int) -> dict[str, Any]:
    """Under what a run is shipped."""
    return {"race": asdict(on), "method": repr(method), "seed": seed}


def shipped(on: Track, label: str, method: Method, seed: int) -> Racer | None:
    """The shipped run of exactly this track, method and seed, if there is one."""
    if type(method).__module__ != Method.__module__:
        return None  # a learner's own class may print like one of ours
    value = results().get(config(on, method, seed))
    return None if value is None else _from_json(value, label)


@cache
def results() -> Cache:
    """The shipped runs."""
    return Cache("races")


def _to_json(r: Racer) -> dict[str, Any]:
    return {k: v for k, v in asdict(r).items() if k not in ("method", "shipped")}


def _from_json(value: Mapping[str, Any], label: str) -> Racer:
    pairs = {name: tuple((s, v) for s, v in value[name]) for name in ("losses", "scores")}
    return Racer(**{**value, **pairs, "method": label, "shipped": True})


# What is shipped

FULL, SHORT = track(), track(steps=400)
SAFE = track(steps=400, rate=0.02)  # here plain asynchronous training has nothing to be cured of
KS = (25, 50, 100, 150, 200, 250, 300, 350, 400)
THREE = ("gpipe", "pipemare-naive", "pipemare-t1")
T2 = ("pipemare-t2", "pipemare-t1t2")
DECAYS = (0.01, 0.5)


def defaults() -> Iterator[tuple[Track, dict[str, Method], Sequence[int]]]:
    """(track, methods, seeds) of every race that is shipped."""
    yield FULL, FULL.lineup(THREE), range(3)
    yield FULL, FULL.lineup(T2) | {f"D = {d}": PipeMare(t2=d) for d in DECAYS}, range(3)
    yield SAFE, SAFE.lineup(THREE[:2]) | {"T1, K = 400": PipeMare(t1=400)}, range(3)
    yield SHORT, {f"K = {k}": PipeMare(t1=k) for k in KS}, range(3)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is shipped and has not been trained; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.studies.races")
    parser.add_argument("--again", action="store_true", help="train what is shipped already, too")
    parser.add_argument("--write", action="store_true", help="ship the results with the lessons")
    args = parser.parse_args(argv)
    for on, methods, seeds in defaults():
        entries = list(itertools.product(methods.items(), seeds))
        ended = []
        for (label, method), seed in tqdm(entries, unit="run", file=sys.stderr):
            found = None if args.again else shipped(on, label, method, seed)
            if found is None:
                *_, (found,) = race(on, {label: method}, [seed], live=True)
                results().put(config(on, method, seed), _to_json(found))
                if args.write:
                    results().write()
            ended.append(replace(found, shipped=False))
        sys.stdout.write(f"{on}\n" + "\n".join(words(ended, on.score)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
