"""Carrying out a run: in chunks, with an orderly end however it comes."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Protocol

import torch

from ..ctrl_c import undisturbed
from ..errors import PipelineError, ScheduleError
from .fit import Fit
from .run import Run

DRAIN_SECONDS = 1.0  # a stopped run finishes what is in flight if that takes no longer


class Engine(Protocol):
    """What carries out a fit's operations, somewhere.

    It adds to the run's losses and trace as it goes.
    """

    def advance(self, until: float) -> bool:
        """Work until time.perf_counter() says `until`, or the run is asked to stop; True when
        nothing is left to do."""

    def scores(self) -> list[tuple[int, dict[str, float]]]:
        """The evaluations since the last call: (steps done, {name: value})."""

    def diverged(self) -> tuple[int, str] | None:
        """(step, what) once a loss was not finite or above the limit."""

    def wind_down(self) -> None:
        """Start no new minibatch; what is in flight is finished."""

    def finish(self, drained: bool) -> str:
        """The run has ended: leave the trainer's stages, their weights and versions consistent,
        and fill in what the run counted.  drained: is nothing in flight?  Returns what became of
        the weights if something was."""

    def close(self) -> None:
        """Leave nothing behind, whatever happened.  Called last, also after an error."""


class Session:
    """One run of a trainer.

    A run that is stopped (run.cancel(), Ctrl-C, leaving the loop) starts no new minibatch and
    drains, so that it is exactly a shorter run.  If that takes more than DRAIN_SECONDS, what is in
    flight is dropped, and the run's note says what the weights are.
    """

    def __init__(self, fit: Fit, engine: Engine) -> None:
        self.trainer, self.run, self.engine = fit.trainer, fit.run, engine
        self._plan = fit.plan
        self._drain_by: float | None = None

    def chunks(self, seconds: float) -> Generator[Run, None, None]:
        """Compute for about `seconds`, yield the run, until it has ended."""
        self.trainer.running = True
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
            with interrupts(self.run):
                ended = self._advance(start + seconds)
        except BaseException as error:
            error.run = self.run  # type: ignore[attr-defined]
            status = "cancelled" if isinstance(error, KeyboardInterrupt) else "failed"
            with suppress(Exception):  # summing up must not hide what went wrong
                kept = self._end(status, str(error), drained=False)
                if isinstance(error, PipelineError) and not isinstance(error, ScheduleError):
                    error.args = (f"{error}; {kept}",)
            raise
        finally:
            self.run.seconds += perf_counter() - start
        self._collect()
        if ended:
            self._end("cancelled" if self.run.stop else "done", "", drained=True)
        elif self._drain_by is not None and perf_counter() > self._drain_by:
            self._end("cancelled", "", drained=False)

    def _advance(self, until: float) -> bool:
        """True when the engine has nothing left to do."""
        if self.run.stop and self._drain_by is None:
            self.engine.wind_down()
            self._drain_by = perf_counter() + DRAIN_SECONDS
        return self.engine.advance(min(until, self._drain_by or until))

    def _collect(self) -> None:
        for step, scores in self.engine.scores():
            for name, value in scores.items():
                self.run.metrics.setdefault(name, []).append((step, value))

    def _end(self, status: str, note: str, drained: bool) -> str:
        """Returns what became of the weights if something was in flight."""
        with undisturbed():
            return self._ended(status, note, drained)

    def _ended(self, status: str, note: str, drained: bool) -> str:
        run, trainer = self.run, self.trainer
        trainer.running = False
        self._collect()
        try:
            kept = self.engine.finish(drained)
        finally:
            self.engine.close()
        if broken := self.engine.diverged():
            step, what = broken
            run.diverged = (step, self._first_broken(), what)
        run.status = "diverged" if run.diverged else status
        notes = [f"stopped after {run.steps} steps", note, kept]
        run.note = "" if run.status == "done" else "; ".join(filter(None, notes))
        first = trainer.step
        trainer.step = min(stage.version for stage in trainer.stages)
        trainer.used += trainer.step - first
        run.staleness = self._plan.staleness(run.trace.reads)
        for stage in trainer.stages:
            stage.reset(trainer.step)
        return kept

    def _first_broken(self) -> int:
        """The first stage whose weights are not finite; the last stage, where the loss is, if
        all are."""
        stages = self.trainer.stages
        broken = (s.index for s in stages for f in s.flats if not torch.isfinite(f.weights).all())
        return next(broken, stages[-1].index)


def last(chunks: Iterator[Run]) -> Run:
    """Carry a run to its end."""
    return deque(chunks, maxlen=1)[0]


@contextmanager
def interrupts(run: Run) -> Iterator[None]:
    """The first Ctrl-C stops the run between two operations; a second one interrupts at once.

    An interrupt inside an operation could leave a stage with another version's weights.
    """
    if run.stop or threading.current_thread() is not threading.main_thread():
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
