"""Layers that take as long as they are told to: real matrix products, as many as were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

WIDTH = 32
SIDE = 128  # of the square matrices that are multiplied
UNIT = 8  # products in one unit of work: about a quarter of a millisecond


class _Products(torch.autograd.Function):
    """The identity, with `there` products on the way forward and `back` on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, square: Tensor, there: int, back: int) -> Tensor:
        ctx.square, ctx.back = square, back
        multiply(square, there)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        multiply(ctx.square, ctx.back)
        return gradient, None, None, None


def multiply(square: Tensor, times: int) -> None:
    """`times` products of a square matrix with itself."""
    out = torch.empty_like(square)
    for _ in range(times):
        torch.mm(square, square, out=out)


class TimedLayer(nn.Module):
    """A Linear layer, (batch, 32) -> (batch, 32), with more work to do.

    forward, backward  units of it on either way
    """

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.there, self.back = round(UNIT * forward), round(UNIT * backward)
        self.register_buffer("square", torch.eye(SIDE), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return _Products.apply(self.linear(x), self.square, self.there, self.back)


def timed(forward: Sequence[float], backward: Sequence[float]) -> list[nn.Module]:
    """A TimedLayer for each pair of the two lists, which are in units of work."""
    return [TimedLayer(f, b) for f, b in zip(forward, backward, strict=True)]
