"""Layers whose work is done elsewhere: they sleep meanwhile, as a process does that has handed its
work to a device of its own.  Two of them overlap even where two processes share one core."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .timed import WIDTH

UNIT = 0.002  # seconds in one unit of work


class _Pause(torch.autograd.Function):
    """The identity, with a pause of `there` seconds on the way forward and `back` on the way
    back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: float, back: float) -> Tensor:
        ctx.back = back
        time.sleep(there)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        time.sleep(ctx.back)
        return gradient, None, None


class AwayLayer(nn.Module):
    """A Linear layer, (batch, 32) -> (batch, 32), that sleeps.

    forward, backward  units of it on either way
    """

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.there, self.back = UNIT * forward, UNIT * backward

    def forward(self, x: Tensor) -> Tensor:
        return _Pause.apply(self.linear(x), self.there, self.back)


def away(forward: Sequence[float], backward: Sequence[float]) -> list[nn.Module]:
    """An AwayLayer for each pair of the two lists, which are in units of work."""
    return [AwayLayer(f, b) for f, b in zip(forward, backward, strict=True)]
