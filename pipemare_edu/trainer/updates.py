"""Optimizer steps: the caller's own torch.optim optimizers, one per stage, stepped together.

Optimizers work on aliases of the parameters: a step on the parameters themselves would make every
backward still to come fail with "modified by an inplace operation".  An alias shares the memory
and has its own version counter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

# These keep state per parameter only, so stages can share a call without changing a bit.
_PER_PARAMETER = {
    getattr(torch.optim, name)
    for name in "SGD Adam AdamW NAdam RAdam Adamax Adadelta Adagrad RMSprop Rprop ASGD".split()
}
_FUSED_DTYPES = (torch.float32, torch.float64)


class StageOptimizer:
    """One stage's optimizer and scheduler.

    stage   from 0
    named   its (name, parameter) pairs
    build   called once with (name, alias) pairs; returns an optimizer or (optimizer, scheduler)
    rate    step -> T1's factor on every learning rate of the stage

    Raises ValueError for what does not fit: something that is no optimizer, an optimizer over
    other tensors than it was given, one that needs a closure, a scheduler that needs a metric.
    """

    def __init__(
        self,
        stage: int,
        named: Sequence[tuple[str, nn.Parameter]],
        build: Callable[[list[tuple[str, nn.Parameter]]], Any],
        rate: Callable[[int], float],
    ) -> None:
        self.stage, self.rate = stage, rate
        self.names = [name for name, _ in named]
        self.parameters = [p for _, p in named]
        self.aliases = [nn.Parameter(p.data) for p in self.parameters]
        built = self._built(build)
        pair = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
        self.optimizer: Optimizer = pair[0]
        self.scheduler: LRScheduler | None = pair[1]
        self._check()
        for group in self.optimizer.param_groups:
            _choose_fused(group)
        self.alone = (
            type(self.optimizer) not in _PER_PARAMETER
            or bool(self.optimizer._optimizer_step_pre_hooks)
            or bool(self.optimizer._optimizer_step_post_hooks)
        )

    def _built(self, build: Callable[[list[tuple[str, nn.Parameter]]], Any]) -> Any:
        try:
            return build(list(zip(self.names, self.aliases, strict=True)))
        except Exception as error:
            raise ValueError(
                f"optimizer raised {type(error).__name__} for stage {self.stage + 1}: {error}; it "
                "is called once per stage, with a list of the stage's (name, parameter) pairs"
            ) from error

    def left_out(self) -> list[str]:
        """The names of the parameters that the optimizer does not have."""
        theirs = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        pairs = zip(self.names, self.aliases, strict=True)
        return [name for name, alias in pairs if id(alias) not in theirs]

    def _check(self) -> None:
        opt, scheduler = self.optimizer, self.scheduler
        if not isinstance(opt, Optimizer):
            raise ValueError(
                f"optimizer(named_parameters) returned {type(opt).__name__}: return a "
                "torch.optim optimizer, or (optimizer, lr_scheduler)"
            )
        mine = set(map(id, self.aliases))
        if any(id(p) not in mine for group in opt.param_groups for p in group["params"]):
            raise ValueError(
                "the optimizer was built over other tensors than the ones it was given: "
                "use the argument, as in  lambda named: torch.optim.SGD(named, lr=0.1)"
            )
        if isinstance(opt, torch.optim.LBFGS):
            raise ValueError("LBFGS needs a closure that runs the whole model; a stage has none")
        if scheduler is not None and not isinstance(scheduler, LRScheduler):
            raise ValueError(f"{type(scheduler).__name__} is not a torch lr scheduler")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError("ReduceLROnPlateau needs a metric; use a scheduler of the step alone")
        if scheduler is not None and getattr(scheduler, "optimizer", opt) is not opt:
            raise ValueError("the lr_scheduler belongs to another optimizer than the one returned")

    def take_gradients(self) -> None:
        """Hand the accumulated gradients from the parameters to their aliases."""
        for p, alias in zip(self.parameters, self.aliases, strict=True):
            alias.grad = p.grad
            p.grad = None

    def state_bytes(self) -> int:
        """Bytes of the optimizer's state tensors (momenta and the like; not step counters)."""
        states = [self.optimizer.state.get(a, {}) for a in self.aliases]
        return sum(v.nbytes for s in states for v in s.values() if isinstance(v, Tensor) and v.ndim)

    def state(self) -> dict[str, dict[str, Any]]:
        """The optimizer's state per parameter name."""
        pairs = zip(self.names, self.aliases, strict=True)
        return {name: dict(self.optimizer.state.get(a, {})) for name, a in pairs}

    def settings(self) -> dict[str, Any]:
        """The parameter groups' numbers and the scheduler's state."""
        groups = [
            {k: v for k, v in group.items() if k not in ("params", "param_names")}
            for group in self.optimizer.param_groups
        ]
        return {
            "kinds": self._kinds(),
            "groups": groups,
            "scheduler": _encoded(self.scheduler.state_dict()) if self.scheduler else None,
        }

    def _kinds(self) -> list[str]:
        parts = [self.optimizer, *([self.scheduler] if self.scheduler else [])]
        return [type(part).__name__ for part in parts]

    def check_fits(self, settings: dict[str, Any]) -> None:
        """ValueError if `settings` are of another kind of optimizer, scheduler or grouping."""
        theirs, mine = settings["kinds"], self._kinds()
        if theirs != mine:
            raise ValueError(
                f"its optimizer is {' with '.join(theirs)}, this trainer's {' with '.join(mine)}"
            )
        groups = len(self.optimizer.param_groups)
        if len(settings["groups"]) != groups:
            raise ValueError(
                f"its optimizer has {len(settings['groups'])} parameter groups a stage, this "
                f"trainer's {groups}"
            )

    def restore(self, states: dict[str, dict[str, Any]], settings: dict[str, Any]) -> None:
        """Take back `state` and `settings`."""
        pairs = zip(self.names, self.aliases, strict=True)
        state: dict[Tensor, Any] = {a: dict(states[name]) for name, a in pairs if states[name]}
        self.optimizer.state = defaultdict(dict, state)
        for group, saved in zip(self.optimizer.param_groups, settings["groups"], strict=True):
            group.update({k: tuple(v) if isinstance(v, list) else v for k, v in saved.items()})
        if self.scheduler is not None:
            self.scheduler.load_state_dict(_decoded(settings["scheduler"]))

    def gradients(self) -> list[Tensor]:
        return [a.grad for a in self.aliases if a.grad is not None]


