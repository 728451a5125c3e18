"""T1 stage by stage: on paper, and as the optimizers of a real run see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..checks import unknown
from ..trainer.methods import PipeMare
from ..trainer.rates import t1_factor

# name -> (share of the run that is done) -> share of the peak rate
BASES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "constant": lambda done: 1.0,
    "step": lambda done: 1.0 if done < 0.5 else 0.1,
    "warm-up": lambda done: min(10.0 * done, (1.0 - done) / 0.9),
}


def base_rate(base: str, rate: float, step: int, steps: int) -> float:
    """The base rate at `step` (from 0) of `steps`; `rate` is its peak.

    cosine    falls to 0 along a half cosine, as that of digits does
    constant  stays
    step      a tenth from the middle on
    warm-up   rises over the first tenth, then falls to 0, both linearly
    ValueError for another name.
    """
    if base not in BASES:
        raise ValueError(unknown("base schedule", base, BASES))
    return rate * BASES[base](min(step / steps, 1.0))


def factor(tau: float, step: int, annealing: int, power: float = 1.0, guard: bool = True) -> float:
    """T1's factor tau^-p, with p = power (1 - min(step / annealing, 1)).

    power  1 is the paper's; 0 switches T1 off
    guard  count tau as at least 1, as the trainer does; without it, a fractional tau raises the
           rate
    """
    if guard or tau >= 1 or not annealing:
        return t1_factor(tau, step, annealing) ** power
    return float(tau ** -(power * (1.0 - min(step / annealing, 1.0))))


@dataclass(frozen=True)
class Rescheduled(PipeMare):
    """T1 over a base schedule, with `factor`'s freedoms.  It notes every rate with which a stage's
    optimizer steps: `seen[stage from 0][step]`.

    base, peak, steps  of `base_rate`; the optimizer is SGD without momentum
    """

    power: float = 1.0
    guard: bool = True
    base: str = "cosine"
    peak: float = 0.2
    steps: int = 400
    seen: list[list[float]] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        base_rate(self.base, self.peak, 0, self.steps)  # refuses an unknown base now

    def rate(self, tau: float, step: int) -> float:
        return factor(tau, step, self.t1, self.power, self.guard)

    def optimizer(self, build: Any, named_parameters: list[tuple[str, Any]]) -> Any:
        optimizer = torch.optim.SGD(named_parameters, lr=self.peak)
        noted: list[float] = []
        self.seen.append(noted)  # stages ask for their optimizers in order
        optimizer.register_step_pre_hook(lambda o, *_: noted.append(o.param_groups[0]["lr"]))
        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda k: base_rate(self.base, 1.0, k, self.steps)
        )

    def on_paper(self, taus: Sequence[float], at: Sequence[int]) -> list[list[float]]:
        """For a stage of each delay, its rate at each of the steps `at`."""
        base = [base_rate(self.base, self.peak, k, self.steps) for k in at]
        return [[b * self.rate(tau, k) for k, b in zip(at, base, strict=True)] for tau in taus]
