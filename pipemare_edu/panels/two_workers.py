"""TwoWorkers: what a second worker gains, and where the time of both goes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict
from typing import Any

from ..checks import whole
from ..figures import Figure, gantt, placeholder, speedup, time_use
from ..trainer import members
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .engines import engines
from .pair import KINDS, LAYERS, MOST_MICROBATCHES, NAMES, Both, Pair, measuring
from .shown import Shown

MESSAGES = (1, 64, 256, 1024)
SHOWN = 2  # steps in the chart
STEPS = 16


def _busy(panel: Any) -> bool:
    pair = panel.last.pair if panel.last is not None and panel.last.done else None
    return pair is not None and pair.last >= 5 and pair.microbatches <= 4 and pair.speedup > 1.9


GOAL = Goal(
    "With the sixth layer five times as slow as the others and at most four microbatches, be more "
    "than 1.9 times as fast as one process by the clock; then measure it.",
    _busy,
)


class TwoWorkers(Panel):
    """Six layers in two stages, a worker for each.  Controls redraw at once; Run trains in one
    process, then in two workers.

    schedule      "gpipe", "1f1b", "async-1f1b" or "lockstep"
    microbatches  N
    first         layers in the first stage
    last          how many times as long as the others the sixth layer takes
    message       KiB that a microbatch carries from stage to stage
    layers        "sleep": their work is done elsewhere; "compute": on this machine's processor
    steps         of either run
    goal          what a learner should bring about, or None

    `now` is what is shown; `result()` gives the last measurement (Both), or None.
    Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        schedule: str = "gpipe",
        microbatches: int = 4,
        first: int = 3,
        last: float = 1.0,
        message: int = 1,
        layers: str = "sleep",
        steps: int = STEPS,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        if "2 processes" in engines():
            members.warm_up()  # workers are ready before Run is clicked
        start = Pair(schedule, microbatches, first, last, message, layers)
        self.steps = whole("steps", steps, 4)
        self.last: Both | None = None
        text = words.text_form("TwoWorkers", asdict(start) | {"steps": steps}, "three figures")
        super().__init__(_controls(start), text, goal)
        for control in self.controls.values():
            self.follow(control)
        self.say(self.reading())

    @property
    def now(self) -> Pair:
        """What the controls stand at."""
        return Pair(**self.settings)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        for found in measuring(Pair(**settings), self.steps):
            self.last, run = found, found.workers or found.alone
            if self.stopping:
                run.cancel()
            yield (bool(found.workers) + run.steps / self.steps) / 2

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {} if live else figures(self.now, self._finished)

    def outcome(self) -> tuple[str, str]:
        if self.last is None:
            return "ready", self.reading()
        if self.last.done:
            return "done", tell(self.last)
        run = self.last.workers or self.last.alone
        where = "two workers" if self.last.workers else "one process"
        return run.status, f"In {where}: {run.status}, step {run.steps} of {self.steps}."

    def reading(self) -> str:
        return read(self.now)

    def value(self) -> Both | None:
        return self.last

    @property
    def _finished(self) -> Both | None:
        """The last measurement, if it is whole and of what the controls stand at."""
        done = self.last is not None and self.last.done and self.last.pair == self.now
        return self.last if done else None


def two_workers(
    schedule: str = "gpipe",
    microbatches: int = 4,
    first: int = 3,
    last: float = 1.0,
    message: int = 1,
    layers: str = "sleep",
    steps: int = STEPS,
) -> Shown:
    """What TwoWorkers shows after one Run, without widgets; `.value` is the measurement.

    steps=0 measures nothing and shows what TwoWorkers does before a Run.
    """
    pair, found = Pair(schedule, microbatches, first, last, message, layers), None
    if whole("steps", steps, 0):
        *_, found = measuring(pair, steps)
    return Shown(figures(pair, found), found)


def figures(pair: Pair, found: Both | None) -> dict[str, Figure]:
    """The speed-up over N, where the time goes, and a chart of what was measured."""
    gained = found.speedup if found else None
    name = NAMES[pair.schedule]
    return {
        "speedup": speedup(pair.speedups, pair.microbatches, pair.limit, gained, name),
        "time": time_use(pair.waiting, found.workers.waiting if found and found.workers else None),
        "chart": _chart(found),
    }


def read(pair: Pair) -> str:
    """What the clock says, in a sentence."""
    return (
        f"{pair.label}: by the clock {pair.speedup:.2f} times as fast as one process; no schedule "
        f"gets past {pair.limit:.2f} with these stages."
    )


def tell(found: Both) -> str:
    """The measured speed-up beside the clock's, in a sentence."""
    return (
        f"{found.pair.label}: measured {found.speedup:.2f} times as fast as one process; by the "
        f"clock {found.pair.speedup:.2f} times."
    )


def _chart(found: Both | None) -> Figure:
    if found is None or found.workers is None:
        return placeholder("The chart of the two workers, as measured, appears here", 120)
    events = found.workers.trace.events
    ends = [e.end for e in events if e.stage == 0 and e.kind == "U"]
    middle = len(ends) // 2
    return gantt(found.workers, span=(ends[middle - 1], ends[min(len(ends), middle + SHOWN) - 1]))


def _controls(start: Pair) -> dict[str, Any]:
    kinds = {"sleep": "done elsewhere (sleep)", "compute": "done here (compute)"}
    return {
        "schedule": c.choice("schedule", [(NAMES[k], k) for k in NAMES], start.schedule),
        "microbatches": c.count("microbatches", start.microbatches, MOST_MICROBATCHES, follow=True),
        "first": c.count("layers in first", start.first, LAYERS - 1, follow=True),
        "last": c.decimal("sixth layer", start.last, 0.5, 8.0, step=0.5, follow=True),
        "message": c.choice("message", _messages(start.message), start.message),
        "layers": c.choice("work is", [(kinds[k], k) for k in KINDS], start.layers),
    }


def _messages(start: int) -> list[tuple[str, int]]:
    return [(f"{size} KiB", size) for size in sorted({*MESSAGES, start})]
