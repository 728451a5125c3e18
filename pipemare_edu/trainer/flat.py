"""A stage's trainable weights in flat tensors, which its parameters view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .weights import Newest

Named = list[tuple[str, nn.Parameter]]


class Flat(NamedTuple):
    """All of a stage's trainable weights of one dtype, in one tensor that parameters view."""

    weights: Tensor
    named: Named
    policy: Newest


class Scratch:
    """One working buffer per dtype, as large as the largest stage that needs it."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[torch.dtype, torch.device], int] = {}
        self._buffers: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def reserve(self, weights: Tensor) -> None:
        """Weights like these will need room; said for all of them before the first `room`."""
        kind = (weights.dtype, weights.device)
        self._sizes[kind] = max(self._sizes.get(kind, 0), len(weights))

    def room(self, weights: Tensor) -> Tensor:
        """Where a copy of `weights` can stand while an operation runs."""
        kind = (weights.dtype, weights.device)
        if kind not in self._buffers:
            self._buffers[kind] = weights.new_empty(self._sizes[kind])
        return self._buffers[kind][: len(weights)]


def named_parameters(layers: Sequence[nn.Module], first: int) -> Named:
    """Parameters as <layer>.<name>, each once: layers of one stage may share a tensor."""
    named = [
        (f"{j}.{name}", p)
        for j, layer in enumerate(layers, start=first)
        for name, p in layer.named_parameters()
    ]
    return list({id(p): (name, p) for name, p in reversed(named)}.values())[::-1]


def flatten(named: Named) -> list[tuple[Tensor, Named]]:
    """Move parameters into one flat tensor per dtype and device, and make them views of it.

    An assignment to `.data` between a forward and its backward would be a trap (some layers would
    read the old tensor); here it happens once, before any forward.
    """
    groups: dict[tuple[torch.dtype, torch.device], Named] = {}
    for name, p in named:
        groups.setdefault((p.dtype, p.device), []).append((name, p))
    flats = []
    for group in groups.values():
        flat = torch.cat([p.detach().reshape(-1) for _, p in group])
        parts = flat.split([p.numel() for _, p in group])
        for (_, p), part in zip(group, parts, strict=True):
            p.data = part.view(p.shape)
        flats.append((flat, group))
    return flats
