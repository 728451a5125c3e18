"""DiscrepancyMap: which rates are stable when the backward reads other weights."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

from ..figures import Figure
from ..figures import discrepancy_map as figure_of
from ..figures.discrepancy_map import READ_OUT, Reads, agreement, edge_at, edge_of, message
from ..figures.stability import Mark
from ..plan.theory import iterates
from ..studies.one_weight import settled, trial_steps
from ..studies.two_reads import train
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

DELAYS, MULTIPLES = (1, 4, 10, 18), (0.8, 1.25)  # of the edge: where the runs are
T2 = [
    ("off", 0.0),
    ("D = 0.01", 0.01),
    ("D = 0.1", 0.1),
    ("D = e⁻² = 0.135", math.exp(-2)),
    ("D = 0.5", 0.5),
    ("theory's γ*", "theory"),
]


def _mended(panel: DiscrepancyMap) -> bool:
    reads = panel.reads
    wide = reads.tau_bkwd == 0 and reads.discrepancy == 10
    return wide and edge_at(reads) > 0.07


GOAL = Goal(
    f"With Δ = 10 and τ_bkwd = 0, have the edge at delay {READ_OUT} beyond a rate of 0.07.", _mended
)


class DiscrepancyMap(Panel):
    """The (rate, delay) map of the scalar quadratic whose backward reads other weights.  Controls
    redraw at once; Run trains one weight on both sides of the edge and marks the runs.

    discrepancy  Delta in units of the curvature, 0 to 10
    tau_bkwd     the delay of the backward weights, 0 to 10
    t2           T2's D (0.01, 0.1, e^-2 or 0.5), "theory" for gamma*, 0 for none
    goal         what a learner should bring about, or None

    Runs are of the real trainer where tau_bkwd is 0, as in PipeMare; otherwise of the recurrence.
    `result()` gives the marks.
    """

    def __init__(
        self,
        discrepancy: float = 5.0,
        tau_bkwd: int = 0,
        t2: float | str = 0.0,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        self.marks: list[Mark] = []
        self.made: Reads | None = None  # what `marks` belong to
        controls = {
            "discrepancy": c.decimal("Δ / curvature", discrepancy, 0, 10, step=1, follow=True),
            "tau_bkwd": c.count("τ_bkwd", tau_bkwd, most=10, least=0, follow=True),
            "t2": c.choice("T2", T2, t2),
        }
        given = {"discrepancy": discrepancy, "tau_bkwd": tau_bkwd, "t2": t2}
        text = words.text_form(type(self).__name__, given, "a map")
        super().__init__(controls, text, goal)
        for control in self.controls.values():
            self.follow(control)
        self.say(self.reading())

    @property
    def reads(self) -> Reads:
        """What the controls stand at."""
        return Reads(**self.settings)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        self.made, self.marks = Reads(**settings), []
        for done in _runs(self.made, self.marks):
            if self.stopping:
                return
            yield done

    def draw(self, live: bool = False) -> dict[str, Figure]:
        marks = self.marks if self.reads == self.made else []
        return {"map": figure_of(*self.reads, marks)}

    def outcome(self) -> tuple[str, str]:
        if self.made is None:
            return "ready", self.reading()
        right, every = agreement(self.made, self.marks)
        by = "the real trainer" if self.made.tau_bkwd == 0 else "the recurrence"
        said = f"{right} of {every} runs of {by} are on the side of the edge that theory says."
        return ("cancelled", f"Cancelled: {said}") if self.stopping else ("done", said)

    def reading(self) -> str:
        return f"{message(self.reads)}."

    def value(self) -> list[Mark]:
        return self.marks


def discrepancy_map(
    discrepancy: float = 5.0, tau_bkwd: int = 0, t2: float | str = 0.0, run: bool = False
) -> Shown:
    """What DiscrepancyMap shows, without widgets: with run=True after one Run, whose marks are
    `.value`; else before."""
    reads, marks = Reads(discrepancy, tau_bkwd, t2), list[Mark]()
    for _ in _runs(reads, marks) if run else ():
        pass
    return Shown({"map": figure_of(*reads, marks)}, marks)


def _runs(reads: Reads, marks: list[Mark]) -> Iterator[float]:
    """Train at every point of the grid; appends to `marks`, yields how much is done."""
    edge = dict(zip(reads.delays.tolist(), edge_of(reads).tolist(), strict=True))
    points = [(tau, m) for tau in DELAYS if tau in edge for m in MULTIPLES]
    for n, (tau, multiple) in enumerate(points):
        rate, weights = multiple * edge[tau], list[float]()
        for share in _train(reads, tau, rate, weights):
            yield (n + share) / len(points)
        said = f"After {len(weights) - 1} steps w is {weights[-1]:.2g}"
        marks.append(Mark(rate, tau, settled(weights), said, live=True))
        yield (n + 1) / len(points)


def _train(reads: Reads, tau: int, rate: float, weights: list[float]) -> Iterator[float]:
    """One run, into `weights`; yields how much of it is done."""
    steps = trial_steps(tau)
    if reads.tau_bkwd:
        weights[:] = iterates(reads.at(tau), rate, steps).tolist()
        yield 1.0
        return
    for run in train(weights, rate, tau, reads.discrepancy, reads.t2, steps):
        yield run.steps / steps
