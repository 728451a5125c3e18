"""What passes between layers and stages: a tensor, or a tuple of tensors and holes."""

from __future__ import annotations

from typing import cast

from torch import Tensor

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
    """A fresh leaf: its gradient is what goes back to the stage before."""
    return x.detach().requires_grad_() if x is not None and x.requires_grad else x
