"""EngineSwitch: one configuration in this kernel and on another engine, side by side."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import asdict
from typing import Any

from ..checks import unknown, whole
from ..figures import Figure, curves, gantt, placeholder, replay
from ..figures.settled import UNIT
from ..plan.clock import Event
from ..trainer import members
from ..trainer.registry import method_names
from ..trainer.run import Run
from ..training import warm_up
from . import controls as c
from . import words
from .alike import Alike, Configuration, Ran, running, tell
from .base import Goal, Panel
from .engines import engines
from .shown import Shown

KERNEL = "kernel"
MICROBATCHES = 12  # in the charts

GOAL = Goal(
    "Try to catch the engines at a difference: compare three configurations, with at least two "
    "methods among them.",
    lambda panel: len(panel.compared) >= 3 and len({asked.method for asked in panel.compared}) >= 2,
)


class EngineSwitch(Panel):
    """Train one configuration of the digits task in this kernel, then on the chosen engine, and
    compare operations, losses and weights.

    method, stages, microbatches, steps, seed   the configuration
    engine   one of `engines()`; None: worker processes where there are any.  "kernel" runs alone
    time     of the charts: "model" or "measured"
    goal     what a learner should bring about, or None

    `result()` gives the last comparison (Alike), or None; `compared` those of all configurations.
    Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        method: str = "pipemare-t1t2",
        stages: int = 4,
        microbatches: int = 2,
        steps: int = 60,
        seed: int = 0,
        engine: str | None = None,
        time: str = "model",
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        start = Configuration(method, stages, microbatches, steps, seed)
        engine = chosen(start, engine)
        if engines()[engine]["workers"]:
            members.warm_up()  # workers are ready before Run is clicked
        self.ran: dict[str, Ran] = {}
        self.compared: dict[Configuration, Alike] = {}
        self.of: Configuration | None = None  # what `ran` are runs of
        views = {"time": c.choice("chart time", ["model", "measured"], time)}
        given = asdict(start) | {"engine": engine, "time": time}
        text = words.text_form("EngineSwitch", given, "figures")
        super().__init__(_controls(start, engine), text, goal, views)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        asked = dict(settings)
        other = asked.pop("engine")
        self.of, self.ran = Configuration(**asked), {}
        todo = order(other)
        for n, engine in enumerate(todo):
            for ran in running(self.of, engine):
                self.ran[engine] = ran
                if self.stopping:
                    ran.run.cancel()
                yield (n + ran.run.steps / self.of.steps) / len(todo)
        if (found := self.value()) is not None:
            self.compared[self.of] = found

    def draw(self, live: bool = False) -> dict[str, Figure]:
        if live:
            return {"losses": _losses(self.ran)}
        return figures(self.ran, self.views["time"].value)

    def outcome(self) -> tuple[str, str]:
        if self.of is None or not self.ran:
            return "ready", "Ready."
        last = list(self.ran.values())[-1]
        if (found := self.value()) is not None:
            return last.run.status, f"{self.of.label}. {tell(found)}"
        done = f"{last.run.status}, step {last.run.steps} of {self.of.steps}"
        return last.run.status, f"{self.of.label}, {last.engine}: {done}."

    def value(self) -> Alike | None:
        return compared(self.ran)


def engine_switch(
    method: str = "pipemare-t1t2",
    stages: int = 4,
    microbatches: int = 2,
    steps: int = 60,
    seed: int = 0,
    engine: str | None = None,
    time: str = "model",
) -> Shown:
    """What EngineSwitch shows after one Run, without widgets; `.value` is the comparison."""
    asked, ran = Configuration(method, stages, microbatches, steps, seed), {}
    known_time(time)
    for name in order(chosen(asked, engine)):
        *_, ran[name] = running(asked, name)
    return Shown(figures(ran, time), compared(ran))


def chosen(asked: Configuration, engine: str | None) -> str:
    """The engine to compare with; ValueError for a name that is not known."""
    if asked.method not in method_names():
        raise ValueError(unknown("method", asked.method, method_names()))
    whole("stages", asked.stages, 1)
    whole("microbatches", asked.microbatches, 1)
    whole("steps", asked.steps, 1)
    whole("seed", asked.seed, 0)
    known = list(engines())
    if engine is None:
        return known[min(1, len(known) - 1)]
    if engine not in known:
        raise ValueError(unknown("engine", engine, known))
    return engine


def order(engine: str) -> list[str]:
    """The kernel first: everything else is compared with it."""
    return [KERNEL] if engine == KERNEL else [KERNEL, engine]


def compared(ran: Mapping[str, Ran]) -> Alike | None:
    """Two runs that have ended, beside each other."""
    both = list(ran.values())
    return Alike(*both) if len(both) == 2 and all(r.ended for r in both) else None


def figures(ran: Mapping[str, Ran], time: str) -> dict[str, Figure]:
    """The losses, and a chart for every engine that there is."""
    known_time(time)
    charts = {name: _chart(name, ran, time == "measured") for name in engines()}
    return {"losses": _losses(ran), **charts}


def known_time(time: str) -> None:
    """ValueError for a time in which no chart is drawn."""
    if time not in ("model", "measured"):
        raise ValueError(f'time is {time!r}: give "model" or "measured"')


def _losses(ran: Mapping[str, Ran]) -> Figure:
    found, title = compared(ran), "The losses of both engines appear here"
    if found is not None:
        title = f"{found.losses} of {len(found.one.run.losses)} losses differ between the engines"
    return curves({name: r.run for name, r in ran.items()}, title=title)


def _chart(name: str, ran: Mapping[str, Ran], measured: bool) -> Figure:
    if name not in ran or not ran[name].ended:
        return placeholder(f"The chart of the engine {name!r} appears here", 80)
    run = ran[name].run
    events, several = run.trace.events, bool(run.plan and run.plan.homes)
    if not (measured and several):  # what took turns in one process is placed by the clock
        events = replay(events, None if measured else UNIT)
    title = f"{name}: {_same(name, compared(ran), run)}; {_when(measured, several)}"
    return gantt(events, measured=measured, title=title, span=_middle(events))


def _same(name: str, found: Alike | None, run: Run) -> str:
    count = f"{run.trace.count} operations"
    if found is None or name == KERNEL:
        return f"{count}, and these are from the middle"
    if found.reordered:
        return f"{found.reordered} stages ran other operations"
    return f"the same {count} in the same order"


def _when(measured: bool, several: bool) -> str:
    if not measured:
        return "model time"
    return "times as measured" if several else "measured durations, placed by the clock"


def _middle(events: list[Event]) -> tuple[float, float]:
    """From when to when the first stage runs some forwards in the middle of a run."""
    starts = sorted(e.start for e in events if e.stage == 0 and e.kind == "F")
    last = min(len(starts) - 1, (len(starts) + MICROBATCHES) // 2)
    return starts[max(0, last - MICROBATCHES)], starts[last] or events[-1].end


def _controls(start: Configuration, engine: str) -> dict[str, Any]:
    return {
        "method": c.choice("method", method_names(), start.method),
        "stages": c.count("stages", start.stages, most=12),
        "microbatches": c.count("microbatches", start.microbatches, most=8),
        "steps": c.whole("steps", start.steps, least=1),
        "seed": c.whole("seed", start.seed),
        "engine": c.choice("engine", list(engines()), engine),
    }
