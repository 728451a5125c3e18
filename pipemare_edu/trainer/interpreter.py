"""The interpreter: runs the operation lists of the stages it hosts.

    until every list has ended:
        every stage runs its operations until one has to wait, or until an update
        when no stage moves any more, those that stand at an update take it together

Waiting at updates for the others never blocks anyone: what they need was sent before.  Stages talk
through first-in, first-out links alone, so the result depends on the lists and on nothing else.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ..errors import PipelineError, ScheduleError, StageError
from ..plan.clock import Event, deadlock_report
from ..plan.ops import Op, Operations, receiver, sender
from .evaluation import Evaluation
from .feed import Feed
from .links import Links
from .methods import Method
from .probe import Probe
from .stage import Stage, Value, as_tuple
from .updates import StageOptimizer, clip, squared_norm, step_together

_KEPT = 100  # operations before and after the stuck one in a deadlock's report


class Diverged(PipelineError):
    """The loss is not finite, or above the limit; `args` is (step, what)."""


class Interpreter:
    """Runs the stages it hosts: all of them, or consecutive ones of `count`.

    lists       one iterable of operations per hosted stage
    optimizers  one per hosted stage, None for a stage without trainable weights
    links       where messages go and come from; inside this process if not given
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        lists: Sequence[Iterable[Op]],
        optimizers: Sequence[StageOptimizer | None],
        feed: Feed,
        method: Method,
        loss: Callable[[Any, Any], Tensor],
        evaluation: Evaluation | None = None,
        clip: float | None = None,
        limit: float = 1e4,
        links: Links | None = None,
        count: int | None = None,
    ) -> None:
        numbers = [s.index for s in stages]
        self.stages, self.count = stages, count or len(stages)
        self.optimizers = dict(zip(numbers, optimizers, strict=True))
        self.links = links or Links(numbers)
        self.feed, self.method, self.loss = feed, method, loss
        self.evaluation, self.clip, self.limit = evaluation, clip, limit
        self.losses: list[float] = []
        self.scores: list[tuple[int, dict[str, float]]] = []
        self._lists = {i: iter(x) for i, x in zip(numbers, lists, strict=True)}
        self._next = {i: next(x, None) for i, x in self._lists.items()}
        self._done: dict[int, deque[Op]] = {i: deque(maxlen=_KEPT) for i in numbers}
        self._parts: list[Tensor] = []
        self._run = {"F": self._forward, "B": self._backward, "E": self._evaluate}
        self._probed: set[int] = set()
        self._began = perf_counter()

    def events(self) -> Iterator[Event]:
        """Run to the end, one event per operation.

        Raises StageError when a layer, loss or optimizer raises, Diverged, ScheduleError when the
        lists deadlock, DataError when a minibatch cannot be used.
        """
        while any(op is not None for op in self._next.values()):
            moved = False
            for stage in self.stages:
                while (op := self._next[stage.index]) and op.kind != "U" and self._ready(stage, op):
                    yield self._perform(stage, op)
                    moved = True
            if moved:
                continue
            standing = [s for s in self.stages if (op := self._next[s.index]) and op.kind == "U"]
            if standing:
                yield from self._update(standing)
            elif not self.links.wait():
                raise ScheduleError(self._deadlock())

    @property
    def started(self) -> int:
        """The first minibatch that no hosted stage has begun."""
        last = [row[-1].step(self.feed.microbatches) for row in self._done.values() if row]
        return max((step + 1 for step in last), default=self.feed.steps.start)

    def end_at(self, end: int) -> None:
        """Shorten the run: nothing of minibatch `end` or later is run."""
        for i, rest in self._lists.items():
            kept = self._before(end, chain([self._next[i]], rest))
            self._next[i], self._lists[i] = next(kept, None), kept

    def _before(self, end: int, ops: Iterable[Op | None]) -> Iterator[Op]:
        return (op for op in ops if op and op.step(self.feed.microbatches) < end)

    def _ready(self, stage: Stage, op: Op) -> bool:
        if op.kind == "B" and op.index not in stage.flying:
            return False
        if op.kind == "F" and not self.feed.ready(op.index, stage.index == 0, self._is_last(stage)):
            return False
        here = sender(op, stage.index, self.count)
        return here is None or self.links.ready(op.kind, stage.index, op.index)

    def _perform(self, stage: Stage, op: Op) -> Event:
        start = perf_counter()
        version = stage.version
        try:
            version = self._run[op.kind](stage, op)
        except PipelineError:
            raise
        except Exception as error:
            raise StageError(stage.index, op.kind, op.index, error) from error
        return self._passed(stage, op, start, version)

    def _passed(self, stage: Stage, op: Op, start: float, version: int) -> Event:
        self._done[stage.index].append(op)
        self._next[stage.index] = next(self._lists[stage.index], None)
        began = self._began
        return Event(stage.index, *op, start - began, perf_counter() - began, version)

    def _receive(self, stage: Stage, op: Op) -> Any:
        while not self.links.ready(op.kind, stage.index, op.index):
            self.links.wait()  # the rest of an evaluation, batch by batch
        return self.links.get(op.kind, stage.index)

    def _send(self, stage: Stage, op: Op, value: Any) -> None:
        there = receiver(op, stage.index, self.count)
        if there is not None:
            self.links.put(op.kind, there, op.index, value)

    def _forward(self, stage: Stage, op: Op) -> int:
        m = op.index
        asynchronous = self.method.asynchronous(m // self.feed.microbatches)
        value = self.feed.inputs(m) if stage.index == 0 else self._receive(stage, op)
        loss = self._share_of_loss(m) if self._is_last(stage) else None
        if stage.index in self._probed:
            output = stage.forward(m, value, asynchronous, loss)
        else:
            self._probed.add(stage.index)
            with Probe(stage, value, self.method):
                output = stage.forward(m, value, asynchronous, loss)
        if loss is None:
            self._send(stage, op, output)
        else:
            self._note_loss(m, output)
        return stage.version

    def _is_last(self, stage: Stage) -> bool:
        return stage.index == self.count - 1

    def _share_of_loss(self, m: int) -> Callable[[Value], Tensor]:
        """The loss of microbatch m, weighted by its share of the minibatch's count."""
        target, share = self.feed.target(m)
        if share == 0.0:  # nothing to count here, and a mean over nothing is nan
            return lambda output: sum(y.sum() for y in as_tuple(output)) * 0.0  # type: ignore
        return lambda output: _checked_loss(self.loss(output, target)) * share

    def _note_loss(self, m: int, loss: Value) -> None:
        assert isinstance(loss, Tensor)
        self._parts.append(loss.detach())
        if (m + 1) % self.feed.microbatches == 0:
            total = float(sum(self._parts))
            self._parts.clear()
            self.losses.append(total)
            if not math.isfinite(total) or total > self.limit:
                what = f"the loss is {total:.4g}"
                raise Diverged(m // self.feed.microbatches, what)

    def _backward(self, stage: Stage, op: Op) -> int:
        grads = None if self._is_last(stage) else self._receive(stage, op)
        read = stage.flying[op.index].version
        asynchronous = self.method.asynchronous(op.index // self.feed.microbatches)
        self._send(stage, op, stage.backward(op.index, grads, asynchronous))
        return stage.version_read(read)

    def _evaluate(self, stage: Stage, op: Op) -> int:
        assert self.evaluation is not None
        outputs = []
        for j in range(self.evaluation.batches):
            value = self.evaluation.inputs[j] if stage.index == 0 else self._receive(stage, op)
            outputs.append(stage.evaluate(value))
            self._send(stage, op, outputs[-1])
        if self._is_last(stage):
            self.scores.append((op.index + 1, self.evaluation.score(outputs)))
        return stage.version

    def _update(self, standing: Sequence[Stage]) -> Iterator[Event]:
        """One optimizer step of every stage that stands at an update."""
        start, began = perf_counter(), self._began
        ops = [op for s in standing if (op := self._next[s.index])]
        steps = {
            o: op.index
            for s, op in zip(standing, ops, strict=True)
            if (o := self.optimizers[s.index]) is not None
        }
        for o in steps:
            o.take_gradients()
        if self.clip is not None:
            self._clip(self.clip, standing)
        for s in standing:
            s.before_update()
        step_together(steps)
        each = (perf_counter() - start) / len(standing)
        events = []
        for n, (stage, op) in enumerate(zip(standing, ops, strict=True)):
            self._passed(stage, op, start, stage.version)
            at = start - began + n * each
            events.append(Event(stage.index, "U", op.index, at, at + each, stage.version))
            stage.version += 1
        yield from events  # only now: whoever stops here finds weights and versions in step

    def _clip(self, limit: float, standing: Sequence[Stage]) -> None:
        """Synchronous methods clip by the norm over all stages, asynchronous ones by each own."""
        mine = [(s.index, o) for s in standing if (o := self.optimizers[s.index]) is not None]
        squares = torch.zeros(self.count, dtype=torch.float64)
        for i, o in mine:
            squares[i] = squared_norm(o.gradients())
        if self.method.synchronous:
            squares = self.links.totals(squares).sum().expand(self.count)
        for i, o in mine:
            clip(o.gradients(), float(squares[i].sqrt()), limit)

    def _deadlock(self) -> str:
        rows = [
            [*done, *([op] if (op := self._next[i]) else []), *islice(self._lists[i], _KEPT)]
            for i, done in self._done.items()
        ]
        return deadlock_report([Operations(r) for r in rows], [len(d) for d in self._done.values()])


def _checked_loss(loss: Any) -> Tensor:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        what = (
            f"tensor of shape {list(loss.shape)}"
            if isinstance(loss, Tensor)
            else type(loss).__name__
        )
        raise TypeError(f"the loss returned a {what}: it returns one number, in a tensor")
    return loss
