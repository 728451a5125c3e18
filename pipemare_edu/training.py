"""Training a task by name: what `train`, the command line and the panels share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from . import tasks
from .checks import FINITE, positive, whole
from .tasks.task import Setting, Shuffled, Task
from .trainer.checkpoint import State
from .trainer.feed import check_sizes, starves_on_one_sample
from .trainer.methods import Method
from .trainer.randomness import Sandbox
from .trainer.registry import Fixes, named
from .trainer.run import Run
from .trainer.session import last
from .trainer.trainer import Trainer


@dataclass(frozen=True)
class Job:
    """A task's training, prepared and checked: nothing has run yet."""

    task: Task
    trainer: Trainer
    batch: int
    steps: int
    every: int
    seed: int

    def fit(self) -> Run:
        """Train to the end; see Trainer.fit."""
        return last(self.chunks())

    def resumed(self, path: str | Path) -> Job:
        """The same, going on from a checkpoint, with the steps that are left.

        Raises ValueError for one of another run: its schedules were made for its own length.
        """
        try:
            meta = State.decode(Path(path).read_bytes()).meta
        except OSError as error:
            raise ValueError(f"cannot resume from {path}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"cannot resume from {path}: {error}") from None
        mine = {"last": self.steps, "method": repr(self.trainer.blueprint.method)}
        for name, value in (self.trainer.remembered | mine).items():
            if meta.get(name, value) != value:
                words = "steps" if name == "last" else name
                raise ValueError(
                    f"{path} was written by a run with {words} {meta[name]}, this one has "
                    f"{value}: give the same, because what is left of the run depends on it"
                )
        self.trainer.restore(path)
        left = self.steps - self.trainer.step
        if left < 1:
            raise ValueError(
                f"{path} has {self.trainer.step} steps and the run is to have {self.steps}: "
                "there is nothing left to do"
            )
        return replace(self, steps=left)

    def chunks(self, **options: Any) -> Generator[Run, None, None]:
        """Train in chunks; see Trainer.chunks.  A run that is done ends with what the task
        generates from the trained layers, among its metrics."""
        chunks = self.trainer.chunks(
            Shuffled(self.task.train, self.batch, self.seed),
            steps=self.steps,
            evaluate=self.task.tests(),
            every=self.every,
            metrics=self.task.metrics,
            **options,
        )
        with closing(chunks):
            for run in chunks:
                if run.status == "done" and self.task.generate is not None:
                    with Sandbox(self.trainer.device):
                        generated = self.task.generate(self.trainer.layers)
                    run.metrics |= {name: [(run.steps, v)] for name, v in generated.items()}
                yield run


def prepare(
    task: str,
    method: str | Method = "pipemare",
    stages: int | Sequence[int] | None = None,
    microbatches: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    workers: int | str = 0,
    network: str | None = None,
    rate: float | None = None,
    batch: int | None = None,
    eval_every: int | None = None,
    device: str = "auto",
    timeout: float = 60,
) -> Job:
    """Check everything and build the trainer; None takes the task's own setting.

    Raises ValueError for anything that cannot run: an unknown name (with the closest one), more
    stages than layers, more microbatches than samples, a rate that is not a positive number.
    """
    chosen = tasks.get(str(task))
    setting = chosen.setting(network)
    steps = whole("steps", setting.steps if steps is None else steps, 1)
    batch = whole("batch", setting.batch if batch is None else batch, 1, chosen.samples)
    peak = positive("rate", setting.rate if rate is None else rate, FINITE)
    microbatches = setting.microbatches if microbatches is None else microbatches
    microbatches, seed = whole("microbatches", microbatches, 1), whole("seed", seed, 0)
    if microbatches > batch:
        raise ValueError(
            f"microbatches is {microbatches}: a batch of {batch} cannot be cut so often"
        )
    every = whole("eval_every", max(1, steps // 8) if eval_every is None else eval_every, 1)
    if isinstance(method, str):
        method = named(method, scaled(setting, steps))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = setting.layers()
    trainer = Trainer(
        layers,
        chosen.loss,
        lambda pairs: setting.optimizer(pairs, peak, steps),
        method=method,
        stages=setting.stages if stages is None else stages,
        microbatches=microbatches,
        workers=workers,
        device=device,
        seed=seed,
        timeout=timeout,
    )
    trainer.remembered = {"task": chosen.name, "rate": peak, "batch": batch}
    check_sizes(batch, microbatches, "a batch", starves_on_one_sample(layers))
    return Job(chosen, trainer, batch, steps, every, seed)


def scaled(setting: Setting, steps: int) -> Fixes:
    """The setting's fixes for a run of another length: T1 and T3 keep their share of it."""
    share = steps / setting.steps
    fixes = setting.fixes
    return replace(fixes, t1=max(1, round(fixes.t1 * share)), t3=round(fixes.t3 * share))


def train(
    task: str,
    method: str | Method = "pipemare",
    stages: int | Sequence[int] | None = None,
    microbatches: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    workers: int | str = 0,
    network: str | None = None,
    rate: float | None = None,
    batch: int | None = None,
    eval_every: int | None = None,
) -> Run:
    """Train a task by name and return the run.

    task     "digits", "words", "phrases", "shapes", "characters", "regression"; or, with your own
             files, "cifar10:FOLDER", "iwslt14:FOLDER", "wmt17:FOLDER"
    method   a name (`method_names()`) or a method such as pm.PipeMare(t1=400, t2=0.135)
    network  one of the task's networks
    workers  0, a number of worker processes, "auto" or "env" (see Trainer)

    Whatever is None is the task's own setting for that network; T1's annealing and T3's warm-up
    keep their share of a run of another length.  Raises ValueError before any work.
    """
    return prepare(
        task, method, stages, microbatches, steps, seed, workers, network, rate, batch, eval_every
    ).fit()


def warm_up() -> None:
    """The first optimizer of a process imports a second's worth of torch: not after a click."""
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
