"""StageRates: T1's learning rate of every stage, as the sliders move, and in a real run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..checks import whole
from ..figures import Figure, curves, placeholder, rate_curves
from ..figures.rates import shown_stages
from ..studies.rates import BASES, Rescheduled, base_rate
from ..trainer.run import Run
from ..trainer.session import last
from ..training import Job, prepare, warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown
from .story import tell

POINTS = 200  # of a curve
MOST_STAGES, MOST_MICROBATCHES = 12, 16

GOAL = Goal(
    "With 12 stages, let stage 1 begin with a tenth of the base rate or more, without touching "
    "the power.",
    lambda panel: _gentle(**panel.settings),
)


def _gentle(stages: int, microbatches: int, power: float, **_: Any) -> bool:
    return stages == 12 and (2 * stages - 1) / microbatches <= 10 and power == 1


class StageRates(Panel):
    """The learning rate of some stages over a run on digits, with T1.  Controls redraw at once;
    Run trains for real, marks the rates with which the optimizers stepped, and shows the loss.

    stages, microbatches   P and N; in lockstep, tau of stage i is (2(P-i)+1)/N
    annealing  K, the steps until every stage has the base rate; 0 switches T1 off
    base       the base schedule: "cosine", "constant", "step" or "warm-up"
    rate       its peak
    power      p at step 0: 1 is the paper's, 0 switches T1 off
    guard      count tau as at least 1, so that no rate is raised
    steps      of the run
    goal       what a learner should bring about, or None

    `result()` gives the last run.  Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        stages: int = 12,
        microbatches: int = 1,
        annealing: int = 300,
        base: str = "cosine",
        rate: float = 0.2,
        power: float = 1.0,
        guard: bool = True,
        steps: int = 400,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        given: dict[str, Any] = {"stages": stages, "microbatches": microbatches}
        given |= {
            "annealing": annealing,
            "base": base,
            "rate": rate,
            "power": power,
            "guard": guard,
        }
        self.steps = whole("steps", steps, 2)
        self.last: Run | None = None
        self._run_with: tuple[dict[str, Any], Rescheduled] | None = None
        controls = {
            "stages": c.count("stages", stages, MOST_STAGES, follow=True),
            "microbatches": c.count("microbatches", microbatches, MOST_MICROBATCHES, follow=True),
            "annealing": c.count("annealing K", annealing, steps, least=0, follow=True),
            "base": c.choice("base rate", list(BASES), base),
            "rate": c.log_number("peak", rate, low=-3, high=0),
            "power": c.decimal("power p", power, 0.0, 2.0, step=0.1, follow=True),
            "guard": c.switch("guard: τ counts as at least 1", guard),
        }
        text = words.text_form(type(self).__name__, given | {"steps": steps}, "two figures")
        super().__init__(controls, text, goal)
        for control in self.controls.values():
            self.follow(control)
        self.say(self.reading())

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        method = rescheduled(self.steps, **settings)
        training = job(method, **settings)
        self._run_with = (settings, method)
        for run in training.chunks():
            self.last = run
            if self.stopping:
                run.cancel()
            yield run.steps / self.steps

    def draw(self, live: bool = False) -> dict[str, Figure]:
        now = self.settings
        seen: Sequence[Sequence[float]] = ()
        if self._run_with is not None and self._run_with[0] == now:
            seen = self._run_with[1].seen
        return {"rates": on_paper(self.steps, seen, **now), "loss": _loss(self.last)}

    def outcome(self) -> tuple[str, str]:
        return (self.last.status, tell(self.last)) if self.last else ("ready", self.reading())

    def reading(self) -> str:
        return read(self.steps, **self.settings)

    def value(self) -> Run | None:
        return self.last


def stage_rates(
    stages: int = 12,
    microbatches: int = 1,
    annealing: int = 300,
    base: str = "cosine",
    rate: float = 0.2,
    power: float = 1.0,
    guard: bool = True,
    steps: int = 400,
    train: bool = True,
) -> Shown:
    """What StageRates shows after one Run, without widgets; `.value` is the run.

    train=False runs nothing and shows what StageRates does before a Run.
    """
    given: dict[str, Any] = {
        "stages": stages, "microbatches": microbatches, "annealing": annealing, "base": base,
        "rate": rate, "power": power, "guard": guard,
    }  # fmt: skip
    method = rescheduled(whole("steps", steps, 2), **given)
    run = last(job(method, **given).chunks()) if train else None
    return Shown(
        {"rates": on_paper(steps, method.seen if train else (), **given), "loss": _loss(run)}, run
    )


def rescheduled(
    steps: int, annealing: int, base: str, rate: float, power: float, guard: bool, **_: int
) -> Rescheduled:
    """The method of these settings."""
    return Rescheduled(t1=annealing, power=power, guard=guard, base=base, peak=rate, steps=steps)


def job(method: Rescheduled, stages: int, microbatches: int, **_: Any) -> Job:
    """Training of digits with that method, prepared."""
    return prepare("digits", method, stages, microbatches, method.steps, rate=method.peak)


def on_paper(steps: int, seen: Sequence[Sequence[float]], **settings: Any) -> Figure:
    """The rates by the formula, and those seen in a run."""
    method = rescheduled(steps, **settings)
    taus = method.taus(settings["stages"], settings["microbatches"])
    stages = shown_stages(settings["stages"])
    at = sorted({*range(0, steps, max(1, steps // POINTS)), steps - 1})
    rates = method.on_paper([taus[i] for i in stages], at)
    return rate_curves(
        at,
        [base_rate(method.base, method.peak, k, steps) for k in at],
        dict(zip(stages, rates, strict=True)),
        dict(enumerate(taus)),
        method.t1 if method.power else 0,
        {i: seen[i] for i in stages} if seen else None,
    )


def read(steps: int, stages: int, microbatches: int, **settings: Any) -> str:
    """What stage 1 begins with, and what is left of the base rate when T1 ends, in a sentence."""
    method = rescheduled(steps, **settings)
    tau = method.taus(stages, microbatches)[0]
    start = method.rate(tau, 0)
    if method.t1 == 0 or method.power == 0:
        return "T1 is off: every stage has the base rate from step 0 on."
    left = base_rate(method.base, method.peak, method.t1, steps)
    return (
        f"τ of stage 1 is {tau:.3g}: it begins with {start:.3g} times the base rate. When T1 ends, "
        f"at step {method.t1}, the base rate is {left:.3g}."
    )


def _loss(run: Run | None) -> Figure:
    return (
        placeholder("The loss of your run appears here", 200)
        if run is None
        else curves({"T1": run})
    )
