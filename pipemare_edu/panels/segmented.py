"""A lockstep pipe with recompute: what its lists hold for every segment length, and a real run."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache

import torch

from ..checks import whole
from ..plan.clock import Timeline, simulate
from ..plan.held import Held, held
from ..plan.ops import Operations
from ..plan.schedules import asynchronous, depths, pipe_reruns, schedule
from ..plan.segments import Rerun
from ..trainer.methods import PipeMare
from .counted import Counted, counting, trainer

KIND = "lockstep"


@dataclass(frozen=True)
class Pipe:
    """P stages in segments of S.  ValueError for what cannot be."""

    stages: int = 9
    segment: int = 3

    def __post_init__(self) -> None:
        whole("stages", self.stages, 2)
        whole("segment", self.segment, 1, self.stages)

    @property
    def depths(self) -> tuple[int, ...]:
        return depths(KIND, self.stages)

    @property
    def reruns(self) -> tuple[Rerun | None, ...]:
        return pipe_reruns(KIND, self.stages, self.segment)

    @property
    def held(self) -> tuple[Held, ...]:
        """What every stage holds at its peak, counted in its list of operations."""
        return tuple(
            _held(depth, rerun.lead if rerun else None, bool(rerun and not rerun.first))
            for depth, rerun in zip(self.depths, self.reruns, strict=True)
        )

    @property
    def slots(self) -> int:
        """Stage activations: the peaks of all stages, summed."""
        return sum(h.slots for h in self.held)

    @property
    def every(self) -> list[int]:
        """`slots` with segments of 1, 2, ... P."""
        return [Pipe(self.stages, s).slots for s in range(1, self.stages + 1)]

    @property
    def work(self) -> float:
        """The work with re-runs over that without, a backward being two forwards."""
        return 1 + sum(rerun is not None for rerun in self.reruns) / (3 * self.stages)

    @property
    def full(self) -> int:
        """Steps of one microbatch until the first stage holds its most."""
        return self.depths[0] + 1

    def timeline(self, slots: int) -> tuple[Timeline, tuple[float, float]]:
        """The clock, and from when to when it runs the first stage's last `slots` forwards.

        Before, the pipe is filled, and the last stages work off what came to them meanwhile.
        """
        lists = schedule(KIND, self.stages, 1, 3 * self.full + slots, recompute=self.segment)
        timeline = simulate(lists, forward=1, backward=2)
        starts = [e.start for e in timeline.events[0] if e.kind == "F"]
        return timeline, (starts[-slots - 1], starts[-1])

    def counting(self, steps: int) -> Generator[Counted, None, None]:
        """Train the digits network with a layer a stage, in chunks; each yield is the run so
        far."""
        method = PipeMare(recompute=self.segment)
        return counting(trainer(self.stages, _sgd, method, self.stages), steps)


@lru_cache(maxsize=8192)
def _held(depth: int, lead: int | None, inside: bool) -> Held:
    """The peaks of a stage at this depth; more microbatches than make it full change nothing."""
    return held(Operations(asynchronous(depth, 1, range(depth + 2), lead), inside=inside))


def _sgd(named: list[tuple[str, torch.nn.Parameter]]) -> torch.optim.Optimizer:
    return torch.optim.SGD(named, lr=1e-3)
