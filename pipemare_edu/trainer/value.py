"""What passes between layers and stages: a tensor, or a tuple of tensors and holes."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

_ALIGNMENT = 64  # bytes, of torch's allocations on the CPU
Value = Tensor | tuple[Tensor | None, ...]


def cloned(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.clone()
    return tuple(None if x is None else x.clone() for x in value)


def is_tuple_of_tensors(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and all(v is None or isinstance(v, Tensor) for v in value)
    )


def described(value: object) -> str:
    inner = f" of {', '.join(type(v).__name__ for v in value)}" if isinstance(value, tuple) else ""
    return f"a {type(value).__name__}{inner}"


def as_tuple(value: Value) -> tuple[Tensor | None, ...]:
    """A layer's value as the tuple that crosses a link."""
    return value if isinstance(value, tuple) else (value,)


def without_graph(value: Value) -> Value:
    """The same tensors without the graph that made them."""
    return tuple(map(_leaf, value)) if isinstance(value, tuple) else cast(Tensor, _leaf(value))


def _leaf(x: Tensor | None) -> Tensor | None:
    """A new leaf: its gradient is what goes back to the stage before."""
    if x is None:
        return None
    return fresh(x.detach()).requires_grad_() if x.requires_grad else fresh(x)


def settled(value: Value) -> Value:
    """The same with every tensor as `fresh` has it."""
    if isinstance(value, Tensor):
        return fresh(value)
    return tuple(None if x is None else fresh(x) for x in value)


def fresh(x: Tensor) -> Tensor:
    """`x`, contiguous and aligned like a tensor that torch has just allocated.

    Some kernels' last bits depend on where their arguments lie, and what comes as a message always
    lies like this.
    """
    if x.is_contiguous() and not x.data_ptr() % _ALIGNMENT:
        return x
    return x.clone(memory_format=torch.contiguous_format)
