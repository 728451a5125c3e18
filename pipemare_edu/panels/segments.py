"""RecomputeSegments: activations held for every segment length, and the price in time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict
from typing import Any

from ..checks import whole
from ..figures import Figure, gantt, held_bars, placeholder, segment_curve
from ..figures.bubbles import percent
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .counted import Counted
from .segmented import Pipe
from .shown import Shown

MOST_STAGES = 25
MOST_DRAWN = 9  # stages of a Gantt chart
SLOTS = 7  # of the chart

GOAL = Goal(
    "With 25 stages, hold the fewest stage activations that segments allow: 250, of the 650 that "
    "a pipe holds which keeps all.",
    lambda panel: panel.now.stages == 25 and panel.now.slots <= 250,
)


class RecomputeSegments(Panel):
    """Stage activations of a lockstep pipe whose stages are cut into segments.  Every control is
    followed at once; Run trains a real pipeline, counts, and times its re-runs.

    stages, segment   P and S
    steps             of the run; None: until the pipe is full, and a few more
    goal              what a learner should bring about, or None

    `now` is what is shown; `result()` gives the last run (Counted), or None.
    Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        stages: int = 9,
        segment: int = 3,
        steps: int | None = None,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        start = Pipe(stages, segment)
        self.steps = steps
        steps_of(start, steps)
        self.of: Pipe | None = None  # what the last run was of
        self.last: Counted | None = None
        controls = {
            "stages": c.count("stages P", stages, MOST_STAGES, least=2, follow=True),
            "segment": c.count("segment S", segment, stages, follow=True),
        }
        text = words.text_form(
            "RecomputeSegments", asdict(start) | {"steps": steps}, "three figures"
        )
        super().__init__(controls, text, goal)
        self.follow(self.controls["stages"], self._offer_segments)
        self.follow(self.controls["segment"])
        self.say(self.reading())

    @property
    def now(self) -> Pipe:
        """What the controls stand at."""
        return Pipe(**self.settings)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        pipe = Pipe(**settings)
        steps = steps_of(pipe, self.steps)
        for found in pipe.counting(steps):
            self.of, self.last = pipe, found
            if self.stopping:
                found.run.cancel()
            yield found.run.steps / steps

    def draw(self, live: bool = False) -> dict[str, Figure]:
        if live:
            return {}
        return figures(self.now, self._finished)

    def outcome(self) -> tuple[str, str]:
        if self.last is None or self.of is None:
            return "ready", self.reading()
        run = self.last.run
        said = f"{run.status.capitalize()}: {run.steps} steps."
        return run.status, f"{said} {tell(self.of, self.last)}" if run.status == "done" else said

    def reading(self) -> str:
        return read(self.now)

    def value(self) -> Counted | None:
        return self.last

    @property
    def _finished(self) -> Counted | None:
        """The last run, if it is done and of what the controls stand at."""
        done = self.last is not None and self.last.run.status == "done" and self.of == self.now
        return self.last if done else None

    def _offer_segments(self) -> None:
        self.controls["segment"].max = self.controls["stages"].value


def recompute_segments(
    stages: int = 9, segment: int = 3, steps: int | None = None, run: bool = True
) -> Shown:
    """What RecomputeSegments shows after one Run, without widgets; `.value` is what was counted.

    run=False trains nothing and shows what RecomputeSegments does before a Run.
    """
    pipe = Pipe(stages, segment)
    asked, found = steps_of(pipe, steps), None
    if run:
        *_, found = pipe.counting(asked)
    return Shown(figures(pipe, found), found)


def steps_of(pipe: Pipe, steps: int | None) -> int:
    """How long the run is; ValueError for a number that cannot be."""
    return 2 * pipe.full if steps is None else whole("steps", steps, 1)


def figures(pipe: Pipe, found: Counted | None) -> dict[str, Figure]:
    """All segment lengths, the stages with this one, and for few stages a chart."""
    ran = found.slots if found else None
    return {
        "segments": segment_curve(pipe.stages, pipe.every, pipe.segment, ran),
        "stages": held_bars(pipe.held, pipe.depths, pipe.segment),
        "chart": _chart(pipe),
    }


def _chart(pipe: Pipe) -> Figure:
    if pipe.stages > MOST_DRAWN:
        return placeholder(f"A Gantt chart is drawn for at most {MOST_DRAWN} stages", 80)
    timeline, span = pipe.timeline(SLOTS)
    return gantt(
        timeline, span=span, title="Each re-run (R) comes a little before its backward (B)"
    )


def read(pipe: Pipe) -> str:
    """What is held, beside all kept, and what that costs."""
    p, work = pipe.stages, pipe.work
    return (
        f"P={p}, S={pipe.segment}: {pipe.slots} stage activations, counted in the lists; all kept "
        f"{p * (p + 1)} (the paper counts {p * p}). {percent(work - 1)} more work, if a backward "
        "takes two forwards."
    )


def tell(pipe: Pipe, found: Counted) -> str:
    """What the run held, and the time of its re-runs."""
    return (
        f"P={pipe.stages}, S={pipe.segment}: {found.slots} stage activations counted; re-runs took "
        f"measured {100 * found.again:.0f} % more computing time."
    )
