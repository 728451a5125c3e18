"""NetworkThreshold: does a network obey Lemma 1?  Predicted from its curvature, found by runs."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any

from ..figures import Figure, Mark, growth
from ..figures import stability_map as map_of
from ..lessons.cache import Cache
from ..studies.edge import Found, Trial, find, finding
from ..studies.minimum import NETWORKS
from ..studies.point import STARTS, Delays
from ..studies.threshold import MARKS, trial_config
from ..trainer.run import Run
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

EDGE, ONE = "find the edge", "one more"
CHOICES = (0.25, 0.6, 0.8, 0.95, 1.05, 1.25, 1.6, 4.0)  # of Lemma 1's rate, for one more run
EXPECTED = 10  # trials of a search, for the progress bar


def _both_found(panel: NetworkThreshold) -> bool:
    near = [f for f in panel.founds if f.at.start == "minimum" and not math.isnan(f.multiple)]
    return {f.at.delays == "lockstep" for f in near} == {True, False}


GOAL = Goal(
    "Find the edge near the minimum twice: with the stages' own delays (lockstep), and with one "
    "delay for every stage.",
    _both_found,
)


class NetworkThreshold(Panel):
    """Train a small network to a minimum, measure its steepest curvature there, predict the
    largest stable rate under delay by Lemma 1, and find it by real runs.

    network  one of studies.minimum.NETWORKS
    start    "minimum", or "scratch": the same question from the initial weights
    delays   "lockstep", or a number: that delay on every stage (0: none)
    what     "find the edge" (by bisection), or "one more": one run at `multiple` times Lemma 1's
             rate
    guess    a rate of yours, drawn on the map, or None

    White marks are shipped runs, yellow ones were made here.  `result()` gives the last Found: its
    point, its trials and the edge.
    """

    def __init__(
        self,
        network: str = "batchnorm",
        seed: int = 0,
        start: str = "minimum",
        delays: Delays = "lockstep",
        what: str = EDGE,
        multiple: float = 1.25,
        guess: float | None = None,
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        self.guess = guess
        self.founds: list[Found] = []  # of every Run, the last one growing
        self.under_way: Run | None = None
        controls = {
            "network": c.choice("network", list(NETWORKS), network),
            "seed": c.whole("seed", seed),
            "start": c.choice("start", STARTS, start),
            "delays": c.choice("delays", [str(d) for d in MARKS], str(delays)),
            "what": c.choice("what", [EDGE, ONE], what),
            "multiple": c.one_of("× predicted", CHOICES, multiple),
        }
        given = {"network": network, "seed": seed, "start": start, "delays": delays}
        given |= {"what": what, "multiple": multiple, "guess": guess}
        text = words.text_form("NetworkThreshold", given, "two figures")
        super().__init__(controls, text, goal)
        for control in self.controls.values():
            self.follow(control)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        before = self.founds
        multiple = settings["multiple"] if settings["what"] == ONE else None
        where = (settings["network"], settings["seed"], settings["start"])
        steps = finding(*where, _number(settings["delays"]), multiple)
        for found, self.under_way in steps:
            if self.stopping:
                break
            self.founds = [*before, found] if found else before
            yield min(0.95, len(found.trials) / EXPECTED) if found else 0.0
        self.under_way = None

    def draw(self, live: bool = False) -> dict[str, Figure]:
        now = self.settings
        chosen = {name: now[name] for name in ("network", "seed", "start")}
        return _figures(**chosen, founds=self.founds, run=self.under_way, guess=self.guess)

    def outcome(self) -> tuple[str, str]:
        if not self.founds:
            return ("cancelled", "Cancelled.") if self.stopping else ("running", "Descending ...")
        said = tell(self.founds[-1])
        return ("cancelled", f"Cancelled. {said}") if self.stopping else ("done", said)

    def value(self) -> Found | None:
        return self.founds[-1] if self.founds else None


def network_threshold(
    network: str = "batchnorm",
    seed: int = 0,
    start: str = "minimum",
    delays: Delays = "lockstep",
    what: str = EDGE,
    multiple: float = 1.25,
    guess: float | None = None,
) -> Shown:
    """What NetworkThreshold shows after one Run, without widgets; `.value` is the Found."""
    found = find(network, seed, start, _number(delays), multiple if what == ONE else None)
    return Shown(_figures(network, seed, start, [found], None, guess), found)


def _number(delays: Delays) -> Delays:
    """A menu's text as what it says."""
    return int(delays) if str(delays).isdecimal() else delays


def tell(found: Found) -> str:
    """What came out, in a sentence or two."""
    at = found.at
    lemma = f"Lemma 1's {at.predicted:.3g} (curvature {at.curvature:.3g}, delay {at.tau:.3g})"
    if not math.isnan(found.multiple):
        return f"Stable up to a rate of {found.rate:.3g}: {found.multiple:.3g} times {lemma}."
    if len(found.trials) == 1:
        tried = found.trials[0]
        word = "stayed" if tried.stayed else "left"
        return f"At {tried.multiple:g} times {lemma} the run {word}{_beside(found)}."
    return f"Beside {lemma}: runs so far {len(found.trials)}, no edge yet."


def _beside(found: Found) -> str:
    """Whether a shipped run of the same configuration went the same way."""
    at, tried = found.at, found.trials[0]
    shipped = results().get(trial_config(at.network, at.seed, at.start, at.delays, tried.multiple))
    if shipped is None:
        return ""
    same = shipped["stayed"] == tried.stayed
    return ", as did the shipped run" if same else ", unlike the shipped run"


@cache
def results() -> Cache:
    """The shipped results."""
    return Cache("threshold")


def shipped_marks(network: str, seed: int, start: str) -> list[Mark]:
    """The shipped trials from there."""
    return [
        Mark(
            value["x"], value["tau"], value["stayed"], f"Shipped, {config['multiple']:g} × Lemma 1"
        )
        for config, value in results().matching(trial=network, seed=seed, start=start)
    ]


def _figures(
    network: str,
    seed: int,
    start: str,
    founds: Sequence[Found],
    run: Run | None,
    guess: float | None,
) -> dict[str, Figure]:
    mine = [f for f in founds if (f.at.network, f.at.seed, f.at.start) == (network, seed, start)]
    live = [
        Mark(t.rate * f.at.curvature, f.at.tau, t.stayed, f"{t.multiple:.4g} × Lemma 1", True)
        for f in mine
        for t in f.trials
    ]
    marks = [*shipped_marks(network, seed, start), *live]
    line = None if guess is None or not mine else guess * mine[-1].at.curvature
    tried = mine[-1].trials if mine else ()
    shown: dict[str, Sequence[float]] = {_label(t): t.losses for t in tried}
    if run is not None and run.losses:
        shown["under way"] = run.losses
    return {
        "map": map_of(marks=marks, guess=line, title=_title(network, start, mine)),
        "growth": growth(shown),
    }


def _label(tried: Trial) -> str:
    return f"× {tried.multiple:.4g}: {'stayed' if tried.stayed else 'left'}"


def _title(network: str, start: str, founds: Sequence[Found]) -> str | None:
    known = [f for f in founds if not math.isnan(f.multiple)]
    if not known:
        return None
    where = "near its minimum" if start == "minimum" else "from scratch"
    delays = known[-1].at.delays
    how = f"{delays} delays" if isinstance(delays, str) else f"delay {delays} on every stage"
    times = f"{known[-1].multiple:.3g} times Lemma 1's rate"
    return f"{network} {where}, {how}: it bears {times}"
