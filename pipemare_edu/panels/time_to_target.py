"""TimeToTarget: what makes the time until a quality is reached, under several assumptions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..figures import Factors, Figure
from ..figures import factors as factors_figure
from ..reproduce.presets import METHODS
from ..reproduce.summary import TARGET
from ..studies import reproduction, target
from ..studies.stage_times import StageTimes, measuring
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

BUBBLES = (("GPipe's", 1.0), ("half of it", 0.5), ("a quarter", 0.25), ("none", 0.0))


def _overtaken(panel: Any) -> bool:
    """Is everybody slower than the baseline, though the pipe is fully used?"""
    times = [f.time for name, f in panel.value().items() if f and name != target.BASELINE]
    return bool(times) and min(times) > 1


GOAL = Goal(
    "On the ResNet of shapes, find assumptions under which GPipe is first.",
    lambda panel: panel.controls["task"].value == "shapes" and _overtaken(panel),
)


class TimeToTarget(Panel):
    """Time to target = step ratio x T3's bill / utilization, for every method of a task.

    task    one of the reproduction's: "words", "phrases", "shapes", "digits"
    share   of GPipe's quality that is the target
    stages  "alike", or "measured": by how long each stage's operations took
    bubble  how much of GPipe's bubble a synchronous step has, from 1 to 0

    The figure follows the controls.  Run measures the stages of the task here, in short real runs;
    `here` has what they said.  `result()` is {method: figures.Factors}.
    """

    def __init__(
        self,
        task: str = "shapes",
        share: float = TARGET,
        stages: str = "alike",
        bubble: float = 1.0,
        goal: Goal | None = GOAL,
    ) -> None:
        target.found(task, share, stages, bubble)
        self.here: dict[str, dict[str, float]] = {}
        known = [(text, value) for text, value in BUBBLES]
        if bubble not in [value for _, value in known]:
            known.append((f"{bubble:g} of it", bubble))
        controls = {
            "task": c.choice("task", list(reproduction.PARTS), task),
            "share": c.decimal("target share", share, 0.5, 1.0, 0.01, follow=True),
            "stages": c.choice("stages", list(target.STAGES), stages),
            "bubble": c.choice("bubble", known, bubble),
        }
        given = {"task": task, "share": share, "stages": stages, "bubble": bubble}
        super().__init__(controls, words.text_form(type(self).__name__, given), goal)
        for control in self.controls.values():
            self.follow(control)
        self.say(self.reading())

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        task = settings["task"]
        on, seen = reproduction.case_of(task), dict[str, StageTimes]()
        for n, method in enumerate(PAIR):
            running = measuring(on, method, rounds=1)
            while method not in seen:
                try:
                    yield (n + next(running)) / len(PAIR)
                except StopIteration as end:
                    seen[method] = end.value
                if self.stopping:
                    running.close()
                    return
        self.here[task] = target.intervals(task, seen)
        yield 1.0

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {"factors": figure(**self.settings)}

    def outcome(self) -> tuple[str, str]:
        word = "cancelled" if self.stopping else "done" if self.here else "ready"
        return word, self.reading()

    def reading(self) -> str:
        said = told(**self.settings)
        seen = self.here.get(self.controls["task"].value)
        return said if seen is None else f"{said} {measured_here(seen)}"

    def value(self) -> dict[str, Factors | None]:
        return target.found(**self.settings)


PAIR = ("gpipe", "pipemare-naive")


def time_to_target(
    task: str = "shapes", share: float = TARGET, stages: str = "alike", bubble: float = 1.0
) -> Shown:
    """What TimeToTarget shows, without widgets; `.value` is {method: figures.Factors}."""
    shown = {"factors": figure(task, share, stages, bubble)}
    return Shown(shown, target.found(task, share, stages, bubble))


def figure(task: str, share: float, stages: str, bubble: float) -> Figure:
    found = target.found(task, share, stages, bubble)
    return factors_figure({label: found[name] for name, label in METHODS.items()}, "GPipe")


def told(task: str, share: float, stages: str, bubble: float) -> str:
    """The target, and what a step costs under these assumptions."""
    at = target.prices(task, stages, bubble)
    ratio = at.synchronous / at.asynchronous["pipemare-naive"]
    goal = target.wanted(task, share)
    return (
        f"Target: {target.metric(task)} of {goal:.1f}, which is {100 * share:.0f} % of GPipe's. "
        f"A synchronous step takes as long as {ratio:.2f} asynchronous ones."
    )


def measured_here(seen: dict[str, float]) -> str:
    ratio = seen["gpipe"] / seen["pipemare-naive"]
    return f"Measured on this machine just now, with GPipe's bubble: {ratio:.2f}."
