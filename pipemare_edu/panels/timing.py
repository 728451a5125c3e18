"""A step of a synchronous pipeline: on the clock, and measured with layers that take as long as
they are told to."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.nn.functional import mse_loss

from ..checks import positive, unknown, whole
from ..lessons.excerpt import excerpt, idle_share
from ..models.timed import WIDTH, timed
from ..plan.clock import Event, Timeline, simulate
from ..plan.schedules import schedule
from ..trainer.methods import GPipe, Method, OneFOneB, Sequential
from ..trainer.run import Run
from ..trainer.trainer import Trainer

SCHEDULES: dict[str, Method] = {"naive": Sequential(), "gpipe": GPipe(), "1f1b": OneFOneB()}
SAMPLES = 4  # in a microbatch


NAMES = {"naive": "naive", "gpipe": "GPipe", "1f1b": "1F1B"}


@dataclass(frozen=True)
class Settings:
    """What one step is: a schedule, P, N, a backward's time in forwards, and one stage (from 1;
    0 for none) that takes `slower` times as long.  ValueError for what cannot be."""

    schedule: str = "gpipe"
    stages: int = 4
    microbatches: int = 8
    ratio: float = 1.0
    slow: int = 0
    slower: float = 2.0

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(unknown("schedule", self.schedule, SCHEDULES))
        whole("stages", self.stages, 1)
        whole("microbatches", self.microbatches, 1)
        whole("slow", self.slow, 0, self.stages)
        positive("ratio", self.ratio)
        positive("slower", self.slower)

    @property
    def timeline(self) -> Timeline:
        """One step on the clock; a forward takes one unit."""
        return _timeline(self)

    @property
    def forward(self) -> list[float]:
        """The time of a forward at every stage."""
        return [self.slower if i == self.slow else 1.0 for i in range(1, self.stages + 1)]

    @property
    def naive(self) -> bool:
        return self.schedule == "naive"

    @property
    def equal(self) -> bool:
        """Are all stages equally fast?"""
        return not self.slow or self.slower == 1

    @property
    def label(self) -> str:
        """A name for the settings; what is not as usual is said."""
        name = f"{NAMES[self.schedule]}, P={self.stages}, N={self.microbatches}"
        name += f", B/F {self.ratio:g}" * (self.ratio != 1)
        return name + f", stage {self.slow} slower {self.slower:g}x" * (not self.equal)


@lru_cache(maxsize=8)
def _timeline(step: Settings) -> Timeline:
    lists = schedule(SCHEDULES[step.schedule].depth, step.stages, step.microbatches)
    return simulate(lists, step.forward, [step.ratio * t for t in step.forward])


@dataclass(frozen=True)
class Measured:
    """A run of timed layers: one typical step of it, placed by the clock, and its idle fraction."""

    settings: Settings
    run: Run
    events: tuple[Event, ...]

    @classmethod
    def of(cls, settings: Settings, run: Run) -> Measured | None:
        """What a run has shown so far, or None before its first whole step."""
        try:
            return cls(settings, run, tuple(excerpt(run)))
        except ValueError:
            return None

    @property
    def idle(self) -> float:
        return idle_share(self.events)

    @property
    def ratio(self) -> float:
        """The time of all backwards over that of all forwards."""
        spent = {k: sum(e.end - e.start for e in self.events if e.kind == k) for k in "FB"}
        return spent["B"] / spent["F"]


def measuring(step: Settings, steps: int) -> Generator[Run, None, None]:
    """Train a timed layer on each stage for `steps` steps, in chunks; each yield is the run so
    far.  A unit of the clock becomes a unit of work."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = timed(step.forward, [step.ratio * f for f in step.forward])
        x = torch.randn(SAMPLES * step.microbatches, WIDTH)
    trainer = Trainer(
        layers,
        mse_loss,
        lambda pairs: torch.optim.SGD(pairs, lr=0.01),
        SCHEDULES[step.schedule],
        stages=step.stages,
        microbatches=step.microbatches,
    )
    return trainer.chunks([(x, x)], steps)
