"""The scalar quadratic on the real trainer: one weight w, loss w^2/2, one delay.

A stage whose one layer is w * 1, trained towards 0, or towards the negative of each step's noise:
its gradient is then w plus that noise, as in plan.theory.iterates.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..trainer.methods import PipeMare
from ..trainer.run import Run
from ..trainer.trainer import Trainer


def half_square(output: Tensor, target: Tensor) -> Tensor:
    """(output - target)^2 / 2, so that the gradient is output - target and the curvature 1."""
    return (output - target).square().mean() / 2


def train(
    weights: list[float],
    rate: float,
    tau: int,
    momentum: float = 0.0,
    steps: int = 100,
    noise: float = 0.0,
    seed: int = 0,
) -> Generator[Run, None, None]:
    """Train from w = 1; `weights` becomes w before the first step and after each.  Yields the run
    after every chunk.  noise and seed are those of plan.theory.iterates.

    It goes on, however large w grows, until w is no number any more.
    """
    layer = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(layer.weight)
    weights[:] = [1.0]

    def optimizer(named: list[tuple[str, nn.Parameter]]) -> torch.optim.Optimizer:
        made = torch.optim.SGD(named, lr=rate, momentum=momentum)
        made.register_step_post_hook(lambda *_: weights.append(layer.weight.item()))
        return made

    trainer = Trainer([layer], half_square, optimizer, PipeMare([tau]), limit=math.inf)
    shocks = np.random.default_rng(seed).normal(0.0, noise, steps).tolist()
    one = torch.ones(1, 1, dtype=torch.float64)
    yield from trainer.chunks([(one, -shock * one) for shock in shocks], steps)


def settled(weights: Sequence[float], noise: float = 0.0) -> bool:
    """Did w stay?  Its largest size in the last third is no larger than in the third before; or,
    under noise, not three times that."""
    sizes = np.abs(weights)
    third = len(sizes) // 3
    middle, last = sizes[third : 2 * third].max(), sizes[2 * third :].max()
    return bool(last <= (3 if noise else 1) * middle)


def trial_steps(tau: int, momentum: float = 0.0) -> int:
    """Steps in which a run a fifth below or above the edge shows which side it is on."""
    return round(60 * (tau + 1) / (1 - momentum) ** 0.5)
