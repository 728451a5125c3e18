"""Roots: one point of the stability map, its roots and its iterate move together."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ..figures import Figure
from ..figures import roots as figure_of
from ..figures.roots import STEPS, off_the_line
from ..figures.stability import LONGEST
from ..plan.theory import Quadratic, iterates, spectral_radius
from ..studies.one_weight import train
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

CLOSE, LONG = 0.002, 10  # what the goal asks for


def _on_the_edge(panel: Roots) -> bool:
    made = panel.made
    if made is None or made["tau"] < LONG or len(panel.trained) <= STEPS:
        return False
    polynomial = Quadratic(made["tau"], momentum=made["momentum"]).polynomial(made["rate"])
    return abs(spectral_radius(polynomial) - 1) < CLOSE


GOAL = Goal(
    f"At a delay of {LONG} or more, bring the largest root to the circle, to within {CLOSE}; then "
    "press Run, and a real trainer takes the same steps.",
    _on_the_edge,
)


class Roots(Panel):
    """Rate, delay and momentum of the scalar quadratic (curvature 1); the figure follows them.

    rate: 0.005 to 2.5.  tau: 1 to 20 steps.  momentum: 0 to 0.95.  Run trains one weight with the
    real trainer at these settings: dots over the line.  `result()` gives w after every step.
    """

    def __init__(
        self, rate: float = 0.25, tau: int = 4, momentum: float = 0.0, goal: Goal | None = GOAL
    ) -> None:
        warm_up()
        self.trained: list[float] = []
        self.made: dict[str, Any] | None = None  # the settings that `trained` belongs to
        controls = {
            "rate": c.log_number("rate", rate, low=-2.3, high=0.4, step=0.01, follow=True),
            "tau": c.count("delay", tau, most=LONGEST, follow=True),
            "momentum": c.decimal("momentum", momentum, 0.0, 0.95, step=0.05, follow=True),
        }
        given = {"rate": rate, "tau": tau, "momentum": momentum}
        super().__init__(controls, words.text_form("Roots", given), goal)
        for control in self.controls.values():
            self.follow(control)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        self.made = settings
        for run in train(self.trained, **settings, steps=STEPS):
            if self.stopping:
                run.cancel()
            yield run.steps / STEPS

    def draw(self, live: bool = False) -> dict[str, Figure]:
        now = self.settings
        return {"roots": figure_of(**now, trained=self.trained if now == self.made else ())}

    def outcome(self) -> tuple[str, str]:
        if self.stopping or self.made is None:
            return super().outcome()
        made = self.made
        w = iterates(Quadratic(made["tau"], momentum=made["momentum"]), made["rate"], STEPS)
        off = off_the_line(w, self.trained)
        return "done", f"{len(self.trained) - 1} real steps, off the line by {off:.0e} of its size."

    def value(self) -> np.ndarray:
        return np.array(self.trained)


def roots(rate: float = 0.25, tau: int = 4, momentum: float = 0.0) -> Shown:
    """What Roots shows after one Run, without widgets; `.value` is w after every step."""
    trained: list[float] = []
    for _ in train(trained, rate, tau, momentum, STEPS):
        pass
    return Shown({"roots": figure_of(rate, tau, momentum, trained)}, np.array(trained))
