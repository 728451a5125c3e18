"""ScheduleLab: a synchronous step as the clock counts it, by the formula, and measured."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict
from typing import Any

from ..checks import whole
from ..figures import Figure, bubbles, gantt, overhead, placeholder
from ..figures.bubbles import formula, percent
from ..trainer.run import Run
from ..trainer.session import last
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown
from .timing import NAMES, SCHEDULES, Measured, Settings, measuring

MOST_STAGES, MOST_MICROBATCHES = 8, 32
RATIOS = (0.5, 4.0)
SLOWER = (1.0, 4.0)
STEPS = 20  # of a measurement


def _frugal(panel: Any) -> bool:
    now = panel.now
    fits = max(now.timeline.in_flight) <= 6 and now.timeline.idle <= 0.15
    return now.stages == 6 and now.equal and fits


GOAL = Goal(
    "With six equal stages, bring the idle fraction to 15 % or less, with at most six microbatches "
    "in flight at any stage.",
    _frugal,
)


class ScheduleLab(Panel):
    """A step of a synchronous pipeline.  Controls redraw at once; Run measures real layers.

    schedule      "naive" (one microbatch in the pipe at a time), "gpipe" or "1f1b"
    stages        P
    microbatches  N
    ratio         the time of a backward, in forwards
    slow, slower  a stage (from 1; 0 for none), and how many times slower than the others it is
    steps         of a measurement
    memory        of the strip under the charts: "stages" or "total"
    goal          what a learner should bring about, or None

    `now` is what is shown; `result()` gives the last measurement (Measured), or None.
    Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        schedule: str = "gpipe",
        stages: int = 4,
        microbatches: int = 8,
        ratio: float = 1.0,
        slow: int = 0,
        slower: float = 2.0,
        steps: int = STEPS,
        memory: str = "stages",
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        start = Settings(schedule, stages, microbatches, ratio, slow, slower)
        self.steps = whole("steps", steps, 1)
        self.last: Run | None = None
        self.measured: Measured | None = None
        views = {"memory": c.choice("in flight", ["stages", "total"], memory)}
        super().__init__(_controls(start), _text(start, steps, memory), goal, views)
        self.run.description = "Measure"
        for name, control in self.controls.items():
            self.follow(control, self._offer_stages if name == "stages" else lambda: None)
        self.say(self.reading())

    @property
    def now(self) -> Settings:
        """What the controls stand at."""
        return Settings(**self.settings)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        asked = Settings(**settings)
        for run in measuring(asked, self.steps):
            if self.stopping:
                run.cancel()
            self.last, self.measured = run, Measured.of(asked, run) or self.measured
            yield run.steps / self.steps

    def draw(self, live: bool = False) -> dict[str, Figure]:
        if live:
            return {"measured": _chart(self.measured, self._memory)}
        return figures(self.now, self.measured, self._memory)

    def outcome(self) -> tuple[str, str]:
        run = self.last
        if run is None:
            return "ready", self.reading()
        how = f"{run.status.capitalize()}: {run.steps} of {self.steps} steps."
        if self.measured is None or self.measured.run is not run:
            return run.status, how
        return run.status, f"{how} {tell(self.measured)}"

    def reading(self) -> str:
        return read(self.now)

    def value(self) -> Measured | None:
        return self.measured

    @property
    def _memory(self) -> str:
        return self.views["memory"].value

    def _offer_stages(self) -> None:
        """Offer the stages that there are as the slow one."""
        menu, stages = self.controls["slow"], self.controls["stages"].value
        chosen = menu.value if menu.value <= stages else 0
        menu.options = _slow_options(stages)
        menu.value = chosen


def schedule_lab(
    schedule: str = "gpipe",
    stages: int = 4,
    microbatches: int = 8,
    ratio: float = 1.0,
    slow: int = 0,
    slower: float = 2.0,
    steps: int = STEPS,
    memory: str = "stages",
) -> Shown:
    """What ScheduleLab shows after one Run, without widgets; `.value` is the measurement.

    steps=0 measures nothing and shows what ScheduleLab does before a Run.
    """
    asked = Settings(schedule, stages, microbatches, ratio, slow, slower)
    measured = None
    if whole("steps", steps, 0):
        measured = Measured.of(asked, last(measuring(asked, steps)))
    return Shown(figures(asked, measured, memory), measured)


def figures(now: Settings, measured: Measured | None, memory: str) -> dict[str, Figure]:
    """The counted chart, that of the last measurement, and both ratios."""
    idle = measured.idle if measured is not None and measured.settings == now else None
    return {
        "counted": gantt(now.timeline, memory=memory, title=_beside(now)),
        "measured": _chart(measured, memory),
        "ratios": bubbles(now.stages, now.microbatches, now.timeline.idle, now.naive, idle),
    }


def read(now: Settings) -> str:
    """Both ratios in a sentence, and the most microbatches in flight."""
    idle, peak = now.timeline.idle, max(now.timeline.in_flight)
    return (
        f"{now.label}: idle {percent(idle)} of all time, which is {percent(overhead(idle))} of "
        f"working time; at most {peak} in flight at a stage."
    )


def tell(measured: Measured) -> str:
    """The measured idle fraction beside the counted one, in a sentence."""
    settings = measured.settings
    return (
        f"{settings.label}: measured {percent(measured.idle)} idle, counted "
        f"{percent(settings.timeline.idle)}; a backward took {measured.ratio:.2f} times as long as "
        "a forward."
    )


def _beside(now: Settings) -> str:
    """The counted idle fraction beside the formula's, as a title."""
    says = formula(now.stages, now.microbatches, now.naive)
    counted = f"{NAMES[now.schedule]}: idle {percent(now.timeline.idle)} of the time"
    if now.equal or now.naive:
        return f"{counted}; the formula: {says}"
    return f"{counted}; for equal stages: {says}"


def _chart(measured: Measured | None, memory: str) -> Figure:
    if measured is None:
        return placeholder("The measured chart appears here", 120)
    title = f"{measured.settings.label}, measured: idle {100 * measured.idle:.0f} % of the time"
    return gantt(measured.events, measured=True, memory=memory, title=title)


def _controls(start: Settings) -> dict[str, Any]:
    return {
        "schedule": c.choice("schedule", [(NAMES[k], k) for k in SCHEDULES], start.schedule),
        "stages": c.count("stages", start.stages, MOST_STAGES, follow=True),
        "microbatches": c.count("microbatches", start.microbatches, MOST_MICROBATCHES, follow=True),
        "ratio": c.decimal("B / F time", start.ratio, *RATIOS, step=0.5, follow=True),
        "slow": c.choice("slow stage", _slow_options(start.stages), start.slow),
        "slower": c.decimal("times slower", start.slower, *SLOWER, step=0.5, follow=True),
    }


def _slow_options(stages: int) -> list[tuple[str, int]]:
    return [("none", 0), *((f"stage {i}", i) for i in range(1, stages + 1))]


def _text(start: Settings, steps: int, memory: str) -> str:
    given = asdict(start) | {"steps": steps, "memory": memory}
    return words.text_form("ScheduleLab", given, "three figures", "controls, Measure, Cancel")
