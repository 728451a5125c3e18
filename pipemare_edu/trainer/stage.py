"""One stage: its layers, the microbatches it has in flight, and its weight version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..plan.held import Held
from ..plan.segments import Rerun
from . import randomness
from .buffers import unmoved
from .flat import Flat, Scratch, flatten, named_parameters
from .flight import Flight, Read, Saved, Waiting
from .value import (
    Value,
    as_tuple,
    cloned,
    described,
    fresh,
    is_tuple_of_tensors,
    settled,
    without_graph,
)
from .weights import Newest

Policy = Callable[[Tensor], Newest]
Loss = Callable[[Value], Tensor]


def _run_backward(roots: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> None:
    """torch.autograd.backward, without its look at the gradients where another backward made them,
    which for a small layer takes longer than the layer."""
    if seeds[0] is None:  # the loss
        torch.autograd.backward(roots)
    else:
        torch.autograd.Variable._execution_engine.run_backward(
            tuple(roots), tuple(seeds), False, False, (), True, True
        )


class Stage:
    """Consecutive layers of a model, run one operation at a time.

    index       the stage, from 0           first_layer  the model's number of its first layer
    policy      flat weights -> how operations read them (trainer.weights)
    scratch     where the newest weights wait while others are read: shared by a process's stages
    rerun       how it re-runs its forwards, once asynchronous; None: it keeps what they leave
    """

    def __init__(
        self, index: int, layers: Sequence[nn.Module], first_layer: int, policy: Policy,
        scratch: Scratch, seed: int, rerun: Rerun | None = None,
    ) -> None:  # fmt: skip
        self.rerun = rerun
        self.index, self.layers, self.first_layer, self.seed = index, layers, first_layer, seed
        self.version = self.full_from = 0
        self.reads: Counter[Read] = Counter()  # how often each delay was measured in this run
        self.flying: dict[int, Flight] = {}
        self.waiting: dict[int, Waiting] = {}  # forwarded later than all that is flying
        self.peak = Held(0, 0, 0)
        self.saved = Saved(0, 0, 0)  # by one microbatch, as its first forward showed
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
        self._modules = [m for x in layers for m in x.modules()]
        # In-place layers (ReLU(inplace=True)) may write neither on a leaf nor on the caller's data.
        self._copies = any(getattr(m, "inplace", False) for m in self._modules)

    def reset(self, version: int, full_from: int = 0) -> None:
        """Forget what is in flight and stand at `version`, the updates applied so far.

        full_from  the step from which on the pipe is full, for the record of delays
        """
        self.flying.clear()
        self.waiting.clear()
        self.reads, self.full_from = Counter(), full_from
        self.version = version
        for flat in self.flats:
            flat.policy.after_backward(version + 1)  # whoever holds the weights may change them now
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
            value = cloned(value)
        for number, layer in enumerate(self.layers, start=self.first_layer):
            self._generator.manual_seed(randomness.key(self.seed, number, microbatch))
            value = layer(value)
            if not isinstance(value, Tensor) and not is_tuple_of_tensors(value):
                raise TypeError(
                    f"layer {number} returned {described(value)}: a layer returns a tensor or a "
                    "tuple of tensors (None may stand among them)"
                )
        return value

    def forward(self, m: int, value: Value, asynchronous: bool, loss: Loss | None = None) -> Value:
        """F<m>: compute, remember what B<m> needs, return the output (the loss, if given).

        What will be re-run leaves at most its input, and the output alone.
        """
        value = without_graph(value)
        output = self._computed("F", m, value, self.version, asynchronous, loss)
        if self.rerun is None or not asynchronous:
            self.flying[m] = Flight(as_tuple(value), as_tuple(output), self.version)
        else:
            self.waiting[m] = Waiting(value if self.rerun.first else None, self.version)
            output = without_graph(output)
        self._note_peak()
        return output

    def recompute(self, m: int, value: Value | None = None) -> Value:
        """R<m>: the forward again, from the input kept or else given; what it leaves is B<m>'s."""
        kept, version = self.waiting.pop(m)
        value = without_graph(cast(Value, value)) if kept is None else kept
        read = self._version_read(version)
        with unmoved(self._modules):
            output = self._computed("R", m, value, version, True)
        self.flying[m] = Flight(as_tuple(value), as_tuple(output), version, read)
        self._note_peak()
        return output

    def _computed(
        self, operation: str, m: int, value: Value, read: int, asynchronous: bool,
        loss: Loss | None = None,
    ) -> Value:  # fmt: skip
        swapped = self._swap_in(operation, read, asynchronous)
        try:
            output = self.compute(value, m)
            return output if loss is None else loss(output)
        finally:
            self._swap_out(swapped)

    def _note_peak(self) -> None:
        graphs = len(self.flying)
        inputs = len(self.waiting) if self.rerun and self.rerun.first else 0
        if self.rerun or graphs > self.peak.graphs:
            self.peak = Held(*map(max, self.peak, (graphs, inputs, graphs + inputs)))

    def backward(
        self, m: int, grads: tuple[Tensor | None, ...] | None, asynchronous: bool
    ) -> tuple[Tensor | None, ...]:
        """B<m>: accumulate this stage's gradients, return those of its inputs.

        grads: one per output, or None for the loss itself.
        """
        inputs, outputs, version, reread = self.flying.pop(m)
        read = self._version_read(version)
        roots, seeds = [], []
        for y, g in zip(outputs, grads or (None,), strict=True):
            if y is not None and y.requires_grad and (g is not None or grads is None):
                roots.append(y)
                seeds.append(None if g is None else fresh(g))
        if roots:
            swapped = self._swap_in("B", version, asynchronous)
            try:
                _run_backward(roots, seeds)
            finally:
                self._swap_out(swapped)
        now, again = self.version, None if reread is None else self.version - reread
        self.reads[Read(now >= self.full_from, now - version, now - read, again)] += 1
        if self._releasing:
            oldest = next(self._versions(), now)
            for policy in self._releasing:
                policy.after_backward(oldest)
        return tuple(None if x is None else x.grad for x in inputs)

    def version_read(self, m: int) -> int:
        """The version that the backward of microbatch m, in flight, would read now."""
        return self._version_read(self.flying[m].version)

    def _version_read(self, forward: int) -> int:
        if not self._altered:
            return self.version
        return self._altered[0].policy.version_read(forward, self.version)

    def _versions(self) -> Iterator[int]:
        """What the forwards of the microbatches in flight read, the oldest first."""
        yield from (f.version for f in self.flying.values())
        yield from (w.version for w in self.waiting.values())

    def _swap_in(self, operation: str, read: int, asynchronous: bool) -> list[tuple[Flat, Tensor]]:
        """Write the weights that `operation` reads in place; returns what `_swap_out` needs."""
        if not self._altered:
            return []
        if not self._rooms:
            self._rooms = [self._scratch.room(flat.weights) for flat in self._altered]
        swapped = []
        for flat, room in zip(self._altered, self._rooms, strict=True):
            policy = flat.policy
            if policy.alters(operation, read, self.version, asynchronous):
                newest = policy.put_aside(room, self.version, self._in_use)
                swapped.append((flat, newest))
                if operation == "R" and self.rerun:
                    policy.write_again(newest, read, self.rerun.part)
                else:
                    policy.write(newest, read)
        return swapped

    @staticmethod
    def _swap_out(swapped: list[tuple[Flat, Tensor]]) -> None:
        """Copy the newest weights back.  Never computed back: adding a correction and taking it
        away loses bits."""
        for flat, newest in swapped:
            flat.weights.copy_(newest)

    def before_update(self) -> None:
        """Let the policies keep what the coming update would overwrite."""
        for flat in self._altered:
            flat.policy.before_update(self.version, self._in_use)

    def _in_use(self) -> bool:
        """Has a microbatch in flight read the newest weights?"""
        latest: dict[int, Any] = self.waiting or self.flying
        return bool(latest) and next(reversed(latest.values())).version == self.version

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
        value = settled(value)
        try:
            for module, _ in modes:
                module.training = False
            with torch.no_grad():
                return self.compute(value, 0)
        finally:
            for module, training in modes:
                module.training = training
