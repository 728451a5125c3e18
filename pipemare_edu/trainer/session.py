"""Carrying out a run: in chunks, with an orderly end however it comes."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from .interpreter import Diverged, Interpreter
from .memory import counted
from .randomness import Sandbox
from .run import Run

if TYPE_CHECKING:
    from .trainer import Trainer

DRAIN_SECONDS = 1.0  # a stopped run finishes what is in flight if that takes no longer


class Session:
    """One run of a trainer.

    A run that is stopped (run.cancel(), Ctrl-C, leaving the loop) starts no new minibatch and
    drains, so that it is exactly a shorter run.  If that takes more than DRAIN_SECONDS, what is in
    flight is dropped: the weights are those after the last update, which every stage took.
    """

    def __init__(
        self, trainer: Trainer, interpreter: Interpreter, run: Run, sandbox: Sandbox
    ) -> None:
        self.trainer, self.interpreter, self.run, self.sandbox = trainer, interpreter, run, sandbox
        self._events = interpreter.events()
        self._drain_by: float | None = None

    def chunks(self, seconds: float) -> Generator[Run, None, None]:
        """Compute for about `seconds`, yield the run, until it has ended."""
        self.trainer.running = True
        for stage in self.trainer.stages:
            stage.reset(self.trainer.step, self.run.trace.full_from)
        try:
            while self.run.status == "running":
                self._chunk(seconds)
                yield self.run
        finally:
            if self.run.status == "running":  # the caller left the loop
                self.run.cancel()
                while self.run.status == "running":
                    self._chunk(DRAIN_SECONDS)

    def _chunk(self, seconds: float) -> None:
        start = perf_counter()
        try:
            with interrupts(self.run), self.sandbox:
                ended = self._advance(start + seconds)
        except BaseException as error:
            error.run = self.run  # type: ignore[attr-defined]
            with suppress(Exception):  # summing up must not hide what went wrong
                self._end("failed", str(error))
            raise
        finally:
            self.run.seconds += perf_counter() - start
        self._collect()
        if ended:
            self._end("cancelled" if self.run.stop else "done", "")
        elif self._drain_by is not None and perf_counter() > self._drain_by:
            self._end("cancelled", "what was in flight was dropped")

    def _advance(self, until: float) -> bool:
        """Run operations until the time is up; True when none is left."""
        record, run, until = self.run.trace.record, self.run, until - self.interpreter.began
        if run.stop and self._drain_by is None:
            self.interpreter.end_at(self.interpreter.started)
            self._drain_by = perf_counter() + DRAIN_SECONDS
        draining = self._drain_by is not None
        try:
            for event in self._events:
                record(event)
                if event.end > until or (run.stop and not draining):
                    return False
        except Diverged as end:
            step, what = end.args
            run.diverged = (step, self._first_broken(), what)
        return True

    def _first_broken(self) -> int:
        """The first stage whose weights are not finite; the last stage, where the loss is, if
        all are."""
        stages = self.trainer.stages
        broken = (s.index for s in stages for f in s.flats if not torch.isfinite(f.weights).all())
        return next(broken, stages[-1].index)

    def _collect(self) -> None:
        for step, scores in self.interpreter.scores:
            for name, value in scores.items():
                self.run.metrics.setdefault(name, []).append((step, value))
        self.interpreter.scores.clear()

    def _end(self, status: str, note: str) -> None:
        run, trainer = self.run, self.trainer
        trainer.running = False
        self._collect()
        run.status = "diverged" if run.diverged else status
        run.note = f"stopped after {run.steps} steps" + (f"; {note}" if note else "")
        if run.status == "done":
            run.note = ""
        first = trainer.step
        trainer.step = min(stage.version for stage in trainer.stages)
        trainer.used += trainer.step - first
        assert run.plan is not None
        run.trace.reads = [stage.reads for stage in trainer.stages]
        run.staleness = run.plan.staleness(run.trace.reads)
        run.memory = [
            counted(s, o) for s, o in zip(trainer.stages, trainer.optimizers, strict=True)
        ]
        for stage in trainer.stages:
            stage.reset(trainer.step)


def last(chunks: Iterator[Run]) -> Run:
    """Carry a run to its end."""
    return deque(chunks, maxlen=1)[0]


@contextmanager
def interrupts(run: Run) -> Iterator[None]:
    """The first Ctrl-C stops the run between two operations; a second one interrupts at once.

    An interrupt inside an operation could leave a stage with another version's weights.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        run.cancel()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
