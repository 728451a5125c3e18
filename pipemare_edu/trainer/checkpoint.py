"""The state of a trainer between two fits, where nothing is in flight: saved and taken back.

Everything is kept per layer and parameter, so that it can be restored into another number of
stages: weights and buffers, optimizer state, T2's average, schedulers, the step, how many
minibatches the fit has used, and the random state that its data was drawn with.  The file is in the
safetensors format: no pickle, and written whole or not at all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from .files import write_atomically

if TYPE_CHECKING:
    from .trainer import Trainer

FORMAT = "pipemare_edu trainer 1"


def save(trainer: Trainer, path: str | Path) -> None:
    """Write the trainer's state to `path`.

    Raises ValueError when an optimizer's or scheduler's state is not numbers and tensors.
    """
    tensors = {f"layers/{name}": t for name, t in _layer_tensors(trainer).items()}
    tensors["random"] = trainer.random_state
    scalars: dict[str, dict[str, Any]] = {}
    stages = []
    for stage, optimizer in zip(trainer.stages, trainer.optimizers, strict=True):
        for name, held in stage.held().items():
            tensors |= {f"held/{name}/{key}": t for key, t in held.items()}
        if optimizer is None:
            continue
        for name, state in optimizer.state().items():
            for key, value in state.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer/{name}/{key}"] = value
                else:
                    scalars.setdefault(name, {})[key] = value
        stages.append({"names": optimizer.names, **optimizer.settings()})
    meta = {
        "format": FORMAT,
        "step": trainer.step,
        "seen": trainer.seen + trainer.used,
        "seed": trainer.seed,
        "microbatches": trainer.microbatches,
        "scalars": scalars,
        "stages": stages,
    }
    try:
        text = json.dumps(meta)
    except TypeError as error:
        raise ValueError(
            f"this optimizer or scheduler keeps a state that is no number: {error}"
        ) from None
    whole = {name: t.detach().contiguous().clone() for name, t in tensors.items()}
    write_atomically(Path(path), to_bytes(whole, {"state": text}))


def restore(trainer: Trainer, path: str | Path) -> None:
    """Take back what `save` wrote, into the same layers on any number of stages.

    The next fit passes over the minibatches already used, with the random state they were drawn
    with.  Raises ValueError, before anything is changed, for a file that is not a whole state, or
    that is of other layers, another seed or another number of microbatches.
    """
    meta, tensors = _read(path)
    mine = _layer_tensors(trainer)
    theirs = {
        name.removeprefix("layers/"): t for name, t in tensors.items() if name.startswith("layers/")
    }
    if {n: t.shape for n, t in mine.items()} != {n: t.shape for n, t in theirs.items()}:
        raise ValueError(f"{path} holds other layers than this trainer's")
    for name in ("seed", "microbatches"):
        if meta[name] != getattr(trainer, name):
            raise ValueError(
                f"{path} was trained with {name}={meta[name]}, this trainer has "
                f"{getattr(trainer, name)}: the run would not be the same"
            )
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(theirs[name])
    settings = {name: stage for stage in meta["stages"] for name in stage["names"]}
    for stage, optimizer in zip(trainer.stages, trainer.optimizers, strict=True):
        stage.restore_held({n: _under(f"held/{n}/", tensors) for n, _ in stage.named})
        if optimizer is not None:
            states = {
                n: _under(f"optimizer/{n}/", tensors) | meta["scalars"].get(n, {})
                for n in optimizer.names
            }
            optimizer.restore(states, settings[optimizer.names[0]])
        stage.reset(meta["step"])
    trainer.step, trainer.seen, trainer.used = meta["step"], meta["seen"], 0
    torch.set_rng_state(tensors["random"])


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("state", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is truncated or no state of a trainer ({error})") from error
    if meta.get("format") != FORMAT:
        raise ValueError(f"{path} is not a trainer's state of this version")
    return meta, tensors


def _layer_tensors(trainer: Trainer) -> dict[str, Tensor]:
    return {
        f"{j}.{name}": t
        for j, layer in enumerate(trainer.layers)
        for name, t in layer.state_dict().items()
    }


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
