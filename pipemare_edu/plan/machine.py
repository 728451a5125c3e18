"""What a forecast starts from: the load of the stages, a machine, and a method in its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..checks import whole
from .schedules import SYNCHRONOUS, depths, pipe_reruns
from .segments import Rerun


@dataclass(frozen=True)
class Load:
    """What one microbatch costs at each stage, one number a stage.

    work         flops of a forward (with Card(flops=1), its seconds)
    weights      bytes of trainable weights
    activations  bytes that a forward leaves for its backward
    outputs      bytes of the message to the next stage; a backward's answer is as large
    """

    work: tuple[float, ...]
    weights: tuple[int, ...]
    activations: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("work", "weights", "activations", "outputs"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if len(values) != len(self.work) or not values:
                raise ValueError(f"{len(values)} {name} for {len(self.work)} stages: one a stage")
            if any(not 0 <= v < math.inf for v in values):
                raise ValueError(f"{name} holds a number that is not finite and at least 0")


def uniform(
    stages: int, work: float = 1.0, weights: int = 0, activations: int = 0, outputs: int = 0
) -> Load:
    """A load of equal stages."""
    n = whole("stages", stages, 1)
    return Load((work,) * n, (weights,) * n, (activations,) * n, (outputs,) * n)


@dataclass(frozen=True)
class Card:
    """One device: the flops that it sustains per second, and its bytes of memory."""

    flops: float = 1.0
    memory: float = math.inf


@dataclass(frozen=True)
class Link:
    """Between two devices: seconds that any message takes, and bytes per second."""

    latency: float = 0.0
    bandwidth: float = math.inf


@dataclass(frozen=True)
class Machine:
    """Devices of one kind on links of one kind.

    devices  how many; None for one a stage
    layout   "consecutive": each hosts a run of neighbouring stages; "interleaved": stage i is on
             device i modulo their number; or the device of every stage
    """

    card: Card = Card()
    link: Link = Link()
    devices: int | None = None
    layout: str | tuple[int, ...] = "consecutive"

    def homes(self, stages: int) -> tuple[int, ...]:
        """The device of each stage; ValueError for a layout that leaves one without stages."""
        count = stages if self.devices is None else whole("devices", self.devices, 1, stages)
        if self.layout == "consecutive":
            return tuple(i * count // stages for i in range(stages))
        if self.layout == "interleaved":
            return tuple(i % count for i in range(stages))
        homes = tuple(self.layout) if not isinstance(self.layout, str) else ()
        if len(homes) != stages or set(homes) != set(range(max(homes) + 1)):
            raise ValueError(
                f'layout is {self.layout!r}: give "consecutive", "interleaved", or the device of '
                f"each of the {stages} stages, counted from 0 without a gap"
            )
        return homes


@dataclass(frozen=True)
class Strategy:
    """A method as the clock and the ledger see it (its fields as in the trainer's methods).

    stashes   a backward reads the version its forward read      (PipeDream)
    corrects  one more copy of the weights for T2's correction   (PipeMare)
    backward  seconds of a backward per second of a forward
    update    seconds of an optimizer step per byte of weights
    optimizer_copies  0 for plain SGD, 1 with momentum, 2 for Adam
    """

    depth: str | tuple[int, ...] = "lockstep"
    microbatches: int = 1
    recompute: int | str = 0
    stashes: bool = False
    corrects: bool = False
    backward: float = 2.0
    update: float = 0.0
    optimizer_copies: int = 1

    @property
    def flushes(self) -> bool:
        return self.depth in SYNCHRONOUS

    def depths(self, stages: int) -> tuple[int, ...]:
        """How many forwards a stage runs ahead, in a flushing schedule within its minibatch."""
        if self.depth == "gpipe":
            return (self.microbatches - 1,) * stages
        if self.depth == "1f1b":
            return tuple(min(i, self.microbatches - 1) for i in reversed(range(stages)))
        return depths(self.depth, stages)

    def reruns(self, stages: int) -> tuple[Rerun | None, ...]:
        return pipe_reruns(self.depth, stages, self.recompute)
