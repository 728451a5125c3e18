"""One optimizer step of several stages at once, bit for bit as if each stepped by itself."""

from __future__ import annotations

import copy
import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch.optim import Optimizer

from ..errors import StageError
from .updates import StageOptimizer


def step_together(steps: Mapping[StageOptimizer, int]) -> None:
    """One optimizer step of every given stage, each with the number of its step.

    T1 scales the rates around the step only, so schedulers see the caller's own rates.  Raises
    StageError for what an optimizer or scheduler raises.
    """
    try:
        with _scaled(_factors(steps)):
            _step(steps)
    finally:
        for o in steps:
            for alias in o.aliases:
                alias.grad = None
    for o in steps:
        if o.scheduler is not None:
            setattr(o.optimizer, "_opt_called", True)  # noqa: B010  else the scheduler warns that no step was taken
            with _At(o, steps):
                o.scheduler.step()


def _factors(steps: Mapping[StageOptimizer, int]) -> list[tuple[StageOptimizer, float]]:
    out = []
    for o, step in steps.items():
        with _At(o, steps):
            out.append((o, o.rate(step)))
    return out


def _step(steps: Mapping[StageOptimizer, int]) -> None:
    # In a worker, stages may stand at different steps, and fused SGD cannot join a first step (no
    # momentum yet) with a later one.
    together: dict[tuple[type[Optimizer], int], list[StageOptimizer]] = {}
    for o in steps:
        if o.alone:
            with _At(o, steps):
                o.optimizer.step()
        else:
            together.setdefault((type(o.optimizer), steps[o]), []).append(o)
    for (kind, _), members in together.items():
        with _At(members[0], steps):
            kind.step(_leader([m.optimizer for m in members]))


class _At:
    """Names the stage and step of whatever its optimizer raises (a generator's context would cost
    more than what it surrounds)."""

    def __init__(self, o: StageOptimizer, steps: Mapping[StageOptimizer, int]) -> None:
        self.o, self.steps = o, steps

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise StageError(self.o.stage, "U", self.steps[self.o], error) from error


def _leader(members: Sequence[Optimizer]) -> Optimizer:
    """One optimizer over all members' groups and states: a call saves about 20 us a stage.

    A parameter's state is the same object here and in its own optimizer, and stays so until that
    optimizer's `state` is replaced (load_state_dict).
    """
    first = members[0]
    states = [o.state for o in members]
    known = getattr(first, "_leads", None)
    if known is None or len(known[0]) != len(states) or any(map(operator.is_not, known[0], states)):
        leader = copy.copy(first)
        leader.state = defaultdict(dict)
        for o in members:
            for group in o.param_groups:
                leader.state.update((p, o.state[p]) for p in group["params"])
        known = first._leads = states, leader  # type: ignore[attr-defined]
    leader = known[1]
    leader.param_groups = _joined([group for o in members for group in o.param_groups])
    return leader


def _joined(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring groups with the same settings as one group."""
    out: list[dict[str, Any]] = []
    for group in groups:
        settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        if out and settings == {k: v for k, v in out[-1].items() if k != "params"}:
            out[-1]["params"] += group["params"]
        else:
            out.append(settings | {"params": list(group["params"])})
    return out


@contextmanager
def _scaled(factors: Sequence[tuple[StageOptimizer, float]]) -> Iterator[None]:
    groups = [(g, f) for o, f in factors if f != 1.0 for g in o.optimizer.param_groups]
    rates = [group["lr"] for group, _ in groups]
    for group, factor in groups:
        group["lr"] = group["lr"] * factor
    try:
        yield
    finally:
        for (group, _), rate in zip(groups, rates, strict=True):
            group["lr"] = rate
