"""The state of stages between two fits, where nothing is in flight: collected, saved, taken back.

Everything is kept per layer and parameter, so that it can be put into another number of stages or
sent to another process: weights and buffers, optimizer state, T2's average, schedulers.  A file
adds the step, how many minibatches the fit has used, and the random state that its data was drawn
with.  Its format is safetensors: no pickle, and written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from .files import as_path, write_atomically
from .stage import Stage
from .updates import StageOptimizer

if TYPE_CHECKING:
    from .trainer import Trainer

FORMAT = "pipemare_edu trainer 1"
Optimizers = Sequence[StageOptimizer | None]


@dataclass
class State:
    """tensors by name; meta: numbers and text, fit for JSON.

    tensors   layers/<layer>.<name>, held/<parameter>/<key>, optimizer/<parameter>/<key>
    meta      scalars: optimizer state that is no tensor, per parameter;
              stages: parameter groups and scheduler of each stage
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=lambda: {"scalars": {}, "stages": []})

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose name starts with `prefix`, by the rest of their name."""
        return {n.removeprefix(prefix): t for n, t in self.tensors.items() if n.startswith(prefix)}

    def encode(self) -> bytes:
        """One safetensors blob; ValueError for a state that is not numbers and tensors."""
        try:
            text = json.dumps(self.meta)
        except TypeError as error:
            raise ValueError(
                f"an optimizer or scheduler keeps what is no number: {error}"
            ) from None
        whole = {n: t.detach().cpu().contiguous().clone() for n, t in self.tensors.items()}
        return to_bytes(whole, {"state": text})

    @classmethod
    def decode(cls, data: bytes) -> State:
        """The state that `encode` wrote; ValueError for anything else."""
        try:
            size = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + size])
            meta = json.loads(head["__metadata__"]["state"])
            if not isinstance(meta, dict) or not {"scalars", "stages"} <= set(meta):
                raise ValueError("its description is another program's")
            return cls(from_bytes(data), meta)
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                "empty, cut short, or not written by Trainer.save or save_every (--save-every)"
            ) from error


def collect(stages: Sequence[Stage], optimizers: Optimizers) -> State:
    """The state of some stages (views, not copies)."""
    state = State({f"layers/{name}": t for name, t in _layers(stages).items()})
    for stage, optimizer in zip(stages, optimizers, strict=True):
        for name, held in stage.held().items():
            state.tensors |= {f"held/{name}/{key}": t for key, t in held.items()}
        if optimizer is None:
            continue
        for name, values in optimizer.state().items():
            for key, value in values.items():
                if isinstance(value, Tensor):
                    state.tensors[f"optimizer/{name}/{key}"] = value
                else:
                    state.meta["scalars"].setdefault(name, {})[key] = value
        state.meta["stages"].append({"names": optimizer.names, **optimizer.settings()})
    return state


def merge(states: Iterable[State]) -> State:
    """The states of neighbouring stages as one."""
    whole = State()
    for state in states:
        whole.tensors |= state.tensors
        whole.meta["scalars"] |= state.meta["scalars"]
        whole.meta["stages"] += state.meta["stages"]
    return whole


def put_back(state: State, stages: Sequence[Stage], optimizers: Optimizers) -> None:
    """Write a collected state into stages that hold the same layers, however they are cut.

    Raises ValueError, before anything is changed, if the layers or the optimizers are others.
    """
    mine = _layers(stages)
    theirs = state.under("layers/")
    if any(n not in theirs or theirs[n].shape != t.shape for n, t in mine.items()):
        raise ValueError("it holds other layers than this trainer's")
    settings = {name: stage for stage in state.meta["stages"] for name in stage["names"]}
    for trained in filter(None, optimizers):
        for name in trained.names:
            if name not in settings:
                raise ValueError(f"parameter {name} is trained here and was frozen there")
        trained.check_fits(settings[trained.names[0]])
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(theirs[name])
    for stage, optimizer in zip(stages, optimizers, strict=True):
        stage.restore_held({n: state.under(f"held/{n}/") for n, _ in stage.named})
        if optimizer is not None:
            states = {
                n: state.under(f"optimizer/{n}/") | state.meta["scalars"].get(n, {})
                for n in optimizer.names
            }
            optimizer.restore(states, settings[optimizer.names[0]])


def save(trainer: Trainer, path: str | Path) -> None:
    """Write the trainer's state to `path`.

    Raises ValueError when an optimizer's or scheduler's state is not numbers and tensors.
    """
    trainer.refuse_while_running("save")
    write(trainer, collect(trainer.stages, trainer.optimizers), trainer.step, path)


def write(trainer: Trainer, state: State, step: int, path: str | Path) -> None:
    """Write the `state` that the trainer's stages had after `step` steps, at its end or during a
    fit."""
    state.tensors["random"] = trainer.random_state
    state.meta |= {
        "format": FORMAT,
        "step": step,
        "seen": trainer.seen + trainer.used + step - trainer.step,
        "seed": trainer.blueprint.seed,
        "microbatches": trainer.blueprint.microbatches,
        **trainer.remembered,
    }
    write_atomically(path, state.encode())


def restore(trainer: Trainer, path: str | Path) -> None:
    """Take back what `save` wrote, into the same layers on any number of stages.

    The next fit passes over the minibatches already used, with the random state they were drawn
    with.  Raises ValueError, before anything is changed, for a file that is not a whole state, or
    that is of other layers, another seed or another number of microbatches.
    """
    trainer.refuse_while_running("restore")
    path = as_path(path)
    try:
        state = State.decode(path.read_bytes())
        if state.meta.get("format") != FORMAT:
            raise ValueError("not a trainer's state of this version")
        for name in ("seed", "microbatches"):
            mine = getattr(trainer.blueprint, name)
            if state.meta[name] != mine:
                raise ValueError(
                    f"trained with {name}={state.meta[name]}, this trainer has {mine}: the run "
                    "would not be the same"
                )
        if set(state.under("layers/")) != set(_layers(trainer.stages)):
            raise ValueError("it holds other layers than this trainer's")
        put_back(state, trainer.stages, trainer.optimizers)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    for stage in trainer.stages:
        stage.reset(state.meta["step"])
    trainer.step, trainer.seen, trainer.used = state.meta["step"], state.meta["seen"], 0
    torch.set_rng_state(state.tensors["random"])


def _layers(stages: Sequence[Stage]) -> dict[str, Tensor]:
    """Weights and buffers by <layer>.<name>."""
    return {
        f"{j}.{name}": t.detach()
        for stage in stages
        for j, layer in enumerate(stage.layers, start=stage.first_layer)
        for name, t in (*layer.named_parameters(), *layer.named_buffers())
    }
