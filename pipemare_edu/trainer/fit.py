"""One fit of a trainer: what was asked for, and the run that records what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from . import checkpoint
from .checkpoint import State
from .evaluation import Evaluation
from .feed import Feed, starves_on_one_sample
from .randomness import Sandbox
from .run import Plan, Run

if TYPE_CHECKING:
    from .trainer import Trainer


@dataclass
class Fit:
    """A trainer's fit from its present step to step `last`.

    plan     the operation lists         run      filled in while they are carried out
    batches  the caller's data           sandbox  the caller's random state, while batches are read
    save_to  where a checkpoint goes after every plan.save_every steps; "{step}" in it is replaced
    """

    trainer: Trainer
    plan: Plan
    last: int
    batches: Iterable[Any]
    evaluation: Evaluation | None
    sandbox: Sandbox
    run: Run
    save_to: str
    saved: tuple[int, Path] | None = None  # the last checkpoint written: its step, its file

    def feed(self, device: torch.device, keep: tuple[bool, bool] = (True, True)) -> Feed:
        """The caller's batches as microbatches on `device`, after those that an earlier fit has
        used.  keep: are the inputs, are the targets asked for?"""
        trainer = self.trainer
        return Feed(
            self.batches, trainer.blueprint.microbatches, range(trainer.step, self.last),
            trainer.blueprint.loss, device, starves_on_one_sample(trainer.layers), trainer.used,
            self.sandbox.outside, keep,
        )  # fmt: skip

    def drained(self, step: int, state: Callable[[], State]) -> None:
        """The pipe is empty after `step` steps: write a checkpoint if one is due."""
        if self.plan.drains(step):
            path = Path(self.save_to.replace("{step}", str(step)))
            whole = state()
            whole.meta |= {"last": self.last, "method": repr(self.plan.method)}
            checkpoint.write(self.trainer, whole, step, path)
            self.saved = step, path

    def left(self, weights: str, dropped: bool = True) -> str:
        """What is left of a run that failed, `weights`, and how to lose less.

        dropped  was something in flight?
        """
        way_on = "a run with save_every and save_to keeps checkpoints to go on from"
        if self.saved:
            step, path = self.saved
            way_on = f"restore (--resume) {path} goes on from step {step}"
        lost = "what was in flight was dropped: " if dropped else ""
        return f"{lost}the weights are those {weights}; {way_on}"
