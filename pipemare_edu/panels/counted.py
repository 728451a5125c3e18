"""A short real run, made for what it holds: the digits network, as deep as it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from .. import tasks
from ..models.mlp import mlp
from ..plan.copies import counted_factor
from ..tasks.task import Shuffled
from ..trainer.memory import Memory, memory
from ..trainer.methods import Method
from ..trainer.run import Run
from ..trainer.trainer import Trainer

BATCH = 48  # samples: most numbers of microbatches divide it


@dataclass(frozen=True)
class Counted:
    """A run so far, and once it is done its memory."""

    run: Run
    trainer: Trainer

    @cached_property
    def memory(self) -> Memory:
        """Predicted from one probe forward and the lists, beside counted while it ran."""
        return memory(self.trainer, self.run, first_batch())

    @property
    def factor(self) -> float:
        """Weights, gradients, optimizer state, stash and correction, over the first three."""
        return counted_factor(self.run.memory)

    @property
    def slots(self) -> int:
        """Stage activations: the most that each stage held, summed."""
        return sum(stage.held.slots for stage in self.memory.counted)

    @property
    def again(self) -> float:
        """Seconds of re-runs over the seconds of everything else."""
        spent = [sum(row[kind] for row in self.run.trace.seconds) for kind in "RFBU"]
        return spent[0] / sum(spent[1:])


def trainer(
    layers: int, build: Callable[..., Any], method: Method, stages: int, microbatches: int = 1
) -> Trainer:
    """The digits network of so many layers in a pipeline; build: its optimizer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = mlp(64, 64, 10, depth=layers)
    return Trainer(network, tasks.get("digits").loss, build, method, stages, microbatches)


def counting(trainer: Trainer, steps: int) -> Generator[Counted, None, None]:
    """Train for `steps` steps, in chunks; each yield is the run so far."""
    for run in trainer.chunks(_batches(), steps):
        yield Counted(run, trainer)


def first_batch() -> tuple[Tensor, Tensor]:
    return next(iter(_batches()))


def _batches() -> Shuffled:
    return Shuffled(tasks.get("digits").train, BATCH, seed=0)
