"""Work on the kernel's own event loop, in short chunks, so that the kernel goes on answering.

    a click (any thread) --> start() --> a task on the loop: chunk, sleep, chunk, sleep, ... end

JupyterLab runs widget callbacks on a thread of their own.  They only hand a function over to the
loop's thread, so everything here happens on that thread and needs no lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import closing
from time import perf_counter
from typing import Any

# A message takes several turns of the loop and a hand-over between threads on its way to a cell.
# Yielding for one turn after each chunk would answer it four chunks later; this, within one.
PAUSE = 0.001  # seconds
DRAW_EVERY = 0.1  # seconds, at least
DRAW_SHARE = 0.2  # of the time, at most


class Worker:
    """Carries out one generator at a time.

    begin  called first; makes the generator
    each   called with what it yields, after every chunk
    end    called last, with the error that ended the work, or None; not after `dispose`
    Without a running event loop (a plain script), `start` carries the work out before it returns.
    """

    def __init__(
        self,
        begin: Callable[[], Generator[Any, None, None]],
        each: Callable[[Any], None],
        end: Callable[[Exception | None], None],
    ) -> None:
        self._begin, self._each, self._end = begin, each, end
        self._loop = _running_loop()
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin, unless work is under way.  From any thread."""
        if self._home() is None:
            asyncio.run(self._work())
        else:
            self.call(self._schedule)

    def call(self, function: Callable[[], Any]) -> None:
        """Run `function` on the loop's thread: at once when that is this thread."""
        loop = self._home()
        if loop is None or loop is _running_loop():
            function()
        else:
            loop.call_soon_threadsafe(function)

    async def wait(self) -> None:
        """Until the work has ended.  Does not raise what ended it."""
        if self._task is not None:
            await asyncio.shield(asyncio.gather(self._task, return_exceptions=True))

    def dispose(self) -> None:
        """End the work at once."""
        if self._task is not None and self._loop is not None and self.busy:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _home(self) -> asyncio.AbstractEventLoop | None:
        """The loop of the kernel, or of the script that is running."""
        if self._loop is None or self._loop.is_closed():
            self._loop = _running_loop()
        return self._loop

    def _schedule(self) -> None:
        if not self.busy:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        problem: Exception | None = None
        try:
            with closing(self._begin()) as chunks:
                for value in chunks:
                    self._each(value)
                    await asyncio.sleep(PAUSE)
        except Exception as error:
            problem = error
        self._end(problem)


class Pace:
    """Draws now and then while work goes on, so that the work keeps most of the time."""

    def __init__(self) -> None:
        self._drawn, self.wait = 0.0, DRAW_EVERY

    def draw(self, draw: Callable[[], None]) -> None:
        """Call `draw`, unless it was called less than `wait` seconds ago."""
        start = perf_counter()
        if start - self._drawn < self.wait:
            return
        draw()
        self._drawn = perf_counter()
        self.wait = max(DRAW_EVERY, (self._drawn - start) / DRAW_SHARE)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
