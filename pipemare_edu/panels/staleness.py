"""MeasuredStaleness: tau of every stage, measured in a real run, beside the formula."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..figures import Figure, staleness_bars
from ..plan.clock import simulate
from ..plan.schedules import depths
from ..plan.schedules import schedule as lists_of
from ..trainer.run import Delays, Run, Staleness
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown
from .stamped import filling, job

SCHEDULES = ("lockstep", "async-1f1b")
MORE = 20  # steps with a full pipe, unless asked otherwise


def _half_as_old(panel: Any) -> bool:
    run = panel.last
    measured = run is not None and run.status == "done" and len(run.staleness.forward) == 8
    return measured and 0 < run.staleness.forward[0].mean < 2


GOAL = Goal(
    "With 8 stages, bring the mean staleness of stage 1 below 2 updates, and Run to measure it.",
    _half_as_old,
)


class MeasuredStaleness(Panel):
    """Mean staleness per stage: the formula D_i / N, what the schedule's lists imply, and what the
    version stamps of a real run measure.

    schedule      "lockstep", the paper's: D_i = 2(P-i)+1; or "async-1f1b": D_i = P-i
    stages, microbatches   P and N
    steps         of the run; by default 20 with a full pipe

    The formula follows the controls at once; Run measures.  `result()` is the last run.
    """

    def __init__(
        self,
        schedule: str = "lockstep",
        stages: int = 4,
        microbatches: int = 1,
        steps: int | None = None,
        goal: Goal | None = GOAL,
    ) -> None:
        given = {"schedule": schedule, "stages": stages, "microbatches": microbatches}
        warm_up()
        self.steps = steps
        self.last: Run | None = None
        self._of: dict[str, Any] = dict(given)  # the settings that are drawn
        controls = {
            "schedule": c.choice("schedule", SCHEDULES, schedule),
            "stages": c.count("stages", stages, most=12),
            "microbatches": c.count("microbatches", microbatches, most=8),
        }
        text = words.text_form(type(self).__name__, given | {"steps": steps})
        super().__init__(controls, text, goal)
        for control in self.controls.values():
            self.follow(control, self._changed)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        self._of = settings
        training = job(**settings, steps=steps_of(self.steps, **settings))
        for run in training.chunks():
            self.last = run
            if self.stopping:
                run.cancel()
            yield run.steps / training.steps

    def draw(self, live: bool = False) -> dict[str, Figure]:
        ended = self.last if self.last and self.last.status != "running" else None
        return {} if live else {"staleness": bars(ended, **self._of)}

    def outcome(self) -> tuple[str, str]:
        run = self.last
        if run is None:
            return "ready", "On paper. Run measures it in real training."
        return run.status, f"{run.status.capitalize()}: {run.steps} steps of real training."

    def reading(self) -> str:
        return self.outcome()[1]

    def value(self) -> Run | None:
        return self.last

    def _changed(self) -> None:
        """A control was moved: what was measured is of another pipeline."""
        if not self.busy:
            self.last, self._of = None, self.settings


def measured_staleness(
    schedule: str = "lockstep", stages: int = 4, microbatches: int = 1, steps: int | None = None
) -> Shown:
    """What MeasuredStaleness shows after one Run, without widgets; `.value` is the run."""
    run = job(schedule, stages, microbatches, steps_of(steps, schedule, stages, microbatches)).fit()
    return Shown({"staleness": bars(run, schedule, stages, microbatches)}, run)


def steps_of(steps: int | None, schedule: str, stages: int, microbatches: int) -> int:
    return filling(schedule, stages, microbatches) + MORE if steps is None else steps


def bars(run: Run | None, schedule: str, stages: int, microbatches: int) -> Figure:
    """The bars of a run, or without one those that its schedule implies, beside the formula."""
    formula = [d / microbatches for d in depths(schedule, stages)]
    if run is not None and run.staleness.forward:
        full = run.plan is None or run.steps > run.plan.full
        early = None if full else "The run ended before its pipe was full"
        return staleness_bars(run.staleness, formula if full else None, title=early)
    return staleness_bars(implied(schedule, stages, microbatches), formula, measured=False)


def implied(schedule: str, stages: int, microbatches: int) -> Staleness:
    """The staleness of a full pipe, counted from the operation lists."""
    full = filling(schedule, stages, microbatches)
    timeline = simulate(lists_of(schedule, stages, microbatches, full + 2))
    found = [[d.forward for d in row if d.step >= full] for row in timeline.staleness]
    return Staleness(
        tuple(Delays(0.0, 0, sum(taus) / len(taus), max(taus)) for taus in found),
    )
