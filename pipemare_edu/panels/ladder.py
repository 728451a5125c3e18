"""VersionLadder: which weights every operation reads, and what lies between a read and its use."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..figures import Figure, ladder
from ..figures.ages import by_stage, stashed
from ..figures.ladder import UNIT, beginning
from ..figures.passages import Place, passage, tell
from ..plan.clock import Event, simulate
from ..plan.ops import parse
from ..plan.schedules import ASYNCHRONOUS, SYNCHRONOUS, schedule
from ..trainer.run import Run
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown
from .stamped import READS, filling, job
from .steps import KEYS, moved

SCHEDULES = [*reversed(ASYNCHRONOUS), *SYNCHRONOUS]
MORE = 5  # steps beyond those that fill the pipe

GOAL = Goal(
    "Choose a forward with τ = 5: click it, or press arrow keys on the chart.",
    lambda panel: panel.tau == 5 and panel.chosen[1].startswith("F"),
)


class VersionLadder(Panel):
    """A pipeline's first steps, every operation coloured by the age of the weights it reads.

    schedule      "lockstep", "async-1f1b", "sequential", "1f1b" or "gpipe"
    stages, microbatches   P and N
    backward      the weights that backwards read: "newest" (PipeMare) or "stashed" (PipeDream)
    chosen        (stage from 0, operation), such as (0, "F9"), or None

    Controls are followed at once, by counting versions in the operation lists; Run trains for
    real, and then the versions are those that the trainer stamped.  A click on a bar, or the arrow
    keys on the chart, choose an operation; `choose` does the same.  `result()` is the last run.
    Raises ValueError for a schedule or an operation that there is not.
    """

    def __init__(
        self,
        schedule: str = "lockstep",
        stages: int = 4,
        microbatches: int = 1,
        backward: str = "newest",
        chosen: Place | None = None,
        goal: Goal | None = GOAL,
    ) -> None:
        given = {"schedule": schedule, "stages": stages, "microbatches": microbatches}
        given |= {"backward": backward, "chosen": chosen}
        warm_up()
        self.last: Run | None = None
        self.chosen = chosen
        self.events = on_paper(schedule, stages, microbatches, backward)
        self._stamped = False  # are the events a run's?
        controls = {
            "schedule": c.choice("schedule", SCHEDULES, schedule),
            "stages": c.count("stages", stages, most=8),
            "microbatches": c.count("microbatches", microbatches, most=4),
            "backward": c.choice("B reads", READS, backward),
        }
        super().__init__(controls, words.text_form(type(self).__name__, given), goal)
        for control in self.controls.values():
            self.follow(control, self._changed)
        self.figures["ladder"].on_input(KEYS, self._pressed, self._clicked_on)

    @property
    def tau(self) -> int | None:
        """Of the chosen forward or backward: the updates between its read and its use."""
        if self.chosen is None:
            return None
        stage, text = self.chosen
        (op,) = parse(text)
        seen = passage(by_stage(self.events)[stage], op.index) if op.kind in "FBR" else None
        return None if seen is None else seen.tau

    def choose(self, operation: str | None, stage: int = 0) -> str:
        """Choose an operation, such as "F9", of a stage (from 0), or none; returns it in words.

        Raises ValueError if the chart has no such operation.
        """
        place = None if operation is None else (stage, str(parse(operation)))
        said = "Nothing is chosen." if place is None else tell(by_stage(self.events), place)
        self.chosen = place
        self._redraw(live=False)
        self._show_goal()
        self.say(said)
        return said

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        steps = shown_steps(settings["schedule"], settings["stages"], settings["microbatches"])
        training = job(steps=steps, **settings)
        for run in training.chunks():
            self.last = run
            if self.stopping:
                run.cancel()
            yield run.steps / steps
        if run.trace.count:
            self._show(beginning(run), stamped=True)

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {} if live else {"ladder": ladder(self.events, self.chosen, self._stamped)}

    def outcome(self) -> tuple[str, str]:
        if self.last is None:
            return "ready", "Versions counted from the lists. Run stamps them in real training."
        run = self.last
        real = f"{run.steps} steps of real training, every operation stamped with what it read"
        return run.status, f"{run.status.capitalize()}: {real}."

    def reading(self) -> str:
        return self.outcome()[1]

    def value(self) -> Run | None:
        return self.last

    def _changed(self) -> None:
        """A control was moved: back to paper."""
        if not self.busy:
            self.last = None
            self._show(on_paper(*self.settings.values()), stamped=False)

    def _show(self, events: list[Event], stamped: bool) -> None:
        """Take other events; an operation that is not among them is chosen no longer."""
        self.events, self._stamped = events, stamped
        there = {(e.stage, f"{e.kind}{e.index}") for e in events}
        if self.chosen not in there:
            self.chosen = None

    def _clicked_on(self, id: str) -> None:
        stage, _, operation = id.partition(" ")
        self._choose_later(lambda: (int(stage), operation))

    def _pressed(self, key: str) -> None:
        self._choose_later(lambda: moved(by_stage(self.events), self.chosen, key))

    def _choose_later(self, where: Any) -> None:
        def choose() -> None:
            place = where()
            self.choose(None) if place is None else self.choose(place[1], place[0])

        self._worker.call(self.guarded(choose))


def version_ladder(
    schedule: str = "lockstep",
    stages: int = 4,
    microbatches: int = 1,
    backward: str = "newest",
    chosen: Place | None = None,
) -> Shown:
    """What VersionLadder shows after one Run, without widgets; `.value` is the run."""
    steps = shown_steps(schedule, stages, microbatches)
    run = job(schedule, stages, microbatches, steps, backward).fit()
    return Shown({"ladder": ladder(run, chosen)}, run)


def shown_steps(kind: str, stages: int, microbatches: int) -> int:
    """Steps in the chart: until the pipe is full, and some more."""
    return filling(kind, stages, microbatches) + MORE


def on_paper(kind: str, stages: int, microbatches: int, backward: str) -> list[Event]:
    """The same operations on the virtual clock, their versions counted."""
    lists = schedule(kind, stages, microbatches, shown_steps(kind, stages, microbatches))
    timeline = simulate(lists, UNIT["F"], UNIT["B"], update=UNIT["U"])
    return (
        stashed(timeline) if backward == "stashed" else [e for row in timeline.events for e in row]
    )
