"""Velocity: how well tau delta tells where a stage's weights were, by D."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from .. import tasks
from ..checks import whole
from ..figures import Figure, course, moves, placeholder
from ..plan import theory
from ..plan.velocity import Floats, missed
from ..studies.past import noting, policies
from ..trainer.run import Run
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

STEP = 200
NETWORK = "mlp"  # of digits: every stage has weights


@dataclass(frozen=True)
class Courses:
    """A run, and of each stage the courses of some weights, shape (versions, weights)."""

    run: Run
    stages: tuple[Floats, ...] = ()

    def tau(self, stage: int) -> int:
        """The delay of a stage, from 1: one microbatch a minibatch."""
        return 2 * (len(self.stages) - stage) + 1

    def missed(self, stage: int, decay: float) -> float:
        """plan.velocity.missed at a stage, from 1."""
        tau = self.tau(stage)
        return missed(self.stages[stage - 1], tau, theory.gamma(decay, tau))


def _close(panel: Any) -> bool:
    found, (stage, decay, _) = panel.found, panel.view_values
    return bool(found and found.stages and stage == 1) and found.missed(stage, decay) < 0.6


GOAL = Goal("At stage 1, find a D for which τδ misses the true move by less than 60 %.", _close)


class Velocity(Panel):
    """Train digits with T2 (D = e^-2) and keep the courses of some weights; then compare the true
    move w[t] - w[t-tau] with the estimate tau delta for any D, after the fact.

    steps   of the run
    rate    None takes the task's own
    stage, decay, weight   which stage (from 1), D, and weight are drawn: sliders, which redraw at
            once
    goal    what a learner should bring about, or None

    `result()` gives the Courses.
    """

    def __init__(
        self,
        steps: int = STEP,
        rate: float | None = None,
        seed: int = 0,
        stage: int = 1,
        decay: float = 0.5,
        weight: int = 0,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        self.found: Courses | None = None
        setting = tasks.get("digits").setting(NETWORK)
        given = {"steps": steps, "rate": rate, "seed": seed}
        shown = {"stage": stage, "decay": decay, "weight": weight}
        controls = {
            "steps": c.whole("steps", steps, least=1),
            "rate": c.log_number("rate", setting.rate if rate is None else rate, -3, 0),
            "seed": c.whole("seed", seed),
        }
        views = {
            "stage": c.count("stage", stage, setting.stages, follow=True),
            "decay": c.decimal("D", decay, 0.01, 0.99, step=0.01, follow=True),
            "weight": c.count("weight", weight, 199, least=0, follow=True),
        }
        text = words.text_form(type(self).__name__, given | shown, "two figures")
        super().__init__(controls, text, goal, views)

    @property
    def view_values(self) -> tuple[int, float, int]:
        """Stage, D and weight, as the sliders stand."""
        return tuple(view.value for view in self.views.values())

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        for self.found, done in noted(**settings):
            if self.stopping:
                self.found.run.cancel()
            yield done

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {} if live else figures(self.found, *self.view_values)

    def outcome(self) -> tuple[str, str]:
        if self.found is None:
            return "ready", "Ready."
        run = self.found.run
        how = f"{run.status.capitalize()}: step {run.steps} of {run.config['steps']}."
        return run.status, f"{how} {self.reading()}"

    def reading(self) -> str:
        if self.found is None or not self.found.stages:
            return ""
        stage, decay, _ = self.view_values
        tau, share = self.found.tau(stage), self.found.missed(stage, decay)
        said = (
            f"Stage {stage}, delay {tau}, D = {decay:.2g}, gamma = {theory.gamma(decay, tau):.3f}"
        )
        if math.isnan(share):
            return f"{said}: too few steps to say what tau delta misses."
        return f"{said}: tau delta misses the move by {100 * share:.0f} %."

    def value(self) -> Courses | None:
        return self.found


def velocity(
    steps: int = STEP,
    rate: float | None = None,
    seed: int = 0,
    stage: int = 1,
    decay: float = 0.5,
    weight: int = 0,
) -> Shown:
    """What Velocity shows after one Run, without widgets; `.value` are the Courses."""
    found = None
    for found, _ in noted(steps, rate, seed):  # noqa: B007
        pass
    return Shown(figures(found, stage, decay, weight), found)


def noted(steps: int, rate: float | None, seed: int) -> Iterator[tuple[Courses, float]]:
    """The run so far and how much is done, in chunks; at the end with its courses."""
    job = noting(NETWORK, "T2", whole("steps", steps, 1), rate, math.exp(-2), seed)
    for run in job.chunks():
        ended = run.status in ("done", "cancelled")
        courses = [policy.course() for (policy,) in policies(job)] if ended else []
        yield Courses(run, tuple(courses)), run.steps / job.steps


def figures(found: Courses | None, stage: int, decay: float, weight: int) -> dict[str, Figure]:
    """Moves beside estimates, and one weight's course."""
    if found is None or not found.stages:
        return {
            "moves": placeholder("True and estimated moves appear here", 160),
            "course": placeholder("The course of one weight appears here", 160),
        }
    weights, tau = found.stages[stage - 1], found.tau(stage)
    one = weights[:, weight % weights.shape[1]]
    return {"moves": moves(weights, tau, decay), "course": course(one, tau, decay)}
