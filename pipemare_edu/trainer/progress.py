"""Where one stage stands in its list of operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from ..plan.ops import Op
from .stage import Stage
from .updates import StageOptimizer

KEPT = 100  # operations before and after the stuck one in a deadlock's report


class Progress:
    """One hosted stage: its list, the operation that comes next, and what it waits for.

    first, last  is it the pipe's first (last) stage?  Those take inputs (targets) from the feed,
                 and wait for no stage's forward (backward).
    """

    __slots__ = ("done", "first", "last", "op", "optimizer", "rest", "stage")

    def __init__(
        self, stage: Stage, ops: Iterable[Op], optimizer: StageOptimizer | None, stages: int
    ) -> None:
        self.stage, self.optimizer = stage, optimizer
        self.first, self.last = stage.index == 0, stage.index == stages - 1
        self.rest = iter(ops)
        self.op = next(self.rest, None)
        self.done: deque[Op] = deque(maxlen=KEPT)

    @property
    def inside(self) -> bool:
        """Does a re-run here wait for that of the stage before?"""
        return self.stage.rerun is not None and not self.stage.rerun.first

    def advance(self) -> None:
        """The operation has run: on to the next."""
        if self.op is not None:
            self.done.append(self.op)
        self._next()

    def _next(self) -> None:
        """At an update the weights are prepared at once, while they are still in the cache."""
        self.op = next(self.rest, None)
        if self.op is not None and self.op.kind == "U":
            self.stage.before_update()

    def end_at(self, end: int, microbatches: int) -> None:
        """Leave out everything of minibatch `end` and later."""
        self.rest = _before(self.rest, end, microbatches)
        if self.op is not None and self.op.step(microbatches) >= end:
            self._next()

    def listing(self) -> list[Op]:
        """The last operations done, the next one, and some that follow (they are used up)."""
        return [*self.done, *([] if self.op is None else [self.op]), *islice(self.rest, KEPT)]


def _before(ops: Iterator[Op], end: int, microbatches: int) -> Iterator[Op]:
    """The operations of minibatches before `end`.  Updates come in order, so that the first one
    past the end tells that no others follow."""
    for op in ops:
        if op.step(microbatches) < end:
            yield op
        elif op.kind == "U":
            return
