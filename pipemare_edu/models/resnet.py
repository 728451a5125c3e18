"""Residual convolutional networks as lists of layers.

A skip connection crosses stages by travelling beside the branch, in a tuple:

    x -> Branch -> (h, x) -> Merge -> y

`basic_resnet` has a convolution with its BatchNorm in one layer.  `resnet` and `bottleneck_resnet`
have the paper's finest grain, one weight-bearing module a layer:

    x        Branch(1x1)                (h, x)
    (h, x)   BatchNorm, ReLU            (h, x)
    (h, x)   3x3                        (h, x)
    (h, x)   BatchNorm, ReLU            (h, x)
    (h, x)   1x1                        (h, x)
    (h, x)   Merge(BatchNorm)           ReLU(h + x)

and where a block changes the shape, so that the skip needs a projection:

    (h, x)   BatchNorm                  (h, x)
    (h, x)   1x1 on the skip            (h, s)
    (h, s)   Merge(BatchNorm on s)      ReLU(h + s)
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ..checks import whole

BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # blocks of each width

Pair = tuple[Tensor, Tensor]


def conv(inputs: int, outputs: int, size: int = 1, stride: int = 1) -> nn.Conv2d:
    """Convolution without bias; Kaiming initialization for the ReLU after it.

    (batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)
    """
    layer = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def conv_norm(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    """Convolution without bias, then BatchNorm; Kaiming initialization for the ReLU after it."""
    return nn.Sequential(conv(inputs, outputs, size, stride), nn.BatchNorm2d(outputs))


class Branch(nn.Module):
    """x -> (ReLU(body(x)), x): the residual branch starts, the skip travels beside it.

    relu  False leaves the ReLU to a later layer
    """

    def __init__(self, body: nn.Module, relu: bool = True) -> None:
        super().__init__()
        self.body, self.relu = body, relu

    def forward(self, x: Tensor) -> Pair:
        h = self.body(x)
        return h.relu() if self.relu else h, x


class OnBranch(nn.Sequential):
    """(h, x) -> (body(h), x): the branch goes on, the skip waits."""

    def forward(self, pair: Pair) -> Pair:
        h, x = pair
        return super().forward(h), x


class OnSkip(nn.Sequential):
    """(h, x) -> (h, body(x)): the skip changes its shape, the branch waits."""

    def forward(self, pair: Pair) -> Pair:
        h, x = pair
        return h, super().forward(x)


class Merge(nn.Module):
    """(h, x) -> ReLU(body(h) + shortcut(x)): branch and skip meet."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, pair: Pair) -> Tensor:
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
    return [*layers, head(before, outputs)]


def head(inputs: int, outputs: int) -> nn.Sequential:
    """Linear on the global average: (batch, inputs, height, width) -> (batch, outputs)."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, outputs))


def stem(kind: str, channels: int, width: int) -> list[nn.Module]:
    """The two layers before the first block.

    "cifar"     3x3 convolution: (batch, channels, h, w) -> (batch, width, h, w)
    "halving"   3x3 of stride 2: ... -> (batch, width, h / 2, w / 2)
    "imagenet"  7x7 of stride 2, max pooling: ... -> (batch, width, h / 4, w / 4)
    """
    norm = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU())
    if kind in ("cifar", "halving"):
        return [conv(channels, width, 3, stride=1 if kind == "cifar" else 2), norm]
    if kind == "imagenet":
        norm.append(nn.MaxPool2d(3, stride=2, padding=1))
        return [conv(channels, width, 7, stride=2), norm]
    raise ValueError(f'stem is {kind!r}: give "cifar", "halving" or "imagenet"')


def bottleneck(inputs: int, width: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """1x1, 3x3 and 1x1 convolutions around a skip, in 6 layers, or in 8 with a projection.

    (batch, inputs, h, w) -> (batch, outputs, h / stride, w / stride)
    """
    layers: list[nn.Module] = [
        Branch(conv(inputs, width), relu=False),
        OnBranch(nn.BatchNorm2d(width), nn.ReLU()),
        OnBranch(conv(width, width, 3, stride)),
        OnBranch(nn.BatchNorm2d(width), nn.ReLU()),
        OnBranch(conv(width, outputs)),
    ]
    if inputs == outputs and stride == 1:
        return [*layers, Merge(nn.BatchNorm2d(outputs))]
    return [
        *layers,
        OnBranch(nn.BatchNorm2d(outputs)),
        OnSkip(conv(inputs, outputs, stride=stride)),
        Merge(nn.Identity(), nn.BatchNorm2d(outputs)),
    ]


def bottleneck_resnet(
    channels: int,
    blocks: Sequence[int],
    widths: Sequence[int],
    outputs: int,
    kind: str = "cifar",
    expansion: int = 4,
) -> list[nn.Module]:
    """A stem of `kind`, groups of bottleneck blocks, and a linear head on the global average.

    Group j has blocks[j] blocks of widths[j] channels inside and `expansion` times as many outside;
    the image is halved at the first block of every group but the first.

    (batch, channels, height, width) -> (batch, outputs)
    """
    layers, before = stem(kind, channels, widths[0]), widths[0]
    for j, (count, width) in enumerate(zip(blocks, widths, strict=True)):
        for i in range(count):
            stride = 2 if j and not i else 1
            layers += bottleneck(before, width, expansion * width, stride)
            before = expansion * width
    return [*layers, head(before, outputs)]


def resnet(
    depth: int = 50, outputs: int = 10, kind: str = "cifar", channels: int = 3, width: int = 64
) -> list[nn.Module]:
    """ResNet of `depth` 50, 101 or 152 (He et al. 2015, with the stride in the 3x3 convolution).

    depth 50: 107 layers, 53 convolutions, 53 BatchNorms and a Linear; 23,520,842 parameters with
    the CIFAR stem and 10 outputs, 25,557,032 with the ImageNet stem and 1000.

    (batch, channels, height, width) -> (batch, outputs)
    """
    if depth not in BLOCKS:
        raise ValueError(f"depth is {depth!r}: give one of {', '.join(map(str, BLOCKS))}")
    whole("width", width, 1)
    return bottleneck_resnet(
        channels, BLOCKS[depth], [width * 2**j for j in range(4)], outputs, kind
    )
