"""The interpreter: runs the operation lists of the stages it hosts.

    until every list has ended:
        every stage in turn runs forwards until one has to wait, or until a backward or an update
        then every stage, from the last one on, runs backwards likewise
        when no stage moves any more, those that stand at an update take it together

Waiting at updates for the others never blocks anyone: what they need was sent before.  Stages talk
through first-in, first-out links alone, so the result depends on the lists and on nothing else.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ..errors import PipelineError, ScheduleError, StageError
from ..plan.clock import Event, deadlock_report
from ..plan.ops import Op, Operations
from .evaluation import Evaluation
from .feed import Source
from .links import Links
from .methods import Method
from .probe import Probe
from .progress import Progress
from .run import Plan
from .stage import Stage
from .stepping import step_together
from .updates import StageOptimizer, clip, squared_norm
from .value import Value, as_tuple


class Interpreter:
    """Runs the stages it hosts: all of them, or consecutive ones of `count`.

    optimizers  one per hosted stage, None for a stage without trainable weights
    links       where messages go and come from; inside this process if not given

    losses      one per minibatch that the last stage has seen
    scores      (steps done, {metric: value}) of evaluations on the last stage
    diverged    None, or (step, what) once a loss was not finite or above the limit: the minibatches
                before it are finished, nothing of its own or of a later one is applied
    broken      None, or what the feed raised: the minibatches before that are finished
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        optimizers: Sequence[StageOptimizer | None],
        feed: Source,
        method: Method,
        loss: Callable[[Any, Any], Tensor],
        evaluation: Evaluation | None = None,
        clip: float | None = None,
        limit: float = 1e4,
        links: Links | None = None,
        count: int | None = None,
    ) -> None:
        self.count = count or len(stages)
        self.links = links or Links([s.index for s in stages])
        self.feed, self.method, self.loss = feed, method, loss
        self.evaluation, self.clip, self.limit = evaluation, clip, limit
        self.losses: list[float] = []
        self.scores: list[tuple[int, dict[str, float]]] = []
        self.diverged: tuple[int, str] | None = None
        self.broken: Exception | None = None
        self.end: float = math.inf  # the minibatch at which a shortened run ends
        self._stages, self._optimizers = list(stages), list(optimizers)
        self._rows: list[Progress] = []
        self._current: Progress | None = None
        self._probed: set[int] = set()
        self._parts: list[Tensor] = []
        self._run = {
            "F": self._forward, "R": self._recompute, "B": self._backward, "E": self._evaluate,
        }  # fmt: skip
        self._switch = math.inf if method.synchronous else method.t3
        self.began = perf_counter()
        self.links.on_end = self.end_at

    def events(self, lists: Sequence[Iterable[Op]]) -> Iterator[Event]:
        """Run one list of operations per hosted stage to the end, one event per operation.

        Raises StageError when a layer, loss or optimizer raises, ScheduleError when the lists
        deadlock, DataError when a minibatch cannot be used.
        """
        self._rows = [
            Progress(stage, ops, optimizer, self.count)
            for stage, ops, optimizer in zip(self._stages, lists, self._optimizers, strict=True)
        ]
        self._shorten()
        while self._left():
            moved = False
            # As messages go; and kind by kind, not stage by stage, because torch's code for a kind
            # then stays in the caches: a fifth of a step of small layers.
            for kinds, rows in (("FRE", self._rows), ("B", self._rows[::-1])):
                for row in rows:
                    while (op := row.op) is not None and op.kind in kinds and self._ready(row, op):
                        yield self._perform(row, op)
                        moved = True
            if moved:
                continue
            standing = [row for row in self._rows if row.op is not None and row.op.kind == "U"]
            if standing:
                yield from self._update(standing)
            elif self._unended and not self.links.wait():  # a feed that broke may have ended all
                raise ScheduleError(self._deadlock())

    def follow(self, plan: Plan, last: int, drained: Callable[[int], None]) -> Iterator[Event]:
        """Run the hosted stages' part of a plan up to step `last`; `drained` is called with the
        steps done wherever the pipe is empty between two spans, and at the end."""
        for span in plan.spans(last):
            yield from self.events([plan.span(s.index, span, last) for s in self._stages])
            if self.end < span.stop:
                return
            drained(span.stop)

    def _left(self) -> bool:
        """Is there anything left to do, after what other processes have said?"""
        self.links.poll()
        return self._unended

    @property
    def _unended(self) -> bool:
        return any(row.op is not None for row in self._rows)

    @property
    def started(self) -> int:
        """The first minibatch that no hosted stage has begun."""
        n = self.feed.microbatches
        ended = [row.done[-1].step(n) for row in self._rows if row.done]
        flying = [m // n for stage in self._stages for m in (*stage.flying, *stage.waiting)]
        return max((step + 1 for step in ended + flying), default=self._stages[0].version)

    def end_at(self, end: int) -> None:
        """Shorten the run, here and in the other workers: nothing of minibatch `end` or later is
        run any more."""
        if end < self.end:
            self.end = end
            self._shorten()
            self.links.end_at(end)

    def _shorten(self) -> None:
        if self.end < math.inf:
            for row in self._rows:
                row.end_at(int(self.end), self.feed.microbatches)

    def where(self) -> tuple[int, Op] | None:
        """The stage and operation at work, or None while everything waits.  From any thread."""
        row = self._current
        op = row.op if row is not None and not self.links.waiting else None
        return (row.stage.index, op) if row is not None and op is not None else None

    def _ready(self, row: Progress, op: Op) -> bool:
        """Is everything there that `op` needs?  (plan.ops says which neighbour sends it.)"""
        kind, stage = op.kind, row.stage
        if kind == "F" and (row.first or row.last):
            if not self._fed(row, op):
                return False
        elif kind == "B" and op.index not in stage.flying:
            return False
        elif kind == "R":
            if op.index not in stage.waiting:
                return False
            if stage.rerun and stage.rerun.first:
                return True
        if row.last if kind == "B" else row.first:
            return True
        return self.links.ready(kind, stage.index, op.index)

    def _fed(self, row: Progress, op: Op) -> bool:
        """Is there what `op` needs of the caller's batches?"""
        try:
            return self.feed.ready(op.index, row.first, row.last)
        except Exception as error:
            self.broken = error
            self.end_at(op.index // self.feed.microbatches)
            return False

    def _perform(self, row: Progress, op: Op) -> Event:
        start = perf_counter()
        self._current = row
        try:
            version = self._run[op.kind](row, op)
        except PipelineError:
            raise
        except (Exception, SystemExit) as error:  # a layer that leaves would take the caller along
            raise StageError(row.stage.index, op.kind, op.index, error) from error
        row.advance()
        if self.diverged is not None:
            self.end_at(self.diverged[0])
        began = self.began
        return Event(row.stage.index, *op, start - began, perf_counter() - began, version)

    def _asynchronous(self, m: int) -> bool:
        return m // self.feed.microbatches >= self._switch

    def _forward(self, row: Progress, op: Op) -> int:
        m, stage = op.index, row.stage
        value = self.feed.inputs(m) if row.first else self.links.get("F", stage.index)
        loss = self._share_of_loss(m) if row.last else None
        if stage.index in self._probed:
            output = stage.forward(m, value, self._asynchronous(m), loss)
        else:
            self._probed.add(stage.index)
            with Probe(stage, value, self.method):
                output = stage.forward(m, value, self._asynchronous(m), loss)
            _check_training(stage, value, output, row.last)
        if row.last:
            self._note_loss(m, output)
        else:
            self.links.put("F", stage.index + 1, m, output)
        return stage.version

    def _recompute(self, row: Progress, op: Op) -> int:
        stage, rerun = row.stage, row.stage.rerun
        assert rerun is not None
        output = stage.recompute(
            op.index, None if rerun.first else self.links.get("R", stage.index)
        )
        if not rerun.last:
            self.links.put("R", stage.index + 1, op.index, output)
        return stage.flying[op.index].reread or 0

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
                self.diverged = m // self.feed.microbatches, f"the loss is {total:.4g}"

    def _backward(self, row: Progress, op: Op) -> int:
        m, stage = op.index, row.stage
        grads = None if row.last else self.links.get("B", stage.index)
        read = stage.version_read(m)
        sent = stage.backward(m, grads, self._asynchronous(m))
        if not row.first:
            self.links.put("B", stage.index - 1, m, sent)
        return read

    def _evaluate(self, row: Progress, op: Op) -> int:
        """One message per batch; the version is the same for all of them."""
        assert self.evaluation is not None
        stage, outputs = row.stage, []
        for j in range(self.evaluation.batches):
            while not row.first and not self.links.ready("E", stage.index, op.index):
                self.links.wait()
            value = self.evaluation.inputs[j] if row.first else self.links.get("E", stage.index)
            outputs.append(stage.evaluate(value))
            self.links.breathe()
            if not row.last:
                self.links.put("E", stage.index + 1, op.index, outputs.pop())
        if row.last:
            self.scores.append((op.index + 1, self.evaluation.score(outputs)))
        return stage.version

    def _update(self, standing: Sequence[Progress]) -> list[Event]:
        """One optimizer step of every stage that stands at an update."""
        start, began = perf_counter(), self.began
        self._current = standing[0]
        steps = {row.optimizer: row.op.index for row in standing if row.optimizer and row.op}
        for optimizer in steps:
            optimizer.take_gradients()
        if self.clip is not None:
            self._clip(self.clip, [row for row in standing if row.optimizer])
        step_together(steps)
        each = (perf_counter() - start) / len(standing)
        events = []
        for n, row in enumerate(standing):
            assert row.op is not None
            stage, at = row.stage, start - began + n * each
            events.append(Event(stage.index, *row.op, at, at + each, stage.version))
            stage.version += 1
            row.advance()
        return events  # only now: whoever stops between two finds weights and versions in step

    def _clip(self, limit: float, rows: Sequence[Progress]) -> None:
        """Synchronous methods clip by the norm over all stages, asynchronous ones by each own."""
        gradients = {r.stage.index: r.optimizer.gradients() for r in rows if r.optimizer}
        squares = torch.zeros(self.count, dtype=torch.float64)
        for i, mine in gradients.items():
            squares[i] = squared_norm(mine)
        if self.method.synchronous:
            squares = sum(self.links.everybody(squares)).sum().expand(self.count)
        for i, mine in gradients.items():
            clip(mine, float(squares[i].sqrt()), limit)

    def _deadlock(self) -> str:
        done = [len(row.done) for row in self._rows]
        return deadlock_report([Operations(row.listing(), row.inside) for row in self._rows], done)


def _checked_loss(loss: Any) -> Tensor:
    if isinstance(loss, Tensor) and loss.numel() == 1:
        return loss
    what = f"tensor of shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss)
    raise TypeError(f"the loss returned a {what}: it returns one number, in a tensor")


def _check_training(stage: Stage, value: Value, output: Value, is_loss: bool) -> None:
    """Refuse a loss, and warn of an output, that carries no gradient to weights before it."""
    if _carries(output) or not (stage.flats or _carries(value)):
        return
    why = "a detach(), a torch.no_grad() or a conversion cuts it off"
    if is_loss:
        raise ValueError(f"the loss depends on no weight: {why}")
    warnings.warn(
        f"stage {stage.index + 1}: what it returns depends on no weight, so neither it nor a stage "
        f"before it is trained: {why}",
        stacklevel=2,
    )


def _carries(value: Value) -> bool:
    """Does a gradient go back through any of it?"""
    return any(x is not None and x.requires_grad for x in as_tuple(value))
