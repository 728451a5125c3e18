"""From minibatches to microbatches: cut, checked, numbered.

Minibatch k becomes microbatches kN .. kN+N-1 by tensor_split, so sizes differ by at most one.  The
number travels with the inputs (to the first stage) and the targets (to the last).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ..errors import DataError
from .value import Value, as_tuple, fresh


def count(loss: Callable[..., Any], target: Value) -> int:
    """What the loss averages over: `loss.count(target)` if it has one, else the samples."""
    counter = getattr(loss, "count", None)
    return int(counter(target)) if counter is not None else len(_first(target))


class Source(Protocol):
    """Where the first stage's inputs and the last stage's targets come from."""

    microbatches: int

    def ready(self, m: int, first: bool, last: bool) -> bool:
        """Can the first (last) stage have microbatch m now?"""

    def inputs(self, m: int) -> Value:
        """The inputs of microbatch m, once."""

    def target(self, m: int) -> tuple[Value, float]:
        """The target of microbatch m and its share of the minibatch's count, once."""


class Feed:
    """Gives the first stage its inputs and the last stage its targets, reading ahead as little
    as the schedule does.

    batches  an iterable of (inputs, targets); iterated again when it ends before the steps do
    steps    the minibatches to train on, by number
    skip     minibatches to pass over first (a resumed run)
    keep     whether inputs and targets are asked for here
    outside  context in which the caller's iterator runs (its own random state)
    """

    def __init__(
        self,
        batches: Iterable[Any],
        microbatches: int,
        steps: range,
        loss: Callable[..., Any],
        device: torch.device,
        batch_norm: bool = False,
        skip: int = 0,
        outside: Callable[[], AbstractContextManager[None]] = nullcontext,
        keep: tuple[bool, bool] = (True, True),
    ) -> None:
        self.microbatches, self.steps, self.loss, self.device = microbatches, steps, loss, device
        self._batch_norm = batch_norm
        # Reading a list draws nothing, and two changes of the random state take 40 us.
        self._outside = nullcontext if type(batches) in (list, tuple) else outside
        self._keep = keep
        self._inputs: dict[int, Value] = {}
        self._targets: dict[int, tuple[Value, float]] = {}
        self._read = steps.start
        self._skip = skip
        self._source = self._endless(batches)

    def ready(self, m: int, first: bool, last: bool) -> bool:
        """Here it is read on demand, before the clock of the stage's forward starts."""
        self._fill(m)
        return True

    def inputs(self, m: int) -> Value:
        return self._inputs.pop(m)

    def target(self, m: int) -> tuple[Value, float]:
        return self._targets.pop(m)

    def _fill(self, m: int) -> None:
        while m >= self._read * self.microbatches:
            k = self._read
            inputs, target = split_pair(self._next(), f"minibatch {k}")
            pieces = cut(inputs, self.microbatches, k), cut(target, self.microbatches, k)
            check_sizes(len(_first(inputs)), self.microbatches, f"minibatch {k}", self._batch_norm)
            counts = [count(self.loss, t) for t in pieces[1]]
            total = sum(counts)
            if not total:
                raise DataError(f"minibatch {k} has nothing to count: every target is left out")
            for n, (x, t, c) in enumerate(zip(*pieces, counts, strict=True)):
                own = k * self.microbatches + n
                if self._keep[0]:
                    self._inputs[own] = to_device(x, self.device)
                if self._keep[1]:
                    self._targets[own] = to_device(t, self.device), c / total
            self._read += 1

    def _next(self) -> Any:
        with self._outside():
            while self._skip:
                next(self._source)
                self._skip -= 1
            return next(self._source)

    def _endless(self, batches: Iterable[Any]) -> Iterator[Any]:
        given = 0
        while True:
            before = given
            for pair in told(batches, first=given):
                given += 1
                yield pair
            # An iterator is spent; asking for iter(batches) would draw from a loader's randomness.
            if given == before or isinstance(batches, Iterator):
                raise DataError(
                    f"the batches ended after {given} minibatches and {len(self.steps)} steps were "
                    "asked for: pass something that can be iterated again (a list or a "
                    "DataLoader), or fewer steps"
                )


class Delivered:
    """What a worker is sent of the caller's batches, microbatch by microbatch."""

    def __init__(self, microbatches: int, device: torch.device) -> None:
        self.microbatches, self.device = microbatches, device
        self._inputs: dict[int, Value] = {}
        self._targets: dict[int, tuple[Value, float]] = {}

    def give_inputs(self, m: int, inputs: Value) -> None:
        """A microbatch and its inputs, for the first stage."""
        self._inputs[m] = to_device(inputs, self.device)

    def give_target(self, m: int, target: Value, share: float) -> None:
        """A microbatch, its target and its share of the minibatch's count, for the last stage."""
        self._targets[m] = to_device(target, self.device), share

    def ready(self, m: int, first: bool, last: bool) -> bool:
        return not (first and m not in self._inputs or last and m not in self._targets)

    def inputs(self, m: int) -> Value:
        return self._inputs.pop(m)

    def target(self, m: int) -> tuple[Value, float]:
        return self._targets.pop(m)


