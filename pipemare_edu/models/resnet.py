"""Residual convolutional networks as lists of layers.

A skip connection crosses stages by travelling beside the branch, in a tuple:

    x -> Branch -> (h, x) -> Merge -> y
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


def conv_norm(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    """Convolution without bias, then BatchNorm; Kaiming initialization for the ReLU after it."""
    conv = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Branch(nn.Module):
    """x -> (ReLU(body(x)), x): the residual branch starts, the skip travels beside it."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.body(x).relu(), x


class Merge(nn.Module):
    """(h, x) -> ReLU(body(h) + shortcut(x)): branch and skip meet."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        h, x = pair
        return (self.body(h) + self.shortcut(x)).relu()


def basic_resnet(channels: int, widths: Sequence[int], outputs: int) -> list[nn.Module]:
    """A stem, one basic block (two 3x3 convolutions, two layers) per width, and a linear head on
    the global average.  The image is halved at every block but the first.

    (batch, channels, height, width) -> (batch, outputs)
    """
    layers: list[nn.Module] = [nn.Sequential(*conv_norm(channels, widths[0]), nn.ReLU())]
    before = widths[0]
    for j, width in enumerate(widths):
        stride = 2 if j else 1
        plain = width == before and stride == 1
        shortcut = None if plain else conv_norm(before, width, size=1, stride=stride)
        layers += [
            Branch(conv_norm(before, width, stride=stride)),
            Merge(conv_norm(width, width), shortcut),
        ]
        before = width
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs))
    return [*layers, head]
