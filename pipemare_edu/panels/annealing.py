"""Annealing: T1 with another K, in real runs with several seeds."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ..figures import Figure
from ..figures import annealing as ends_figure
from ..figures.race import Racer
from ..studies.races import KS, Track, race, shipped, track
from ..trainer.methods import PipeMare
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .race import MOST_SEEDS
from .rates import on_paper
from .shown import Shown

Ends = Mapping[int, Sequence[Racer]]


def _both_ends(panel: Any) -> bool:
    several = [rs for rs in panel.here.values() if sum(r.ended for r in rs) >= 3]
    dead = [all(r.status == "diverged" for r in rs) for rs in several]
    alive = [all(r.status == "done" for r in rs) for rs in several]
    return any(dead) and any(alive)


GOAL = Goal(
    "Train with two settings of K, three seeds each: one with which every run diverges, and one "
    "with which none does.",
    _both_ends,
)


class Annealing(Panel):
    """How asynchronous training with T1 alone ends, over K.  The rates follow the controls; Run
    trains with the chosen K.

    annealing  K
    seeds      how many: 0, 1, ...
    rate, steps   of every run on digits, 12 stages, base rate falling along a cosine
    guess      a K of yours, drawn as a line, or None
    goal       what a learner should bring about, or None

    Pale marks are shipped runs, the others were trained here.  `result()` gives those of the last
    K, `ends` all by K.  Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        annealing: int = 100,
        seeds: int = 3,
        rate: float = 0.2,
        steps: int = 400,
        guess: float | None = None,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        self.track = track(rate=rate, steps=steps)
        self.guess = guess
        self.here: dict[int, list[Racer]] = {}
        self._latest: list[Racer] = []
        controls = {
            "annealing": c.count("annealing K", annealing, most=steps, follow=True),
            "seeds": c.count("seeds", seeds, MOST_SEEDS),
        }
        given = {"annealing": annealing, "seeds": seeds, "rate": rate, "steps": steps}
        text = words.text_form(type(self).__name__, given | {"guess": guess}, "two figures")
        super().__init__(controls, text, goal)
        for control in self.controls.values():
            self.follow(control)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        k, seeds = settings["annealing"], settings["seeds"]
        for racers in training(self.track, k, seeds, lambda: self.stopping):
            self._latest = racers
            self.here[k] = [r for r in racers if r.status != "cancelled"]
            yield (len(racers) - 1 + racers[-1].steps / self.track.steps) / seeds

    def draw(self, live: bool = False) -> dict[str, Figure]:
        ends = figures(self.track, self.here, self.settings["annealing"], self.guess)
        return {"ends": ends["ends"]} if live else ends

    def outcome(self) -> tuple[str, str]:
        if not self._latest:
            return "ready", "Ready."
        dead = sum(r.status == "diverged" for r in self._latest)
        ended = sum(r.ended for r in self._latest)
        how = f"{dead} of {ended} runs diverged" if ended else "no run has ended yet"
        told = f"{self._latest[0].method}: {how}."
        if self.stopping:
            return "cancelled", f"Cancelled. {told}"
        return "done", told

    @property
    def ends(self) -> dict[int, list[Racer]]:
        """Every run of the figure, shipped and trained here, by K."""
        return together(self.track, self.here)

    def value(self) -> list[Racer]:
        return list(self._latest)


def annealing(
    annealing: int = 100,
    seeds: int = 3,
    rate: float = 0.2,
    steps: int = 400,
    guess: float | None = None,
) -> Shown:
    """What Annealing shows after one Run, without widgets; `.value` is the runs of this K."""
    on = track(rate=rate, steps=steps)
    *_, racers = training(on, annealing, seeds)
    return Shown(figures(on, {annealing: racers}, annealing, guess), racers)


def training(
    on: Track, k: int, seeds: int, stop: Any = lambda: False
) -> Generator[list[Racer], None, None]:
    """Real runs with T1 and that K; see studies.races.race."""
    return race(on, {f"K = {k}": PipeMare(t1=k)}, range(seeds), live=True, stop=stop)


def shipped_ends(on: Track) -> dict[int, list[Racer]]:
    """{K: the shipped runs of that track}."""
    found = {
        k: [shipped(on, f"K = {k}", PipeMare(t1=k), seed) for seed in range(MOST_SEEDS)] for k in KS
    }
    return {k: [r for r in rs if r is not None] for k, rs in found.items()}


def together(on: Track, here: Ends) -> dict[int, list[Racer]]:
    """{K: the shipped runs of that track, and those that were made here}."""
    known = shipped_ends(on)
    return {k: [*known.get(k, ()), *here.get(k, ())] for k in sorted({*known, *here})}


def figures(on: Track, here: Ends, chosen: int, guess: float | None) -> dict[str, Figure]:
    """The rates with the chosen K, and how every run ended."""
    settings: dict[str, Any] = {"stages": on.stages, "microbatches": on.microbatches}
    settings |= {
        "annealing": chosen,
        "base": "cosine",
        "rate": on.rate,
        "power": 1.0,
        "guard": True,
    }
    return {
        "rates": on_paper(on.steps, (), **settings),
        "ends": ends_figure(together(on, here), on.steps, on.score, chosen, guess),
    }
