"""StepDebugger: operation lists, one event a click, forwards and backwards."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from time import perf_counter, sleep
from typing import Any

from ..checks import whole
from ..figures import Figure, Walk, listing, pipe, walk
from ..figures.walk import State, in_words, title
from ..plan.ops import Op, Operations
from ..plan.schedules import schedule
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

Lists = str | Iterable[str | Iterable[Op]]
TICK = 0.02  # seconds: the kernel answers between two of them
MOST = 2000  # operations


def _most_in_flight(panel: Any) -> bool:
    flights = [sum(map(len, state.held)) for state in panel.walk.states]
    return panel.event > 0 and flights[panel.event] == max(flights)


GOAL = Goal(
    "Go to an event after which the stages together hold as many microbatches as they ever do.",
    _most_in_flight,
)


class StepDebugger(Panel):
    """Walk through operation lists.  Back and Forward go one event; so do the arrow keys on the
    slider.  Run plays what is left, or everything once the end is reached; Cancel stops it.

    lists   a text with a line for each stage, or a list of texts or operations; by default
            pm.schedule("gpipe", stages=3, microbatches=3)
    event   how many events have run at first
    pause   seconds between two events that are played
    goal    what a learner should bring about, or None

    `walk` has every state; `event` is where the panel stands; `result()` gives the state there.
    Raises ValueError for a text that does not parse.
    """

    def __init__(
        self,
        lists: Lists | None = None,
        event: int = 0,
        pause: float = 0.3,
        goal: Goal | None = GOAL,
    ) -> None:
        self.walk = _walk(lists)
        most = len(self.walk.events)
        self._slider = c.count("event", whole("event", event, 0, most), most, least=0, follow=True)
        controls = {
            "lists": c.lines("lists", _lines(self.walk), rows=len(self.walk.lists) + 1),
            "pause": c.decimal("pause (s)", pause, 0.0, 2.0, step=0.1),
        }
        self.back = c.button("Back", "step-backward")
        self.forward = c.button("Forward", "step-forward")
        self.buttons = [self.back, self.forward]
        super().__init__(controls, _text(self.walk, event), goal, {"event": self._slider})
        self.run.description = "Play"
        self.back.on_click(self.guarded(lambda _: self.go(self.event - 1)))
        self.forward.on_click(self.guarded(lambda _: self.go(self.event + 1)))
        self.follow(controls["lists"], self._load)
        self.say(self.reading())

    @property
    def event(self) -> int:
        """How many events have run."""
        return self._slider.value

    def go(self, event: int) -> None:
        """Show the state after `event` events, or after the nearest number that there is."""
        self._slider.value = min(max(event, 0), len(self.walk.events))

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        if self.event == len(self.walk.events):
            self.go(0)
        while self.event < len(self.walk.events) and not self.stopping:
            until = perf_counter() + self.controls["pause"].value
            while (left := until - perf_counter()) > 0 and not self.stopping:
                sleep(min(left, TICK))
                yield self.event / len(self.walk.events)
            if not self.stopping:
                self.go(self.event + 1)
            yield self.event / max(1, len(self.walk.events))

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return {} if live else figures(self.walk, self.event)

    def outcome(self) -> tuple[str, str]:
        if self.walk.stuck(self.event):
            return "deadlock", self.reading()
        return "cancelled" if self.stopping else "done", self.reading()

    def reading(self) -> str:
        return f"{title(self.walk, self.event)}. {in_words(self.walk, self.event)}"

    def value(self) -> State:
        return self.walk.states[self.event]

    def _load(self) -> None:
        """Walk through what stands in the text now, from its beginning."""
        self._cancelled()
        self.walk = _walk(self.controls["lists"].value)
        self._slider.max = len(self.walk.events)
        self._slider.value = 0


def step_debugger(lists: Lists | None = None, event: int = 0) -> Shown:
    """What StepDebugger shows after `event` events, without widgets; `.value` is the state."""
    found = _walk(lists)
    at = whole("event", event, 0, len(found.events))
    return Shown(figures(found, at), found.states[at])


def figures(found: Walk, at: int) -> dict[str, Figure]:
    """Where every microbatch is, and how far each list has run."""
    return {"pipe": pipe(found, at), "lists": listing(found, at)}


def _walk(lists: Lists | None) -> Walk:
    if lists is None:
        lists = schedule("gpipe", stages=3, microbatches=3)
    if isinstance(lists, str):
        named = (re.sub(r"^\s*stage \d+:", "", line) for line in lists.splitlines())
        lists = [line for line in named if line.strip()]
    rows: list[str | Operations] = [x if isinstance(x, str) else Operations(x) for x in lists]
    if not rows:
        raise ValueError("there are no lists: write a line of operations for each stage")
    found = walk(rows)
    if (total := sum(map(len, found.lists))) > MOST:
        raise ValueError(f"the lists have {total} operations: {MOST} is the most to step through")
    return found


def _lines(found: Walk) -> str:
    return "\n".join(map(str, found.lists))


def _text(found: Walk, event: int) -> str:
    given = {"lists": [str(row) for row in found.lists], "event": event}
    return words.text_form("StepDebugger", given, "two figures", "Back, Forward, Play, Cancel")
