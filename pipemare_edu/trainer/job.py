"""What one worker has to do in a fit, as a value that can travel to its process."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
import torch
from torch import nn

from .blueprint import Blueprint, Built
from .checkpoint import State, collect, put_back
from .evaluation import Evaluation
from .feed import Source
from .interpreter import Interpreter
from .placement import Placement
from .run import Plan
from .wires import Wires

if TYPE_CHECKING:
    from .fit import Fit


@dataclass(frozen=True)
class Job:
    """Worker `rank` hosts the stages `hosted`, whose `layers` these are, for the steps from
    plan.first to `last`.  `evaluation` is its share; `state` is None before the first step."""

    rank: int
    hosted: range
    homes: Sequence[int]
    devices: Sequence[str]
    backend: str
    blueprint: Blueprint
    layers: list[nn.Module]
    plan: Plan
    last: int
    full_from: int
    evaluation: Evaluation | None
    state: State | None

    def encode(self) -> bytes:
        """Bytes for another process; what was defined in a notebook cell travels by value."""
        buffer = io.BytesIO()
        try:
            torch.save(self, buffer, pickle_module=cloudpickle)
        except Exception as error:
            raise ValueError(
                f"{self._stuck()} cannot travel to a worker ({error}): make there what cannot, in "
                "forward for instance, or train with workers=0"
            ) from error
        return buffer.getvalue()

    def _stuck(self) -> str:
        """What of the caller's cannot be encoded."""
        first = sum(self.blueprint.counts[: self.hosted.start])
        parts: list[tuple[str, Any]] = [(f"layer {n}", x) for n, x in enumerate(self.layers, first)]
        parts += [("loss", self.blueprint.loss), ("optimizer", self.blueprint.optimizer)]
        return next((name for name, part in parts if not _travels(part)), "evaluate or metrics")

    @staticmethod
    def decode(data: bytes) -> Job:
        """The job that `encode` wrote."""
        return torch.load(io.BytesIO(data), weights_only=False)

    @property
    def device(self) -> torch.device:
        """Where this worker computes."""
        return torch.device(self.devices[self.rank])

    def build(self) -> Built:
        """The stages and their optimizers, on the device and as they stood."""
        for layer in self.layers:
            layer.to(self.device)
        built = self.blueprint.build(self.layers, self.hosted)
        if self.state is not None:
            put_back(self.state, *built)
        for stage in built[0]:
            stage.reset(self.plan.first, self.full_from)
        return built

    def interpreter(self, built: Built, feed: Source, links: Wires) -> Interpreter:
        """The interpreter of the built stages."""
        evaluation = self.evaluation and self.evaluation.to(self.device)
        return self.blueprint.interpreter(built, feed, evaluation, links)


def _travels(part: Any) -> bool:
    try:
        cloudpickle.dumps(part)
    except Exception:
        return False
    return True


def job(fit: Fit, place: Placement, rank: int) -> Job:
    """What worker `rank` has to do in `fit`."""
    trainer, hosted = fit.trainer, place.hosted(rank)
    part = slice(hosted.start, hosted.stop)
    state = None
    if trainer.step:  # before the first step every state is a fresh one
        state = collect(trainer.stages[part], trainer.optimizers[part])
    first, last = rank == 0, rank == len(place.devices) - 1
    return Job(
        rank, hosted, place.homes, place.devices, place.backend, trainer.blueprint,
        trainer.blueprint.cut(trainer.layers, hosted), fit.plan, fit.last,
        fit.run.trace.full_from, fit.evaluation and fit.evaluation.share(first, last), state,
    )  # fmt: skip
