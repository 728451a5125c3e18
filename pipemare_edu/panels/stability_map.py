"""StabilityMap: which rates are stable at which delay, checked by real runs of one weight."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from ..figures import Figure
from ..figures import stability_map as figure_of
from ..figures.stability import Mark, agreement
from ..plan.noise import spread_map
from ..plan.theory import Quadratic, threshold
from ..studies.one_weight import settled, train, trial_steps
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

DELAYS, MULTIPLES = (1, 4, 10, 18), (0.8, 1.25)  # of the edge: where the runs are
MOMENTA = (0.0, 0.5, 0.9)
NOISE = 0.1  # standard deviation, when it is on


def _with_noise(panel: StabilityMap) -> bool:
    full = len(panel.marks) == len(DELAYS) * len(MULTIPLES)
    return full and bool(panel.made and panel.made["noise"] == "on")


GOAL = Goal("Switch the noise on, run, and see whether the edge moves.", _with_noise)


class StabilityMap(Panel):
    """The (rate, delay) map of the scalar quadratic with its analytic edge.

    momentum: 0, 0.5 or 0.9.  noise: whether every gradient carries noise; the colours then say how
    far the weight wanders.  Run trains one weight at points a fifth below and a quarter above the
    edge, with the real trainer, and marks them.  `result()` gives the marks.
    """

    def __init__(
        self, momentum: float = 0.0, noise: bool = False, goal: Goal | None = GOAL
    ) -> None:
        warm_up()
        self.marks: list[Mark] = []
        self.made: dict[str, Any] | None = None  # the settings that `marks` belong to
        controls = {
            "momentum": c.one_of("momentum", MOMENTA, momentum),
            "noise": c.choice("gradient noise", ["off", "on"], "on" if noise else "off"),
        }
        given = {"momentum": momentum, "noise": noise}
        super().__init__(controls, words.text_form("StabilityMap", given, "a map"), goal)
        for control in self.controls.values():
            self.follow(control)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        self.made, self.marks = settings, []
        for done in _runs(settings["momentum"], _sigma(settings["noise"]), self.marks):
            if self.stopping:
                return
            yield done

    def draw(self, live: bool = False) -> dict[str, Figure]:
        now = self.settings
        marks = self.marks if now == self.made else []
        return {"map": figure_of(now["momentum"], _sigma(now["noise"]), marks)}

    def outcome(self) -> tuple[str, str]:
        if self.made is None:
            return super().outcome()
        right, every = agreement(self.made["momentum"], self.marks)
        said = f"{right} of {every} runs are on the side of the edge that theory says."
        return ("cancelled", f"Cancelled: {said}") if self.stopping else ("done", said)

    def value(self) -> list[Mark]:
        return self.marks


def stability_map(momentum: float = 0.0, noise: bool = False) -> Shown:
    """What StabilityMap shows after one Run, without widgets; `.value` are the marks."""
    marks: list[Mark] = []
    sigma = NOISE if noise else 0.0
    for _ in _runs(momentum, sigma, marks):
        pass
    return Shown({"map": figure_of(momentum, sigma, marks)}, marks)


def _sigma(noise: str) -> float:
    return NOISE if noise == "on" else 0.0


def _runs(momentum: float, sigma: float, marks: list[Mark]) -> Iterator[float]:
    """Train at every point of the grid; appends to `marks`, yields how much is done."""
    points = [(tau, multiple) for tau in DELAYS for multiple in MULTIPLES]
    for n, (tau, multiple) in enumerate(points):
        case = Quadratic(tau, momentum=momentum)
        rate, steps = multiple * threshold(case), trial_steps(tau, momentum)
        weights: list[float] = []
        for run in train(weights, rate, tau, momentum, steps, sigma):
            yield (n + run.steps / steps) / len(points)
        said = _said(case, rate, weights, sigma)
        marks.append(Mark(rate, tau, settled(weights, sigma), said, live=True))
        yield (n + 1) / len(points)


def _said(case: Quadratic, rate: float, weights: list[float], sigma: float) -> str:
    if not sigma:
        return f"After {len(weights) - 1} steps w is {weights[-1]:.2g}"
    wandered = float(np.std(weights[len(weights) // 2 :])) / sigma
    implied = float(spread_map(case, [rate], [case.tau_fwd])[0, 0])
    theory = f"{implied:.2g} in theory" if np.isfinite(implied) else "without end in theory"
    return f"w wandered {wandered:.2g} times the noise, {theory}"
