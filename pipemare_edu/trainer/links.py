"""Links between neighbouring stages: first in, first out, each message with its index."""

from __future__ import annotations

from collections import deque
from typing import Any


class QueueLink:
    """A link inside one process.  Messages are (index, value); order is never changed."""

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Any]] = deque()

    def put(self, index: int, value: Any) -> None:
        self._queue.append((index, value))

    def ready(self, index: int) -> bool:
        """Is message `index` the next one?"""
        return bool(self._queue) and self._queue[0][0] == index

    def get(self) -> Any:
        return self._queue.popleft()[1]
