"""Multilayer perceptrons as lists of layers."""

from __future__ import annotations

from torch import Tensor, nn


def mlp(inputs: int, width: int, outputs: int, depth: int) -> list[nn.Module]:
    """`depth` layers: Linear, BatchNorm, ReLU, and a Linear at the end.

    (batch, inputs) -> (batch, outputs)
    """
    widths = [inputs, *[width] * (depth - 1)]
    hidden = [
        nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU())
        for a, b in zip(widths[:-1], widths[1:], strict=True)
    ]
    return [*hidden, nn.Linear(width, outputs)]


class ResidualLayer(nn.Module):
    """x + Linear(ReLU(LayerNorm(x))): (batch, width) -> (batch, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(self.norm(x).relu())


def residual_mlp(inputs: int, width: int, outputs: int, depth: int) -> list[nn.Module]:
    """`depth` layers: Linear, residual layers, and LayerNorm with Linear at the end."""
    hidden = [ResidualLayer(width) for _ in range(depth - 2)]
    head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))
    return [nn.Linear(inputs, width), *hidden, head]
