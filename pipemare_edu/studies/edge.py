"""The largest stable rate of a network under delay: predicted from its curvature, found by runs.

A point is where a run begins: a network at its minimum, pushed a little along its steepest
direction, or as it was initialized.  A trial is one run of the real trainer from there, on the
whole batch at a constant rate: asynchronous, newest weights, a stage a layer.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss

from ..plan import theory
from ..plan.per_stage import per_stage, weighted_delay
from ..trainer.methods import PipeMare
from ..trainer.run import Run
from ..trainer.trainer import Trainer
from .curvature import steepest
from .minimum import batch, copied, forward, initial, minimum, parameters

STARTS = ("minimum", "scratch")
PUSH = 1e-5  # length of the push: so small that only the curvature matters
PATIENCE = 75  # steps of a trial, for each step of delay
FAR = 1e3  # a loss so many times the first has left
HALVINGS = {"minimum": 6, "scratch": 4}
STRIDE = {"minimum": 1.25, "scratch": 2.0}  # from one trial to the next, until both ends are known
SPAN = 2.0**12  # a search goes no further than so many times the prediction, either way

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


@dataclass(frozen=True)
class Trial:
    """One run: its rate as a multiple of the prediction, the rate, and whether it stayed.

    From a minimum: it did not leave, and its last third is no further away than the third before.
    From scratch: it did not diverge, and the loss ended below where it began.
    losses  of every step
    """

    multiple: float
    rate: float
    stayed: bool
    losses: tuple[float, ...] = field(repr=False)


@lru_cache(maxsize=32)
def point(network: str, seed: int = 0, start: str = "minimum", delays: Delays = "lockstep") -> Point:
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


def trial(at: Point, multiple: float) -> Generator[Run, None, Trial]:
    """Run once at `multiple` times the predicted rate; yields the run after every chunk."""
    rate = multiple * at.predicted
    layers = at.layers()
    trainer = Trainer(
        layers,
        mse_loss,
        lambda named: torch.optim.SGD(named, lr=rate),
        method(at.delays, len(layers)),
        stages=len(layers),
    )
    for run in trainer.chunks([batch(at.seed)], at.steps):
        yield run
    return Trial(multiple, rate, _stayed(at, run), tuple(run.losses))


def _stayed(at: Point, run: Run) -> bool:
    losses = np.array(run.losses)
    if run.diverged:
        return False
    if at.start == "scratch":
        return bool(losses[-1] < losses[0])
    third = len(losses) // 3
    middle, last = losses[third : 2 * third].max(), losses[2 * third :].max()
    return bool(losses.max() < FAR * losses[0] and last <= middle)


def search(at: Point, trials: list[Trial]) -> Generator[Run, None, None]:
    """Find the edge: from the prediction outwards until one trial stays and another does not, then
    by halving between them.  Appends to `trials`; yields the run after every chunk."""
    trials.append((yield from trial(at, 1.0)))
    while math.isnan(edge(trials)):
        up = all(t.stayed for t in trials)
        outermost = (max if up else min)(t.multiple for t in trials)
        if not 1 / SPAN < outermost < SPAN:
            return
        factor = STRIDE[at.start]
        trials.append((yield from trial(at, outermost * (factor if up else 1 / factor))))
    for _ in range(HALVINGS[at.start]):
        trials.append((yield from trial(at, edge(trials))))


def edge(trials: Sequence[Trial]) -> float:
    """The edge as a multiple of the prediction: midway, on a logarithmic scale, between the
    smallest multiple that did not stay and the largest below it that did; nan without both."""
    left = min((t.multiple for t in trials if not t.stayed), default=math.nan)
    stayed = max((t.multiple for t in trials if t.stayed and t.multiple < left), default=math.nan)
    return math.sqrt(left * stayed)