def _choose_fused(group: dict[str, Any]) -> None:
    """Use torch's fused kernels, which update a tensor in one pass, unless the caller chose."""
    free = group.get("fused", False) is None and group.get("foreach") is None
    if free and not group.get("differentiable") and not group.get("capturable"):
        group["fused"] = all(p.dtype in _FUSED_DTYPES for p in group["params"]) or None


def squared_norm(gradients: Sequence[Tensor]) -> float:
    """The squared norm of one stage's gradients."""
    return sum(float(torch.linalg.vector_norm(g).square()) for g in gradients)


def clip(gradients: Sequence[Tensor], norm: float, limit: float) -> None:
    """Scale gradients whose joint norm with others is `norm` so that it is at most `limit`
    (torch.nn.utils.clip_grad_norm_'s formula)."""
    factor = limit / (norm + 1e-6)
    if factor < 1.0:
        for g in gradients:
            g.mul_(factor)


def _encoded(value: Any) -> Any:
    """A scheduler's state for JSON, whose keys are text: MultiStepLR counts by step numbers."""
    if isinstance(value, Counter):
        return {"counter": [[k, n] for k, n in value.items()]}
    if isinstance(value, dict):
        return {k: _encoded(v) for k, v in value.items()}
    return [_encoded(v) for v in value] if isinstance(value, list | tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"counter"}:
            return Counter({k: n for k, n in value["counter"]})
        return {k: _decoded(v) for k, v in value.items()}
    return [_decoded(v) for v in value] if isinstance(value, list) else value
