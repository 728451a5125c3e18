"""CompareRuns: the shipped runs of a comparison over steps or time, and a live slice over them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..checks import positive, unknown, whole
from ..figures import Figure, Track, arrivals
from ..figures.race import Racer
from ..reproduce.presets import METHODS
from ..reproduce.summary import TARGET
from ..studies import reproduction, target
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown

AXES = {
    "steps": "steps",
    "model time": "model time, in steps of GPipe",
    "measured time": "seconds, from measured stage times",
}
SHARES = (0.5, 0.8, 0.9, TARGET, 0.98)
Lives = Mapping[tuple[str, str, int], Racer]  # by task, method and seed


def _fresh(panel: Any) -> bool:
    """Was a method trained with a seed that is not among the shipped ones?"""
    return any(seed not in reproduction.PRESET.seeds for _, _, seed in panel.lives)


GOAL = Goal("Train a slice with a seed that nobody has shipped.", _fresh)


class CompareRuns(Panel):
    """Six methods on one task: every shipped run, and a live slice drawn over them.

    task    one of the reproduction's: "words", "phrases", "shapes", "digits"
    method  which one Run trains, with `seed`, for its first `steps` steps: exactly as the shipped
            run of that seed began
    axis    "steps", "model time" or "measured time"
    share   of GPipe's quality that is drawn as the target

    `lives` holds the slices by task, method and seed; `result()` is the last one, a figures.race
    Racer.  Raises ValueError for what was not run, and for more steps than the runs have.
    """

    def __init__(
        self,
        task: str = "words",
        method: str = "pipemare",
        seed: int = 10,
        steps: int = 128,
        axis: str = "steps",
        share: float = TARGET,
        goal: Goal | None = GOAL,
    ) -> None:
        check(task, method, seed, steps, axis, share)
        warm_up()
        self.lives: dict[tuple[str, str, int], Racer] = {}
        self.last: Racer | None = None
        self._on = task
        controls = {
            "task": c.choice("task", list(reproduction.PARTS), task),
            "method": c.choice("live method", [(v, k) for k, v in METHODS.items()], method),
            "seed": c.whole("live seed", seed),
            "steps": c.whole("live steps", steps, least=1),
        }
        views = {
            "axis": c.choice("axis", list(AXES), axis),
            "share": c.choice("target", [(f"{100 * s:g} %", s) for s in _with(share)], share),
        }
        given = {"task": task, "method": method, "seed": seed, "steps": steps}
        text = words.text_form(type(self).__name__, given | {"axis": axis, "share": share})
        super().__init__(controls, text, goal, views)
        self.follow(self.controls["task"])
        self.say(self.reading())

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        self._on = settings["task"]
        running = reproduction.live(**settings)
        stop = None
        while True:
            try:
                self.last = running.send(stop)
            except StopIteration:
                break
            stop = True if self.stopping else None
            self.lives[self._on, self.last.method, self.last.seed] = self.last
            yield self.last.steps / settings["steps"]
        if self.last is not None and self.last.status == "running":
            self.last = replace(self.last, status="cancelled")

    def draw(self, live: bool = False) -> dict[str, Figure]:
        return figures(
            self.controls["task"].value,
            self.lives,
            self.views["axis"].value,
            self.views["share"].value,
        )

    def outcome(self) -> tuple[str, str]:
        if self.last is None:
            return ("cancelled", "Cancelled.") if self.stopping else ("ready", self.reading())
        return self.last.status, tell(self._on, self.last)

    def reading(self) -> str:
        return told(self.controls["task"].value)

    def value(self) -> Racer | None:
        return self.last


def compare_runs(
    task: str = "words",
    method: str | None = "pipemare",
    seed: int = 10,
    steps: int = 128,
    axis: str = "steps",
    share: float = TARGET,
) -> Shown:
    """What CompareRuns shows after one Run, without widgets; `.value` is the live slice.

    method=None trains nothing and shows what CompareRuns does before a Run.
    """
    check(task, method, seed, steps, axis, share)
    if method is None:
        return Shown(figures(task, {}, axis, share))
    *_, last = reproduction.live(task, method, seed, steps)
    return Shown(figures(task, {(task, method, seed): last}, axis, share), last)


def check(task: str, method: str | None, seed: int, steps: int, axis: str, share: float) -> None:
    """ValueError for what CompareRuns cannot show."""
    reproduction.sliced(task, steps)
    whole("seed", seed, 0)
    positive("share", share, 1.0)
    for what, name, known in (("method", method or "gpipe", METHODS), ("axis", axis, AXES)):
        if name not in known:
            raise ValueError(unknown(what, name, known))


def figures(task: str, lives: Lives, axis: str, share: float) -> dict[str, Figure]:
    """Every run of a task, the live ones over the shipped ones."""
    mine = [r for (on, _, _), r in lives.items() if on == task]
    runs = {label: list(_tracks(task, name, mine, axis)) for name, label in METHODS.items()}
    goal = target.wanted(task, share)
    return {"runs": arrivals(runs, target.metric(task), AXES[axis], goal, log=axis != "steps")}


def _tracks(task: str, method: str, lives: Sequence[Racer], axis: str) -> Iterator[Track]:
    for r in [*reproduction.racers(task, [method]), *(x for x in lives if x.method == method)]:
        shown = with_end(r)
        times = target.over_time(shown, task, axis)
        name = "" if r.shipped else f"{METHODS[method]}, seed {r.seed}, live"
        yield Track(times, [v for _, v in shown.scores], r.status == "diverged", name)


def with_end(r: Racer) -> Racer:
    """A run that diverged, with a score of 0 at that step."""
    if r.diverged is None:
        return r
    scores = (*((k, v) for k, v in r.scores if k < r.diverged), (r.diverged, 0.0))
    return Racer(r.method, r.seed, r.steps, r.status, r.losses, scores, r.diverged, r.shipped)


def tell(task: str, r: Racer) -> str:
    """How a live slice stands, and whether it agrees with the shipped run of its seed."""
    label = f"{METHODS[r.method]}, seed {r.seed}"
    if r.diverged is not None:
        return f"{label}: diverged at step {r.diverged}.{_beside(task, r)}"
    score = f", {target.metric(task)} {r.scores[-1][1]:.1f}" if r.scores else ""
    if r.status == "running":
        return f"{label}: training, step {r.steps}{score}."
    return f"{label}: {r.status} after {r.steps} steps{score}.{_beside(task, r)}"


def _beside(task: str, r: Racer) -> str:
    same = (s for s in reproduction.racers(task, [r.method]) if s.seed == r.seed)
    shipped = next(same, None)
    if shipped is None:
        return " No run of this seed was shipped: it is a new one."
    if not r.scores:
        return ""
    then = dict(shipped.scores).get(r.scores[-1][0])
    return "" if then is None else f" The shipped run had {then:.1f} there."


def told(task: str) -> str:
    """How many runs there are, and how each method ended."""
    rows = reproduction.section(task).rows
    ends = [
        f"{METHODS[row.method]} {row.mean:.1f}" + f" ({row.diverged} diverged)" * bool(row.diverged)
        for row in rows
        if row.mean is not None
    ]
    return f"{sum(r.runs for r in rows)} shipped runs; mean {rows[0].score}: {', '.join(ends)}."


def _with(share: float) -> list[float]:
    return sorted({*SHARES, share})