def told(batches: Iterable[Any], name: str = "batches", first: int = 0) -> Iterator[Any]:
    """The batches; an error of theirs comes with a note of which one could not be read."""
    source, k = iter(batches), first
    while True:
        try:
            pair = next(source)
        except StopIteration:
            return
        except Exception as error:
            error.add_note(f"raised by {name}, asked for minibatch {k} (the first is 0)")
            raise
        yield pair
        k += 1


def split_pair(pair: Any, what: str) -> tuple[Value, Value]:
    """(inputs, targets) of `what`, a minibatch, as tensors or tuples of tensors of one length."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DataError(f"{what} is {_kind(pair)}: give pairs (inputs, targets)")
    inputs, target = (tuple(part) if isinstance(part, list) else part for part in pair)
    if any(isinstance(part, tuple) and not part for part in (inputs, target)):
        raise DataError(f"{what} is empty: inputs and targets hold at least one tensor each")
    lengths = set()
    for part in (*as_tuple(inputs), *as_tuple(target)):
        if not isinstance(part, Tensor) or part.ndim == 0:
            raise DataError(
                f"{what} holds a {type(part).__name__}: inputs and targets are tensors "
                "(or tuples of tensors) with the samples along dimension 0"
            )
        lengths.add(len(part))
    if len(lengths) > 1:
        raise DataError(f"{what} mixes lengths {sorted(lengths)}: one row per sample each")
    return inputs, target


def _kind(value: Any) -> str:
    """What it is, and how long where that may be what is wrong."""
    of = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"a {type(value).__name__}{of}"


def to_device(value: Value, device: torch.device) -> Value:
    """`value` on `device`, as it would arrive there in a message; itself when it is like that."""
    moved = tuple(None if x is None else fresh(x.to(device)) for x in as_tuple(value))
    return moved if isinstance(value, tuple) else moved[0]  # type: ignore[return-value]


def cut(value: Value, microbatches: int, k: int) -> list[Value]:
    """`value` in `microbatches` parts along dimension 0."""
    if isinstance(value, Tensor):
        return list(value.tensor_split(microbatches))
    columns = [x.tensor_split(microbatches) for x in value if x is not None]
    return [tuple(parts) for parts in zip(*columns, strict=True)]


def check_sizes(samples: int, microbatches: int, what: str, batch_norm: bool) -> None:
    """Refuse a minibatch that cannot fill its microbatches, or that starves a BatchNorm."""
    if samples < microbatches:
        raise DataError(
            f"{what} has {samples} samples for {microbatches} microbatches: use fewer "
            "microbatches or larger batches, or drop the short last one (drop_last=True)"
        )
    if batch_norm and samples < 2 * microbatches:
        raise DataError(
            f"{what} has {samples} samples for {microbatches} microbatches, so a microbatch has "
            "one sample and BatchNorm1d has nothing to average: use fewer microbatches, larger "
            "batches, or drop the short last one (drop_last=True)"
        )


def length(batches: Iterable[Any]) -> int | None:
    """Minibatches in one pass, where that is known."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except TypeError:
        return None


def sizes_ahead(batches: Iterable[Any], needed: int) -> Iterator[tuple[int, str]]:
    """The sizes of the first `needed` minibatches, where they are known before anything runs."""
    if isinstance(batches, list | tuple):
        for k, pair in enumerate(batches[:needed]):
            yield len(_first(split_pair(pair, f"minibatch {k}")[0])), f"minibatch {k}"
    elif isinstance(batches, torch.utils.data.DataLoader) and batches.batch_size is not None:
        samples = length(batches.sampler)
        if samples is None:
            return
        whole, rest = divmod(samples, batches.batch_size)
        if whole:
            yield batches.batch_size, "minibatch 0"
        if rest and not batches.drop_last and needed > whole:
            yield rest, f"the last minibatch ({whole})"


def starves_on_one_sample(layers: Sequence[nn.Module]) -> bool:
    """BatchNorm1d in training mode: the one that torch refuses to run on a single sample.
    (BatchNorm2d and 3d still average over positions.)"""
    modules = (m for layer in layers for m in layer.modules())
    return any(isinstance(m, nn.BatchNorm1d) and m.training for m in modules)


def _first(value: Value) -> Tensor:
    first = as_tuple(value)[0]
    assert first is not None
    return first
