"""A method = a schedule + the weights its backward reads + its rates.  Small frozen values.

Sequential  one microbatch at a time         GPipe, OneFOneB  synchronous schedules
PipeDream   asynchronous, stashed weights    PipeMare         asynchronous, newest weights
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from torch import Tensor

from ..checks import plain
from ..plan import theory
from ..plan.ops import Op
from ..plan.schedules import as_listed, depths, pipe_reruns, stage_operations
from ..plan.segments import Rerun, segment_length
from .rates import t1_factor
from .weights import Corrected, Newest, Stashed

Depth = str | Sequence[int]


@dataclass(frozen=True)
class Method:
    """What the trainer asks of a method.  Override what differs, then `register` it:

        @dataclass(frozen=True)
        class Half(Method):
            depth: Depth = "lockstep"

            def rate(self, tau, step):
                return 0.5 if tau > 1 else 1.0

        register("half", Half())

    depth      a schedule's name or a list of depths (plan.schedules)
    t3         so many synchronous steps first
    recompute  stages of a recompute segment, "auto" for the square root of their number, 0 for
               none (plan.segments)
    weights    how a stage of delay tau reads its weights (trainer.weights)
    rate       the factor on a stage's learning rate
    optimizer  the hook around the caller's optimizer factory
    """

    depth: Depth = "sequential"
    t3: int = 0
    recompute: int | str = 0
    stashes: ClassVar[bool] = False  # does a backward read the version its forward read?

    def __post_init__(self) -> None:
        for f in fields(self):
            if vars(type(self)).get(f.name, f.default) != f.default:
                raise TypeError(
                    f"{type(self).__name__} sets {f.name} in a way that a dataclass does not see: "
                    f"decorate it with @dataclass(frozen=True) and write  {f.name}: {f.type} = ..."
                )
        if not isinstance(self.depth, str):
            object.__setattr__(self, "depth", as_listed(self.depth))
        for f in fields(self):
            object.__setattr__(self, f.name, plain(getattr(self, f.name)))
        for name in ("t1", "t3"):
            value = getattr(self, name, 0)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} is {value!r}: give a number of steps, 0 for off")
        segment_length(self.recompute, sys.maxsize)
        if self.recompute != 0 and self.synchronous:
            raise ValueError(
                f"recompute={self.recompute!r} with depth={self.depth!r}: a re-run is timed by how "
                "far forwards run ahead, and a synchronous schedule has none ahead"
            )

    def depths(self, stages: int) -> tuple[int, ...]:
        """D_i of every stage; ValueError if the pipe would deadlock."""
        return depths(self.depth, stages)

    def reruns(self, stages: int) -> tuple[Rerun | None, ...]:
        """How every stage re-runs its forwards once the method is asynchronous; None: it does not.

        ValueError for a recompute that cannot work at these depths.
        """
        return pipe_reruns(self.depth, stages, self.recompute)

    def taus(self, stages: int, microbatches: int) -> tuple[float, ...]:
        """tau_i = D_i / N, the constant delay in steps that T1 and T2 use."""
        return tuple(d / microbatches for d in self.depths(stages))

    @property
    def synchronous(self) -> bool:
        """True when every step waits for the last, whatever the stage count."""
        zeros = not isinstance(self.depth, str) and not any(self.depth)
        return zeros or self.depth in ("sequential", "gpipe", "1f1b")

    def asynchronous(self, step: int) -> bool:
        """Is step `step` past the synchronous warm-up, in an asynchronous method?"""
        return step >= self.t3 and not self.synchronous

    def operations(self, stage: int, stages: int, microbatches: int, steps: range) -> Iterator[Op]:
        """One stage's list for the minibatches in `steps`: T3's part as gpipe, then the rest."""
        switch = min(max(self.t3, steps.start), steps.stop)
        for kind, span, recompute in (
            ("gpipe", range(steps.start, switch), 0),
            (self.depth, steps[switch - steps.start :], self.recompute),
        ):
            yield from stage_operations(kind, stage, stages, microbatches, span, recompute)

    def weights(self, newest: Tensor, tau: float) -> Newest:
        """The weights policy of one stage, over its flat tensor `newest`."""
        return Newest(newest)

    def rate(self, tau: float, step: int) -> float:
        """The factor on the learning rate, `step` steps after the switch to asynchronous."""
        return 1.0

    def factor(self, tau: float, step: int) -> float:
        """The factor at step `step` of the run: 1 while the method is still synchronous."""
        return self.rate(tau, step - self.t3) if self.asynchronous(step) else 1.0

    def optimizer(self, build: Callable[..., Any], named_parameters: list[tuple[str, Any]]) -> Any:
        """Build one stage's optimizer; a method may wrap or replace what the caller gave."""
        return build(named_parameters)


@dataclass(frozen=True)
class Sequential(Method):
    """One microbatch at a time through all stages: plain gradient accumulation."""

    depth: Depth = field(default="sequential", init=False)


@dataclass(frozen=True)
class GPipe(Method):
    """All forwards, all backwards, an update: synchronous."""

    depth: Depth = field(default="gpipe", init=False)


@dataclass(frozen=True)
class OneFOneB(Method):
    """1F1B with a flush: GPipe's gradients with at most P microbatches in flight."""

    depth: Depth = field(default="1f1b", init=False)


@dataclass(frozen=True)
class PipeDream(Method):
    """Asynchronous with weight stashing: the backward reads what its forward read."""

    depth: Depth = "lockstep"
    stashes: ClassVar[bool] = True

    def weights(self, newest: Tensor, tau: float) -> Newest:
        return Stashed(newest) if tau else Newest(newest)


@dataclass(frozen=True)
class PipeMare(Method):
    """Asynchronous with the newest backward weights, and the paper's three fixes.

    t1         annealing steps K of the learning-rate rescheduling, counted from the switch to
               asynchronous; 0 = off
    t2         D of the discrepancy correction, 0 < D < 1, or "theory" for gamma* itself; 0 = off
    t3         synchronous warm-up steps; 0 = off
    depth      "lockstep" (the paper's), "async-1f1b", or a list of depths
    recompute  stages of a recompute segment, or "auto"; 0 = all activations are kept
    """

    depth: Depth = "lockstep"
    t1: int = 0
    t2: float | str = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.t2 != "theory" and not (isinstance(self.t2, int | float) and 0 <= self.t2 < 1):
            raise ValueError(f't2 is {self.t2!r}: give a decay between 0 and 1, or "theory"')

    def weights(self, newest: Tensor, tau: float) -> Newest:
        if not self.t2 or not tau:
            return Newest(newest)
        theoretical = self.t2 == "theory"
        gamma = theory.gamma_star(tau) if theoretical else theory.gamma(float(self.t2), tau)
        return Corrected(newest, tau, gamma)

    def rate(self, tau: float, step: int) -> float:
        return t1_factor(tau, step, self.t1)
