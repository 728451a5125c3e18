"""Race: several methods, each with several seeds, side by side."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

from ..figures import Figure
from ..figures import race as race_figure
from ..figures.race import SHOWS, Racer, by_method
from ..studies.races import THREE, Methods, Track, shipped, track
from ..studies.races import race as racing
from ..trainer import members
from ..trainer.methods import Method, PipeMare
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .engines import jobs, picked
from .shown import Shown

RUNS = (("shipped, where there are", "shipped"), ("live, all of them", "live"))
MOST_SEEDS = 5


def _told_apart(panel: Any) -> bool:
    live = by_method(r for r in panel.racers if not r.shipped and r.ended).values()
    several = [{r.status for r in rs} for rs in live if len(rs) > 1]
    return {"diverged"} in several and {"done"} in several


def _nothing_is_better(panel: Any) -> bool:
    """With every seed, does plain asynchronous training end above T1 alone?"""
    ends: dict[bool, dict[int, float]] = {True: {}, False: {}}  # is it T1? -> {seed: score}
    for r in panel.racers:
        method = panel.lineup[r.method]
        if isinstance(method, PipeMare) and not method.t2 and r.status == "done":
            ends[method.t1 > 0][r.seed] = r.final or 0.0
    t1, plain = ends[True], ends[False]
    return len(plain) > 1 and set(plain) == set(t1) and all(plain[s] > t1[s] for s in plain)


GOAL = Goal(
    "Train live, with two seeds or more: a method that diverges with each, and one that diverges "
    "with none.",
    _told_apart,
)
SLOWER = Goal(
    "Find a rate at which plain asynchronous training ends above T1 with every seed.",
    _nothing_is_better,
)


class Race(Panel):
    """Train several methods with several seeds on one task.

    methods  names, or {label: name or method such as pm.PipeMare(t1=400)}
    seeds    how many: 0, 1, ...
    task, network, rate, stages, microbatches, steps   as for pm.train, for all of them
    runs     "shipped": show the shipped run of a configuration where there is one, and train the
             others; "live": train all, and draw them over the shipped ones
    show     the curves: "loss" or "score"
    engine   "kernel": one run after the other, here; "2 processes": two at a time, beside it
    goal     what a learner should bring about, or None

    `result()` gives the racers (figures.race.Racer).  Raises ValueError for what cannot run.
    """

    def __init__(
        self,
        methods: Methods = THREE,
        seeds: int = 3,
        task: str = "digits",
        network: str | None = None,
        rate: float | None = None,
        stages: int | None = None,
        microbatches: int | None = None,
        steps: int | None = None,
        runs: str = "shipped",
        show: str = "loss",
        goal: Goal | None = GOAL,
        engine: str = "kernel",
    ) -> None:
        warm_up()
        picked(engine, jobs())
        self.methods = methods
        given = {"rate": rate, "stages": stages, "microbatches": microbatches, "steps": steps}
        start = track(task, network, **given)
        self._track = start
        self.racers: list[Racer] = []
        self._behind: list[Racer] = []  # shipped runs that the live ones are drawn over
        self._ended = True
        labels = list(start.lineup(methods))
        controls = {
            "methods": c.several("methods", labels),
            "seeds": c.count("seeds", seeds, MOST_SEEDS),
            "rate": c.log_number("rate", start.rate, low=-3, high=1),
            "stages": c.count("stages", start.stages, most=24),
            "microbatches": c.count("microbatches", start.microbatches, most=16),
            "steps": c.whole("steps", start.steps, least=1),
            "runs": c.choice("runs", RUNS, runs),
            "engine": c.choice("engine", list(jobs()), engine),
        }
        named = {"methods": _named(methods), "seeds": seeds, "task": task, "network": network}
        named |= given | {"runs": runs, "show": show}
        text = words.text_form(type(self).__name__, named)
        views = {"show": c.choice("curves", SHOWS, show)}
        super().__init__(controls, text, goal, views)
        self.controls["engine"].observe(self.guarded(self._engine_changed), "value")
        self._engine_changed()

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        asked, seeds = settings.pop("methods"), settings.pop("seeds")
        live, at_a_time = settings.pop("runs") == "live", jobs()[settings.pop("engine")]
        if not asked:
            raise ValueError("no method is chosen: choose one or more in the list of methods")
        on = replace(self._track, **settings)
        self._track, self._ended = on, False
        methods = {label: self.lineup[label] for label in asked}
        self.racers, self._behind = [], behind(on, methods, seeds) if live else []
        for racers in racing(on, methods, range(seeds), live, self._stop, at_a_time):
            self.racers = racers
            done = sum(1.0 if r.ended else r.steps / on.steps for r in racers)
            yield done / (len(methods) * seeds)
        self._ended = not self.stopping

    def draw(self, live: bool = False) -> dict[str, Figure]:
        show, score = self.views["show"].value, self._track.score
        return {"race": race_figure([*self._behind, *self.racers], score, show)}

    def outcome(self) -> tuple[str, str]:
        if not self.racers:
            return ("cancelled", "Cancelled.") if self.stopping else ("ready", "Ready.")
        if not self._ended and not self.stopping:
            return "running", f"Running: {self._counted()}."
        word = "done" if self._ended else "cancelled"
        return word, f"{word.capitalize()}: {self._counted()}."

    @property
    def lineup(self) -> dict[str, Method]:
        """The methods by label, with the fixes that fit the steps of what is shown."""
        return self._track.lineup(self.methods)

    def value(self) -> list[Racer]:
        return list(self.racers)

    def _counted(self) -> str:
        kept = sum(r.shipped for r in self.racers)
        here = len(self.racers) - kept
        return f"{here} run{'s' * (here != 1)} trained here, {kept} shipped"

    def _stop(self) -> bool:
        return self.stopping

    def _engine_changed(self, _: Any = None) -> None:
        if jobs()[self.controls["engine"].value] > 1:
            members.warm_up()  # processes are ready before Run is clicked


def race(
    methods: Methods = THREE,
    seeds: int = 3,
    task: str = "digits",
    network: str | None = None,
    rate: float | None = None,
    stages: int | None = None,
    microbatches: int | None = None,
    steps: int | None = None,
    runs: str = "shipped",
    show: str = "loss",
    engine: str = "kernel",
) -> Shown:
    """What Race shows after one Run, without widgets; `.value` is the racers."""
    at_a_time = picked(engine, jobs())
    given = {"rate": rate, "stages": stages, "microbatches": microbatches, "steps": steps}
    on = track(task, network, **given)
    line, live = on.lineup(methods), runs == "live"
    *_, racers = racing(on, line, range(seeds), live, jobs=at_a_time)
    shown = [*(behind(on, line, seeds) if live else []), *racers]
    return Shown({"race": race_figure(shown, on.score, show)}, racers)


def behind(on: Track, methods: Mapping[str, Method], seeds: int) -> list[Racer]:
    """The shipped runs over which live ones are drawn."""
    known = (shipped(on, k, m, s) for s in range(seeds) for k, m in methods.items())
    return [r for r in known if r is not None]


def _named(methods: Methods) -> Any:
    return dict(methods) if isinstance(methods, Mapping) else list(methods)
