"""GradientDiscrepancy: how far a real network's gradients are off, stage by stage."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import tasks
from ..checks import whole
from ..figures import Figure, discrepancy_bars, placeholder
from ..studies.past import FIXES, Discrepancy, discrepancies, noting
from ..trainer.run import Run
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

STEP = 100
RUNNING = 0.9  # of the progress bar; comparing gradients is the rest


@dataclass
class Found:
    """A run, and the discrepancies of its stages once it has ended."""

    run: Run
    stages: list[Discrepancy] = field(default_factory=list)

    @property
    def shares(self) -> tuple[list[float], list[float]]:
        """Per stage, the discrepancy as a share of the gradient: with the newest weights, and with
        T2's estimate."""
        newest, t2 = zip(*(stage.shares for stage in self.stages), strict=True)
        return list(newest), list(t2)


def _gentle(panel: Any) -> bool:
    found = panel.found
    return bool(found and found.stages) and max(found.shares[0]) < 0.2


GOAL = Goal(
    "Find a run in which the newest weights put no stage's gradient off by more than 20 %.", _gentle
)


class GradientDiscrepancy(Panel):
    """Train digits asynchronously up to a step, then compare three gradients of each stage: the
    backward reading what its forward read, the newest weights, and T2's estimate.

    network  one of the digits task's
    fixes    of the run: "none", "T1", "T2" or "T1+T2"
    step     after which the gradients are compared
    rate     None takes the task's own
    decay    T2's D
    goal     what a learner should bring about, or None

    One microbatch a minibatch, so tau is 2(P-i)+1.  `result()` gives the last Found: the run and
    each stage's discrepancies, none if the run did not get there.
    """

    def __init__(
        self,
        network: str = "mlp",
        fixes: str = "T2",
        step: int = STEP,
        rate: float | None = None,
        decay: float = math.exp(-2),
        seed: int = 0,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        self.found: Found | None = None
        setting = tasks.get("digits").setting(network)
        given = {"network": network, "fixes": fixes, "step": step, "rate": rate, "decay": decay}
        controls = {
            "network": c.choice("network", list(tasks.get("digits").settings), network),
            "fixes": c.choice("run with", FIXES, fixes),
            "step": c.whole("step", step, least=1),
            "rate": c.log_number("rate", setting.rate if rate is None else rate, -3, 0),
            "decay": c.decimal("D", decay, 0.01, 0.99, step=0.01),
            "seed": c.whole("seed", seed),
        }
        text = words.text_form(type(self).__name__, given | {"seed": seed})
        super().__init__(controls, text, goal)
        controls["network"].observe(self.guarded(self._network_changed), "value")

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        for found, done in measuring(**settings):
            self.found = found
            if self.stopping:
                found.run.cancel()
            yield done

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {} if live else figures(self.found)

    def outcome(self) -> tuple[str, str]:
        if self.found is None:
            return "ready", "Ready."
        return self.found.run.status, tell(self.found)

    def value(self) -> Found | None:
        return self.found

    def _network_changed(self, _: Any) -> None:
        setting = tasks.get("digits").setting(self.controls["network"].value)
        self.controls["rate"].value = setting.rate


def gradient_discrepancy(
    network: str = "mlp",
    fixes: str = "T2",
    step: int = STEP,
    rate: float | None = None,
    decay: float = math.exp(-2),
    seed: int = 0,
) -> Shown:
    """What GradientDiscrepancy shows after one Run, without widgets; `.value` is the Found."""
    found = None
    for found, _ in measuring(network, fixes, step, rate, decay, seed):  # noqa: B007
        pass
    return Shown(figures(found), found)


def measuring(
    network: str, fixes: str, step: int, rate: float | None, decay: float, seed: int
) -> Iterator[tuple[Found, float]]:
    """The run and what was found so far, and how much is done, in chunks."""
    job = noting(network, fixes, whole("step", step, 1), rate, decay, seed)
    for run in job.chunks():
        found = Found(run)
        yield found, RUNNING * run.steps / job.steps
    if found.run.status == "done":
        for found.stages in discrepancies(job):
            yield found, RUNNING


def figures(found: Found | None) -> dict[str, Figure]:
    """The discrepancies of each stage, or what there is to say instead."""
    if found is None:
        return {"bars": placeholder("The discrepancy of each stage appears here", 160)}
    if not found.stages:
        return {"bars": placeholder(tell(found), 160)}
    return {"bars": discrepancy_bars(*found.shares, [stage.size for stage in found.stages])}


def tell(found: Found) -> str:
    """How the run and the comparison stand, in a sentence."""
    run = found.run
    if found.stages:
        newest, t2 = (100 * shares[0] for shares in found.shares)
        return (
            f"After {run.steps} steps, stage 1: off by {newest:.0f} % with the newest weights, "
            f"by {t2:.0f} % with T2's."
        )
    if run.diverged:
        return f"Diverged at step {run.diverged[0] + 1}: no gradient left to compare."
    return f"{run.status.capitalize()}: step {run.steps} of {run.config['steps']}."
