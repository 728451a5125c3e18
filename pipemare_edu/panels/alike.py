"""One configuration on two engines: what is the same, to the last bit."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ..trainer.run import Run
from ..training import prepare
from .engines import engines


@dataclass(frozen=True)
class Configuration:
    """A training of the digits task, without the engine."""

    method: str = "pipemare-t1t2"
    stages: int = 4
    microbatches: int = 2
    steps: int = 60
    seed: int = 0

    @property
    def label(self) -> str:
        return f"{self.method}, P={self.stages}, N={self.microbatches}, {self.steps} steps"


@dataclass(frozen=True)
class Ran:
    """A run so far on one engine; `tensors` are the weights and buffers of its layers by now."""

    engine: str
    run: Run
    tensors: tuple[Tensor, ...]

    @property
    def ended(self) -> bool:
        return self.run.status in ("done", "diverged")


def running(asked: Configuration, engine: str) -> Generator[Ran, None, None]:
    """Train on one of `engines()`, in chunks, keeping every event.  Raises ValueError for what
    cannot run there."""
    job = prepare("digits", **vars(asked), eval_every=asked.steps, **engines()[engine])
    layers = job.trainer.layers
    for run in job.chunks(full_trace=True):
        held = [t.detach() for x in layers for t in (*x.parameters(), *x.buffers())]
        yield Ran(engine, run, tuple(held))


@dataclass(frozen=True)
class Alike:
    """Two runs of one configuration that have ended, compared."""

    one: Ran
    other: Ran

    @property
    def reordered(self) -> int:
        """Stages that ran other operations, or the same in another order."""
        one, other = (r.run.trace for r in (self.one, self.other))
        return sum(one.operations(i) != other.operations(i) for i in range(one.stages))

    @property
    def losses(self) -> int:
        """Steps whose losses differ in any bit; those of a run that is longer are among them."""
        one, other = (np.array(r.run.losses).view(np.int64) for r in (self.one, self.other))
        both = min(len(one), len(other))
        return int((one[:both] != other[:both]).sum()) + abs(len(one) - len(other))

    @property
    def tensors(self) -> int:
        """Weights and buffers that differ in any bit."""
        pairs = zip(self.one.tensors, self.other.tensors, strict=True)
        return sum(_bits(a) != _bits(b) for a, b in pairs)

    @property
    def gap(self) -> float:
        """The largest difference of losses, relative to the first run's: what is left to compare
        where another device adds up in another order."""
        pairs = zip(self.one.run.losses, self.other.run.losses, strict=False)
        return max((abs(a - b) / abs(a) for a, b in pairs), default=0.0)

    @property
    def equal(self) -> bool:
        """Not a bit differs."""
        return not (self.reordered or self.losses or self.tensors)


def tell(found: Alike) -> str:
    """What is equal and what is not, in two sentences."""
    run, names = found.one.run, f"{found.one.engine} and {found.other.engine}"
    if found.reordered:
        return f"{names}: {found.reordered} stages ran other operations."
    said = f"{names}: the same {run.trace.count} operations, in the same order at every stage."
    if found.equal:
        return (
            f"{said} All {len(run.losses)} losses and all {len(found.one.tensors)} weights and "
            "buffers are equal to the last bit."
        )
    return f"{said} Losses differ by measured {found.gap:.1e} of themselves at the most."


def _bits(tensor: Tensor) -> bytes:
    return tensor.cpu().contiguous().numpy().tobytes()
