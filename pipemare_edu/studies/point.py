"""Where runs under delay begin: a network at its minimum, or as it was initialized.

At a minimum the weights are pushed a little along the steepest direction, so that a run shows
whether the push dies out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..plan import theory
from ..plan.per_stage import per_stage, weighted_delay
from ..trainer.methods import PipeMare
from .curvature import steepest
from .minimum import batch, copied, forward, initial, minimum, parameters

STARTS = ("minimum", "scratch")
PUSH = 1e-5  # length of the push: so small that only the curvature matters
PATIENCE = 75  # steps of a run, for each step of delay

Delays = str | int  # "lockstep", or one delay for every stage


@dataclass(frozen=True, eq=False)
class Point:
    """Where trials begin, and what is known there.

    curvature  the largest eigenvalue of the Hessian
    shares     per stage, the squared length of its part of the eigenvector (sum 1)
    taus       per stage, the delay in steps
    """

    network: str
    seed: int
    start: str
    delays: Delays
    curvature: float
    shares: tuple[float, ...]
    taus: tuple[int, ...]
    vector: torch.Tensor = field(repr=False)

    @property
    def tau(self) -> float:
        """The stages' delays, weighted by the eigenvector's shares."""
        return weighted_delay(self.shares, self.taus)

    @property
    def predicted(self) -> float:
        """Lemma 1's largest stable rate at that one delay."""
        return theory.lemma1(self.tau, self.curvature)

    @property
    def by_stage(self) -> float:
        """The same with each stage's own delay (plan.per_stage)."""
        return theory.threshold(per_stage(self.shares, self.taus, self.curvature))

    @property
    def steps(self) -> int:
        """Of a trial."""
        return PATIENCE * (max(self.taus) + 1)

    def layers(self) -> list[nn.Module]:
        """Layers of their own at this point, pushed if it is a minimum."""
        if self.start == "scratch":
            return initial(self.network, self.seed)
        layers = copied(minimum(self.network, self.seed))
        with torch.no_grad():
            weights = parameters(layers)
            parts = self.vector.split([p.numel() for p in weights])
            for p, part in zip(weights, parts, strict=True):
                p.add_(part.view_as(p), alpha=PUSH)
        return layers


@lru_cache(maxsize=32)
def point(
    network: str, seed: int = 0, start: str = "minimum", delays: Delays = "lockstep"
) -> Point:
    """Train, measure the curvature, and weigh the delays; ValueError for what is not known."""
    if start not in STARTS:
        raise ValueError(f"start is {start!r}: give one of {', '.join(STARTS)}")
    layers = initial(network, seed)
    taus = method(delays, len(layers)).depths(len(layers))
    if start == "minimum":
        layers = copied(minimum(network, seed))
    data = batch(seed)
    top = steepest(lambda: mse_loss(forward(layers, data[0]), data[1]), parameters(layers))
    parts = top.vector.split([sum(p.numel() for p in layer.parameters()) for layer in layers])
    shares = tuple(float(part.square().sum()) for part in parts)
    return Point(network, seed, start, delays, top.curvature, shares, taus, top.vector)


def method(delays: Delays, stages: int) -> PipeMare:
    """PipeMare without fixes at these delays."""
    return PipeMare(delays if isinstance(delays, str) else [delays] * stages)
