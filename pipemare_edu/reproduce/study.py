"""A study: every method on every task and seed of a preset, each run done once and kept."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .. import __version__, tasks
from ..runs import Record, Work, side_by_side
from ..tasks import READERS
from ..trainer.methods import Method
from ..trainer.registry import Fixes, named
from ..training import prepare, scaled
from .presets import METHODS, Part, Preset
from .store import Config, Store

EVALUATIONS = 25  # of a run: how finely "steps to target" is known


def versions() -> dict[str, str]:
    """What a run's bits depend on besides its settings."""
    return {
        "pipemare_edu": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Case:
    """A task with a network, and the fixes and methods for a run of `steps` steps."""

    part: Part
    network: str
    steps: int
    fixes: Fixes
    methods: dict[str, Method]

    @property
    def options(self) -> dict[str, Any]:
        """As for `train`."""
        every = max(1, self.steps // EVALUATIONS)
        return {"network": self.network, "steps": self.steps, "eval_every": every}


def case(part: Part, steps: int | None = None) -> Case:
    """`part` at its own number of steps, or at another one with the fixes scaled to it; ValueError
    for a task or a network that there is not."""
    task = tasks.get(part.task)
    setting = task.setting(part.network)
    network = next(name for name, known in task.settings.items() if known is setting)
    steps = setting.steps if steps is None else steps
    fixes = scaled(setting, steps)
    return Case(part, network, steps, fixes, {name: named(name, fixes) for name in METHODS})


class Asked(NamedTuple):
    """A run that the study is to have: what it is kept under, and what does it."""

    case: Case
    config: Config
    work: Work


class Study:
    """The runs of `preset`, of which `folder` may have some; it is made if they can be run.

    steps   of every run; None: each task's own
    device  as for Trainer

    Raises ValueError for what no run can be made of, and for a folder that cannot be written.
    """

    def __init__(
        self, preset: Preset, folder: str | Path, steps: int | None = None, device: str = "auto"
    ) -> None:
        self.preset = preset
        self.cases = [case(part, steps) for part in preset.parts]
        self.asked = [
            _asked(each, name, seed, device)
            for seed in preset.seeds  # first, so that a study cut short has all methods
            for each in self.cases
            for name in each.methods
        ]
        self.store = Store(folder)

    def missing(self) -> list[Asked]:
        """What the store does not have yet."""
        return [asked for asked in self.asked if self.store.get(asked.config) is None]

    def records(self, case: Case) -> list[Record]:
        """The runs of one task that there are, by method, then by seed."""
        mine = [a for a in self.asked if a.case is case]
        order = list(METHODS)
        mine.sort(key=lambda a: (order.index(a.work.name), a.work.seed))
        found = (self.store.get(asked.config) for asked in mine)
        return [record for record in found if record is not None]

    def run(self, jobs: int) -> Iterator[tuple[float, Record | None]]:
        """Do what is missing, `jobs` runs at a time: (runs done since the start, parts of runs
        included; the record of the one that has just ended), now and then.

        Every run is kept as it ends.  Raises ValueError before any work for what cannot run.  Stops
        after a run that was cancelled.
        """
        todo = self.missing()
        for work in {(a.work.task, a.work.name): a.work for a in todo}.values():
            prepare(work.task, work.method, **work.options)
        return self._run(todo, jobs)

    def _run(self, todo: Sequence[Asked], jobs: int) -> Iterator[tuple[float, Record | None]]:
        shares = [0.0] * len(todo)
        with closing(side_by_side([a.work for a in todo], min(jobs, len(todo)))) as reports:
            for place, report in reports:
                if isinstance(report, float):
                    shares[place] = report
                    yield sum(shares), None
                elif report["status"] != "cancelled":
                    shares[place] = 1.0
                    self.store.put(todo[place].config, report)
                    yield sum(shares), report


def _asked(each: Case, name: str, seed: int, device: str) -> Asked:
    method, task = each.methods[name], each.part.task
    setting = tasks.get(task).setting(each.network)
    config = {
        "task": _absolute(task),
        "method": name,
        "seed": seed,
        "fields": asdict(method),
        "stages": setting.stages,
        "microbatches": setting.microbatches,
        "batch": setting.batch,
        "rate": setting.rate,
        "device": device,
        **each.options,
        **versions(),
    }
    return Asked(each, config, Work(task, name, method, seed, each.options | {"device": device}))


def _absolute(task: str) -> str:
    """NAME:FOLDER means the same wherever it is typed."""
    kind, _, folder = task.partition(":")
    return f"{kind}:{Path(folder).resolve()}" if kind in READERS else task
