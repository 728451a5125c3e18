"""The engine that runs stages in this process: all of them, in turn."""

from __future__ import annotations

from .blueprint import Built
from .checkpoint import collect
from .fit import Fit
from .interpreter import Interpreter
from .memory import counted


class InProcess:
    """Runs the operations of the `built` stages in turn.  See session.Engine."""

    def __init__(self, fit: Fit, built: Built, interpreter: Interpreter) -> None:
        self.fit, self.built, self.interpreter = fit, built, interpreter
        interpreter.losses = fit.run.losses
        for stage in built[0]:
            stage.reset(fit.plan.first, fit.run.trace.full_from)
        self._events = interpreter.follow(fit.plan, fit.last, self.drained)
        self._ended = False  # all that was begun is finished

    def drained(self, step: int) -> None:
        """Nothing is in flight after `step` steps."""
        self.fit.drained(step, lambda: collect(*self.built))

    def advance(self, until: float) -> bool:
        interpreter, run = self.interpreter, self.fit.run
        record, until, stopping = run.trace.record, until - interpreter.began, run.stop
        with self.fit.sandbox:
            for event in self._events:
                record(event)
                if event.end > until or run.stop is not stopping:
                    return False
        self._ended = True
        if interpreter.broken is not None:
            raise interpreter.broken
        return True

    def scores(self) -> list[tuple[int, dict[str, float]]]:
        scores, self.interpreter.scores = self.interpreter.scores, []
        return scores

    def diverged(self) -> tuple[int, str] | None:
        return self.interpreter.diverged

    def wind_down(self) -> None:
        self.interpreter.end_at(self.interpreter.started)

    def finish(self, drained: bool) -> str:
        run, (stages, optimizers) = self.fit.run, self.built
        run.trace.reads = [stage.reads for stage in stages]
        run.memory = [counted(s, o) for s, o in zip(stages, optimizers, strict=True)]
        if drained:
            return ""
        # Updates are joint, so the weights are those after the last one, at every stage.
        return self.fit.left(f"after step {stages[0].version}", dropped=not self._ended)

    def close(self) -> None:
        """Nothing is outside this process."""
