"""The quadratic with discrepancy on the real trainer: one weight, read twice.

    output = (L + Delta)/2 (x w)^2 - Delta/2 x w^2,  x = 1

x w is an activation, so its part of the gradient uses the weight of forward time; w^2 is
differentiated at the weight that stands there at backward time.  The gradient is PAPER.md section
3's (L + Delta) u_fwd - Delta u_bkwd with L = 1.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import torch
from torch import Tensor, nn

from ..trainer.methods import PipeMare
from ..trainer.run import Run
from ..trainer.trainer import Trainer


class TwoReads(nn.Module):
    """The layer above: w starts at 1."""

    def __init__(self, discrepancy: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.discrepancy = discrepancy

    def forward(self, x: Tensor) -> Tensor:
        activation = x * self.w
        return (1 + self.discrepancy) / 2 * activation**2 - self.discrepancy / 2 * x * self.w**2


def train(
    weights: list[float], rate: float, tau: int, discrepancy: float, t2: float | str, steps: int
) -> Generator[Run, None, None]:
    """Train from w = 1 with delay tau; `weights` becomes w before the first step and after each.
    Yields the run after every chunk.  t2: PipeMare's.

    It goes on, however large w grows, until w is no number any more.
    """
    layer = TwoReads(discrepancy)
    weights[:] = [1.0]

    def optimizer(named: list[tuple[str, nn.Parameter]]) -> torch.optim.Optimizer:
        made = torch.optim.SGD(named, lr=rate)
        made.register_step_post_hook(lambda *_: weights.append(layer.w.item()))
        return made

    trainer = Trainer(
        [layer], lambda output, _: output.mean(), optimizer, PipeMare([tau], t2=t2), limit=math.inf
    )
    one = torch.ones(1, 1, dtype=torch.float64)
    yield from trainer.chunks([(one, one)], steps)
