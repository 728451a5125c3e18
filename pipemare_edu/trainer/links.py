"""Links between neighbouring stages: first in, first out, each message with its index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any


class Links:
    """The links of the stages that one process hosts, all of them inside it.

    There is one link per receiving stage and kind of message (F, B, E, R); messages are (index,
    value), and their order is never changed.

    on_end   called with the minibatch at which another process ends the run
    waiting  is the interpreter blocked in `wait`?
    """

    on_end: Callable[[int], None]
    waiting = False

    def __init__(self, hosted: Sequence[int]) -> None:
        self._queues: dict[tuple[str, int], deque[tuple[int, Any]]] = {
            (kind, stage): deque() for kind in "FBER" for stage in hosted
        }

    def put(self, kind: str, stage: int, index: int, value: Any) -> None:
        """Send message `index` of this kind to `stage`."""
        self._queues[kind, stage].append((index, value))

    def ready(self, kind: str, stage: int, index: int) -> bool:
        """Is message `index` the next one of its link?"""
        queue = self._queues[kind, stage]
        return bool(queue) and queue[0][0] == index

    def get(self, kind: str, stage: int) -> Any:
        """Take the next message."""
        return self._queues[kind, stage].popleft()[1]

    def wait(self) -> bool:
        """Wait for a message from another process; False when none can come."""
        return False

    def breathe(self) -> None:
        """Work goes on inside a long operation: whoever watches may know."""

    def poll(self) -> None:
        """Take in what has come from other processes."""

    def end_at(self, end: int) -> None:
        """Tell the other processes that the run ends before minibatch `end`."""

    def everybody(self, mine: Any) -> list[Any]:
        """What every process has, by its rank; all of them call this at the same point."""
        return [mine]
