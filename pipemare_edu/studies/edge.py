"""The largest stable rate of a network under delay, found by runs.

A trial is one run of the real trainer from a point, on the whole batch at a constant rate:
asynchronous, newest weights, a stage a layer.  A search brackets the edge and halves.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn.functional import mse_loss

from ..trainer.run import Run
from ..trainer.trainer import Trainer
from .minimum import batch, descent
from .point import Delays, Point, method, point

FAR = 1e3  # a loss so many times the first has left
HALVINGS = {"minimum": 6, "scratch": 4}
STRIDE = {"minimum": 1.25, "scratch": 2.0}  # from one trial to the next, until both ends are known
SPAN = 2.0**12  # a search goes no further than so many times the prediction, either way


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


@dataclass(frozen=True)
class Found:
    """The trials from one point.  multiple: the edge over Lemma 1's rate; rate: the edge itself;
    both nan until there are trials on both sides of it."""

    at: Point
    trials: tuple[Trial, ...]

    @property
    def multiple(self) -> float:
        return edge(self.trials)

    @property
    def rate(self) -> float:
        return self.multiple * self.at.predicted


def finding(
    network: str, seed: int, start: str, delays: Delays, multiple: float | None = None
) -> Generator[tuple[Found | None, Run | None], None, None]:
    """All of it, in chunks: descend to the minimum, measure, and search for the edge, or try one
    multiple of the prediction.  Yields what is found so far and the run under way."""
    if start == "minimum":
        for _ in descent(network, seed):
            yield None, None
    at = point(network, seed, start, delays)
    trials: list[Trial] = []
    for run in search(at, trials) if multiple is None else _once(at, multiple, trials):
        yield Found(at, tuple(trials)), run
    yield Found(at, tuple(trials)), None


def find(
    network: str,
    seed: int,
    start: str = "minimum",
    delays: Delays = "lockstep",
    multiple: float | None = None,
) -> Found:
    """`finding` to its end."""
    *_, (found, _) = finding(network, seed, start, delays, multiple)
    assert found is not None  # the last step has one
    return found


def _once(at: Point, multiple: float, trials: list[Trial]) -> Generator[Run, None, None]:
    trials.append((yield from trial(at, multiple)))
