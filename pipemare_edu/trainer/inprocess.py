"""The engine that runs every stage in this process."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.clock import Event
from .checkpoint import collect
from .fit import Fit
from .interpreter import Interpreter
from .memory import counted


class InProcess:
    """Runs the operations of all stages in turn.  See session.Engine."""

    def __init__(self, fit: Fit, interpreter: Interpreter) -> None:
        self.fit, self.interpreter = fit, interpreter
        trainer = fit.trainer
        interpreter.losses = fit.run.losses
        for stage in trainer.stages:
            stage.reset(trainer.step, fit.run.trace.full_from)
        self._events = self._all_events()

    def _all_events(self) -> Iterator[Event]:
        fit, trainer = self.fit, self.fit.trainer
        for span in fit.spans:
            stages = range(len(trainer.stages))
            yield from self.interpreter.events([fit.operations(i, span) for i in stages])
            if self.interpreter.end <= span.stop:
                return
            fit.drained(span.stop, lambda: collect(trainer.stages, trainer.optimizers))

    def advance(self, until: float) -> bool:
        interpreter, run = self.interpreter, self.fit.run
        record, until, stopping = run.trace.record, until - interpreter.began, run.stop
        with self.fit.sandbox:
            for event in self._events:
                record(event)
                if event.end > until or run.stop is not stopping:
                    break
            else:
                return True
        return False

    def scores(self) -> list[tuple[int, dict[str, float]]]:
        scores, self.interpreter.scores = self.interpreter.scores, []
        return scores

    def diverged(self) -> tuple[int, str] | None:
        return self.interpreter.diverged

    def wind_down(self) -> None:
        self.interpreter.end_at(self.interpreter.started)

    def finish(self, drained: bool) -> str:
        run, trainer = self.fit.run, self.fit.trainer
        run.trace.reads = [stage.reads for stage in trainer.stages]
        run.memory = [
            counted(s, o) for s, o in zip(trainer.stages, trainer.optimizers, strict=True)
        ]
        # Updates are joint, so the weights are those after the last one, at every stage.
        return "" if drained else "what was in flight was dropped"

    def close(self) -> None:
        """Nothing is outside this process."""
