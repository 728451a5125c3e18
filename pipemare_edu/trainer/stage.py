"""One stage: its layers, the microbatches it has in flight, and its weight version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from . import randomness
from .flat import Flat, Scratch, flatten, named_parameters
from .weights import Newest

_ALIGNMENT = 64  # bytes, of torch's allocations on the CPU
Value = Tensor | tuple[Tensor | None, ...]
Policy = Callable[[Tensor], Newest]


class Read(NamedTuple):
    """How old the weights were that one microbatch's forward and backward read: the version when
    its gradient is applied (the next update) less the versions read.
    full: its step came when every stage's pipe was full."""

    full: bool
    forward: int
    backward: int


class Flight(NamedTuple):
    """What a forward leaves for its backward: leaves, results, and the version it read."""

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    version: int


class Stage:
    """Consecutive layers of a model, run one operation at a time.

    index       the stage, from 0           first_layer  the model's number of its first layer
    policy      flat weights -> how operations read them (trainer.weights)
    scratch     where the newest weights wait while others are read: shared by a process's stages
    """

    def __init__(
        self, index: int, layers: Sequence[nn.Module], first_layer: int, policy: Policy,
        scratch: Scratch, seed: int,
    ) -> None:  # fmt: skip
        self.index, self.layers, self.first_layer, self.seed = index, layers, first_layer, seed
        self.version = self.full_from = 0
        self.reads: Counter[Read] = Counter()  # how often each delay was measured in this run
        self.flying: dict[int, Flight] = {}
        self.peak_flying = 0
        self.saved_bytes = 0
        self.named = [
            (name, p) for name, p in named_parameters(layers, first_layer) if p.requires_grad
        ]
        self.flats = [Flat(w, ps, policy(w)) for w, ps in flatten(self.named)]
        self._altered = [f for f in self.flats if type(f.policy) is not Newest]
        policies = [f.policy for f in self._altered]
        self._releasing = [
            p for p in policies if type(p).after_backward is not Newest.after_backward
        ]
        self._scratch, self._rooms = scratch, list[Tensor]()
        for flat in self._altered:
            scratch.reserve(flat.weights)
        tensors = [p for layer in layers for p in (*layer.parameters(), *layer.buffers())]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self._generator = randomness.generator(self.device)
        # In-place layers (ReLU(inplace=True)) may write neither on a leaf nor on the caller's data.
        self._copies = any(getattr(m, "inplace", False) for x in layers for m in x.modules())

    def reset(self, version: int, full_from: int = 0) -> None:
        """Forget what is in flight and stand at `version`, the updates applied so far.

        full_from  the step from which on the pipe is full, for the record of delays
        """
        self.flying.clear()
        self.reads, self.full_from = Counter(), full_from
        self.version = version
        for flat in self.flats:
            flat.policy.after_backward(version)
        for _, p in self.named:
            p.grad = None

    def check_views(self) -> None:
        """ValueError if a parameter is no longer a view of this stage's flat tensor."""
        for flat, part, name, p in self._parts():
            if p.data_ptr() != flat.weights[part].data_ptr() or p.dtype != flat.weights.dtype:
                raise ValueError(
                    f"parameter {name} is no longer this trainer's: another Trainer, or a call "
                    "such as .double() or .to(), replaced its memory; make a new Trainer"
                )

    def compute(self, value: Value, microbatch: int) -> Value:
        """All layers in turn, each drawing from its own (seed, layer, microbatch)."""
        if self._copies:
            value = _cloned(value)
        for number, layer in enumerate(self.layers, start=self.first_layer):
            self._generator.manual_seed(randomness.key(self.seed, number, microbatch))
            value = layer(value)
            if not isinstance(value, Tensor) and not _is_tuple_of_tensors(value):
                raise TypeError(
                    f"layer {number} returned {_described(value)}: a layer returns a tensor or a "
                    "tuple of tensors (None may stand among them)"
                )
        return value

    def forward(
        self,
        m: int,
        value: Value,
        asynchronous: bool,
        loss: Callable[[Value], Tensor] | None = None,
    ) -> Value:
        """F<m>: compute, remember what B<m> needs, return the output (the loss, if given)."""
        leaves = tuple(map(_leaf, as_tuple(value)))
        packed = leaves if isinstance(value, tuple) else cast(Tensor, leaves[0])
        swapped = self._swap_in("F", self.version, asynchronous)
        try:
            output = self.compute(packed, m)
            if loss is not None:
                output = loss(output)
        finally:
            self._swap_out(swapped)
        self.flying[m] = Flight(leaves, as_tuple(output), self.version)
        if len(self.flying) > self.peak_flying:
            self.peak_flying = len(self.flying)
        return output

    def backward(
        self, m: int, grads: tuple[Tensor | None, ...] | None, asynchronous: bool
    ) -> tuple[Tensor | None, ...]:
        """B<m>: accumulate this stage's gradients, return those of its inputs.

        grads: one per output, or None for the loss itself.
        """
        read = self.version_read(m)
        inputs, outputs, version = self.flying.pop(m)
        roots, seeds = [], []
        for y, g in zip(outputs, grads or (None,), strict=True):
            if y is not None and y.requires_grad and (g is not None or grads is None):
                roots.append(y)
                seeds.append(None if g is None else fresh(g))
        if roots:
            swapped = self._swap_in("B", version, asynchronous)
            try:
                torch.autograd.backward(roots, seeds)
            finally:
                self._swap_out(swapped)
        self.reads[
            Read(self.version >= self.full_from, self.version - version, self.version - read)
        ] += 1
        if self._releasing:
            oldest = next(iter(self.flying.values())).version if self.flying else self.version
            for policy in self._releasing:
                policy.after_backward(oldest)
        return tuple(None if x is None else x.grad for x in inputs)

    def version_read(self, m: int) -> int:
        """The version that the backward of microbatch m, in flight, would read now."""
        if not self._altered:
            return self.version
        return self._altered[0].policy.version_read(self.flying[m].version, self.version)

    def _swap_in(self, operation: str, read: int, asynchronous: bool) -> list[tuple[Flat, Tensor]]:
        """Write the weights that `operation` reads in place; returns what `_swap_out` needs."""
        if not self._altered:
            return []
        if not self._rooms:
            self._rooms = [self._scratch.room(flat.weights) for flat in self._altered]
        swapped = []
        for flat, room in zip(self._altered, self._rooms, strict=True):
            if flat.policy.alters(operation, read, self.version, asynchronous):
                swapped.append((flat, room.copy_(flat.weights)))
                flat.policy.write(room, read)
        return swapped

    @staticmethod
    def _swap_out(swapped: list[tuple[Flat, Tensor]]) -> None:
        """Copy the newest weights back.  Never computed back: adding a correction and taking it
        away loses bits."""
        for flat, newest in swapped:
            flat.weights.copy_(newest)

    def before_update(self) -> None:
        """Let the policies keep what the coming update would overwrite."""
        if not self._altered:
            return
        in_use = bool(self.flying) and next(reversed(self.flying.values())).version == self.version
        for flat in self._altered:
            flat.policy.before_update(self.version, in_use)

    def held(self) -> dict[str, dict[str, Tensor]]:
        """The policies' extra weights between two fits, per parameter (views)."""
        return {
            name: {key: t[part].view(p.shape) for key, t in flat.policy.held().items()}
            for flat, part, name, p in self._parts()
        }

    def restore_held(self, held: dict[str, dict[str, Tensor]]) -> None:
        """Take back what `held` gave; what is missing starts from the weights."""
        for flat, part, name, _ in self._parts():
            for key, t in flat.policy.held().items():
                t[part] = held[name].get(key, flat.weights[part]).reshape(-1)

    def _parts(self) -> Iterator[tuple[Flat, slice, str, nn.Parameter]]:
        """Each trainable parameter with its place in a flat tensor."""
        for flat in self.flats:
            start = 0
            for name, p in flat.named:
                yield flat, slice(start, start + p.numel()), name, p
                start += p.numel()

    def evaluate(self, value: Value) -> Value:
        """E: the layers in evaluation mode, without gradients; nothing of the stage changes."""
        modes = [(m, m.training) for layer in self.layers for m in layer.modules()]
        value = tuple(map(_settled, value)) if isinstance(value, tuple) else fresh(value)
        try:
            for module, _ in modes:
                module.training = False
            with torch.no_grad():
                return self.compute(value, 0)
        finally:
            for module, training in modes:
                module.training = training


def _cloned(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.clone()
    return tuple(None if x is None else x.clone() for x in value)


def _is_tuple_of_tensors(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and all(v is None or isinstance(v, Tensor) for v in value)
    )


def _described(value: object) -> str:
    inner = f" of {', '.join(type(v).__name__ for v in value)}" if isinstance(value, tuple) else ""
    return f"a {type(value).__name__}{inner}"


def as_tuple(value: Value) -> tuple[Tensor | None, ...]:
    """A layer's value as the tuple that crosses a link."""
    return value if isinstance(value, tuple) else (value,)


def fresh(x: Tensor) -> Tensor:
    """`x`, contiguous and aligned like a tensor that torch has just allocated.

    Some kernels' last bits depend on where their arguments lie, and what comes as a message always
    lies like this.
    """
    if x.is_contiguous() and not x.data_ptr() % _ALIGNMENT:
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _settled(x: Tensor | None) -> Tensor | None:
    return None if x is None else fresh(x)


def _leaf(x: Tensor | None) -> Tensor | None:
    """A new leaf: its gradient is what goes back to the stage before."""
    if x is None:
        return None
    return fresh(x.detach()).requires_grad_() if x.requires_grad else fresh(x)
