"""A look at a stage's first forward: the bytes it saves, and weights that a swap cannot reach.

A backward reads parameters by reference.  An operation on parameters alone (w**2, weight norm,
W * mask, a cast) saves a tensor derived from them instead, so that its backward reads the weights
of forward time whatever the method says; under autocast every weight is such a cast copy.  What is
seen is reported once; an operation inside a C++ function or a custom autograd Function is not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..errors import WeightSemanticsWarning
from .flight import Saved
from .methods import Method
from .stage import Stage
from .value import Value, as_tuple


class Probe(TorchFunctionMode):
    """Watches one forward of one stage.

    Sets stage.saved to what autograd keeps for the backward, parameters and buffers left out.
    In an asynchronous method it refuses autocast, and warns when a tensor computed from parameters
    alone is saved (with stashing that tensor is what the backward should read anyway).
    """

    def __init__(self, stage: Stage, value: Value, method: Method) -> None:
        super().__init__()
        self._stage, self._asynchronous = stage, not method.synchronous
        self._warns = self._asynchronous and all(f.policy.kind != "stash" for f in stage.flats)
        own = (t for layer in stage.layers for t in (*layer.parameters(), *layer.buffers()))
        self._memory = {_memory(t) for t in own}
        self._input_bytes = sum(x.nbytes for x in as_tuple(value) if x is not None)
        self._names = {id(p): name for name, p in stage.named}
        self._data = {id(x): x for x in as_tuple(value)}
        self._derived: dict[int, tuple[Tensor, str]] = {}
        self._saved: dict[tuple[int, int], int] = {}  # by place in memory: the bytes
        self.saved = Saved(0, 0, 0)
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda t: t)

    def __enter__(self) -> Probe:
        self._hooks.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._hooks.__exit__(*error)
        kept = self._saved.values()
        self.saved = self._stage.saved = Saved(len(kept), sum(kept), self._input_bytes)
        if self._warns:
            saved = {memory for memory, _ in self._saved}
            self._warn(sorted({n for t, n in self._derived.values() if _memory(t) in saved}))
        self._data.clear()  # the graph keeps the hooks, and through them this object
        self._derived.clear()

    def _pack(self, tensor: Tensor) -> Tensor:
        if _memory(tensor) not in self._memory:
            self._saved[_memory(tensor), int(tensor.storage_offset())] = min(
                tensor.nbytes, tensor.untyped_storage().nbytes()
            )
        return tensor.detach()  # the tensor itself would hold its own graph alive

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if self._asynchronous and any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            raise ValueError(
                "autocast keeps cast copies of the weights, so the backward would read the "
                "weights of forward time: leave autocast and give the layers bfloat16 weights"
            )
        self._follow(out, [*args, *(kwargs or {}).values()])
        return out

    def _follow(self, out: Any, args: list[Any]) -> None:
        """Note whether `out` comes from data, or from parameters alone."""
        results = [t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, Tensor)]
        sources = [a for a in args if isinstance(a, Tensor)]
        if any(id(a) in self._data for a in sources):
            self._data.update((id(t), t) for t in results)
            return
        names = [n for a in sources if (n := self._name(a)) is not None]
        for t in results if names else ():
            self._derived[id(t)] = t, names[0]

    def _name(self, tensor: Tensor) -> str | None:
        """The parameter that `tensor` is, or was computed from."""
        return self._names.get(id(tensor)) or self._derived.get(id(tensor), (None, None))[1]

    def _warn(self, names: list[str]) -> None:
        for name in names:
            warnings.warn(
                f"stage {self._stage.index + 1}: an operation on parameter {name!r} alone saves "
                "its result, so a backward reads that and not the weights that the method says; "
                "apply parameters to activations one at a time, as in w2 * (w1 * x)",
                WeightSemanticsWarning,
                stacklevel=2,
            )


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
