"""Six layers in two stages: on the clock, and measured in one process and in two workers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import median

import torch
from torch.nn.functional import mse_loss

from ..checks import positive, unknown, whole
from ..models.away import away
from ..models.timed import WIDTH, timed
from ..plan.clock import Timeline, simulate
from ..plan.schedules import schedule
from ..trainer.methods import GPipe, Method, OneFOneB, PipeMare
from ..trainer.run import Run
from ..trainer.trainer import Trainer
from ..trainer.waiting import Waiting, waiting

SCHEDULES: dict[str, Method] = {
    "gpipe": GPipe(),
    "1f1b": OneFOneB(),
    "async-1f1b": PipeMare(depth="async-1f1b"),
    "lockstep": PipeMare(),
}
NAMES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "async-1f1b": "asynchronous 1F1B",
    "lockstep": "lockstep",
}
KINDS = {"sleep": away, "compute": timed}
LAYERS, RATIO = 6, 2.0  # a backward takes twice as long as a forward
MOST_MICROBATCHES = 12
STEPS, MICROBATCHES = 8, 12  # on the clock, at least: enough for its middle


@dataclass(frozen=True)
class Pair:
    """Six layers, the first five of which take a unit of work; ValueError for what cannot be.

    schedule      a key of SCHEDULES
    microbatches  N
    first         layers in the first stage
    last          units of the sixth layer
    message       KiB that travel with a microbatch from stage to stage
    layers        "sleep": their work is done elsewhere; "compute": on this machine's processor
    """

    schedule: str = "gpipe"
    microbatches: int = 4
    first: int = 3
    last: float = 1.0
    message: int = 1
    layers: str = "sleep"

    def __post_init__(self) -> None:
        for name, known in (("schedule", SCHEDULES), ("layers", KINDS)):
            if getattr(self, name) not in known:
                raise ValueError(unknown(name, getattr(self, name), known))
        whole("microbatches", self.microbatches, 1, MOST_MICROBATCHES)
        whole("first", self.first, 1, LAYERS - 1)
        whole("message", self.message, 1, 4096)
        positive("last", self.last)

    @property
    def costs(self) -> list[float]:
        """Units of a forward of every layer."""
        return [1.0] * (LAYERS - 1) + [self.last]

    @property
    def forward(self) -> list[float]:
        """Units of a forward of either stage."""
        return [sum(self.costs[: self.first]), sum(self.costs[self.first :])]

    @property
    def timeline(self) -> Timeline:
        """Some steps on the clock, a device for either stage."""
        return _timeline(self.schedule, self.microbatches, *self.forward)

    @property
    def speedup(self) -> float:
        """Seconds of a step in one process over those in two workers, by the clock."""
        alone = self.microbatches * (1 + RATIO) * sum(self.forward)
        return alone / (self.timeline.interval or alone)

    @property
    def speedups(self) -> list[float]:
        """The same with 1, 2, ... microbatches."""
        return [replace(self, microbatches=n).speedup for n in range(1, MOST_MICROBATCHES + 1)]

    @property
    def limit(self) -> float:
        """What no schedule gets past: all work over that of the costlier stage."""
        return sum(self.forward) / max(self.forward)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """Per stage, in units of the clock, on which messages take no time."""
        return waiting([[e for row in self.timeline.events for e in row]], (0, 1))

    @property
    def label(self) -> str:
        """A name for the settings; what is not as usual is said."""
        name = f"{NAMES[self.schedule]}, N={self.microbatches}, {self.first}+{LAYERS - self.first}"
        name += f" layers, the last {self.last:g}x" * (self.last != 1)
        return name + f", {self.message} KiB" * (self.message != 1)


@lru_cache(maxsize=256)
def _timeline(kind: str, microbatches: int, one: float, two: float) -> Timeline:
    lists = schedule(kind, 2, microbatches, max(STEPS, MICROBATCHES // microbatches))
    return simulate(lists, [one, two], [RATIO * one, RATIO * two])


@dataclass(frozen=True)
class Both:
    """The run so far of a pair in one process, and then in two workers."""

    pair: Pair
    alone: Run
    workers: Run | None = None

    @property
    def done(self) -> bool:
        return self.workers is not None and self.workers.status == "done"

    @property
    def speedup(self) -> float:
        """Measured: seconds of a step in one process over those in two workers."""
        assert self.workers is not None
        return step_seconds(self.alone) / step_seconds(self.workers)


def step_seconds(run: Run) -> float:
    """The median time from one update of the first stage to the next, in the middle of a run."""
    ends = [e.end for e in run.trace.events if e.stage == 0 and e.kind == "U"]
    return median(after - before for before, after in pairwise(ends))


def measuring(pair: Pair, steps: int) -> Generator[Both, None, None]:
    """Train the layers for `steps` steps in this process, then in two workers, in chunks; each
    yield is both runs so far."""
    whole("steps", steps, 4)
    alone = Both(pair, Run({}))
    for run in trainer(pair, 0).chunks([batch(pair)], steps, full_trace=True):
        alone = Both(pair, run)
        yield alone
    if alone.alone.status == "done":
        for run in trainer(pair, 2).chunks([batch(pair)], steps, full_trace=True):
            yield replace(alone, workers=run)


def trainer(pair: Pair, workers: int) -> Trainer:
    """A trainer of the six layers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = KINDS[pair.layers](pair.costs, [RATIO * cost for cost in pair.costs])
    return Trainer(
        layers,
        mse_loss,
        lambda pairs: torch.optim.SGD(pairs, lr=1e-3),
        SCHEDULES[pair.schedule],
        stages=[pair.first, LAYERS - pair.first],
        microbatches=pair.microbatches,
        workers=workers,
        device="cpu",
    )


def batch(pair: Pair) -> tuple[torch.Tensor, torch.Tensor]:
    """A minibatch whose microbatches weigh what was asked for (32 float32 a row)."""
    rows = pair.message * 1024 // (4 * WIDTH)
    x = torch.zeros(rows * pair.microbatches, WIDTH)
    return x, x
