"""RecipeBoard: T1, T2 and T3 in every combination, what each gives and costs, and one more run."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import asdict
from typing import Any

from .. import tasks
from ..figures import Figure, cell_runs
from ..studies.recipe import STEPS, Cell, Outcome
from ..studies.recipes import RATES, SEEDS, STAGES, WARM_UPS, Result, result
from ..trainer.session import last as to_the_end
from ..training import warm_up as warm_optimizer
from . import controls as c
from . import words
from .base import Goal, Panel
from .shown import Shown
from .squares import (
    COLUMNS,
    Lives,
    Place,
    Settings,
    at,
    board,
    known_columns,
    line,
    place_of,
    tell,
    told,
)

KEYS = {"ArrowLeft": (0, -1), "ArrowRight": (0, 1), "ArrowUp": (-1, 0), "ArrowDown": (1, 0)}
HARD = {"stages": STAGES[1], "rate": RATES[-1]}


def _holds(panel: RecipeBoard) -> bool:
    return any(
        {"stages": cell.stages, "rate": cell.rate} == HARD
        and not cell.recipe.synchronous
        and outcome.diverged is None
        and (shipped := result(cell)) is not None
        and not shipped.diverged
        for (cell, _), outcome in panel.lives.items()
    )


GOAL = Goal(
    "At a rate of {rate:g} on {stages} stages, find an asynchronous recipe that no seed diverges "
    "with, and run it once more.".format(**HARD),
    _holds,
)


class RecipeBoard(Panel):
    """Final test accuracy of every combination of the three fixes on handwritten digits.

    t1, t2, t3   which fixes are on; synchronous: none of this, but training without delay
    stages       4, 8 or 12
    rate         0.1, 0.2, 0.4 or 0.8, the peak of a half cosine
    warm_up      T3's synchronous steps, 40 or 120 of 400
    seeds        how many of the five shipped seeds count
    seed         of one more run
    columns      what differs from left to right: "rate", "stages" or "warm-up"

    The board shows shipped runs; a click on a cell, or the arrow keys on the board, choose one, as
    the controls do.  Run trains the chosen cell for real and draws it over the shipped runs.
    `lives` holds the outcomes by (cell, seed); `result()` is the last one.
    Raises ValueError for a value that is not on the board.
    """

    def __init__(
        self,
        t1: bool = False,
        t2: bool = True,
        t3: bool = False,
        synchronous: bool = False,
        stages: int = Settings.stages,
        rate: float = Settings.rate,
        warm_up: int = Settings.warm_up,
        seeds: int = SEEDS,
        seed: int = 0,
        columns: str = "rate",
        goal: Goal | None = GOAL,
    ) -> None:
        start = Settings(t1, t2, t3, synchronous, stages, rate, warm_up, seeds, seed)
        known_columns(columns)
        warm_optimizer()
        tasks.get("digits")
        self.lives: Lives = {}
        self.under_way: tuple[Cell, Outcome] | None = None
        self._word = "ready"
        views = {"columns": c.choice("columns", list(COLUMNS), columns)}
        text = words.text_form(
            type(self).__name__, asdict(start) | {"columns": columns}, "two figures"
        )
        super().__init__(_controls(start), text, goal, views)
        for control in self.controls.values():
            self.follow(control)
        self.figures["board"].on_input(" ".join(KEYS), self._pressed, self._clicked_on)
        self.say(self.reading())

    @property
    def now(self) -> Settings:
        """Where the controls stand."""
        return Settings(**self.settings)

    def choose(self, place: Place) -> None:
        """Set the controls to a place on the board."""
        recipe = place.recipe
        if not recipe.synchronous:
            self.set(t1=recipe.t1, t2=recipe.t2, t3=recipe.t3)
        self.set(
            synchronous=recipe.synchronous,
            stages=place.stages,
            rate=place.rate,
            warm_up=place.warm_up,
        )

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        now = Settings(**settings)
        self.under_way, self._word = None, "running"
        for run in now.cell.chunks(now.seed):
            if self.stopping:
                run.cancel()
            self.under_way, self._word = (now.cell, Outcome.of(now.seed, run)), run.status
            if run.status in ("done", "diverged"):
                self.lives[now.cell, now.seed] = self.under_way[1]
            yield run.steps / STEPS

    def draw(self, live: bool = False) -> dict[str, Figure]:
        shown = figures(self.now, self.views["columns"].value, self.lives, self.under_way)
        return {"runs": shown["runs"]} if live else shown

    def outcome(self) -> tuple[str, str]:
        if self.under_way is None:
            return self._word, self.reading()
        return self._word, tell(*self.under_way, self._word)

    def reading(self) -> str:
        return told(self.now.cell, self.now.seeds)

    def value(self) -> Outcome | None:
        return self.under_way[1] if self.under_way else None

    def _clicked_on(self, id: str) -> None:
        row, column = map(int, id.split())
        self._go(lambda: at(self.now.place, self.views["columns"].value, row, column))

    def _pressed(self, key: str) -> None:
        down, right = KEYS[key]

        def there() -> Place:
            columns = self.views["columns"].value
            row, column = place_of(self.now.place, columns)
            return at(self.now.place, columns, row + down, column + right)

        self._go(there)

    def _go(self, there: Any) -> None:
        self._worker.call(self.guarded(lambda: self.choose(there())))


def recipe_board(
    t1: bool = False,
    t2: bool = True,
    t3: bool = False,
    synchronous: bool = False,
    stages: int = Settings.stages,
    rate: float = Settings.rate,
    warm_up: int = Settings.warm_up,
    seeds: int = SEEDS,
    seed: int | None = 0,
    columns: str = "rate",
) -> Shown:
    """What RecipeBoard shows after one Run, without widgets; `.value` is its outcome.

    seed=None runs nothing and shows what RecipeBoard does before a Run; then `.value` is the
    shipped Result of the chosen cell.
    """
    now = Settings(t1, t2, t3, synchronous, stages, rate, warm_up, seeds, seed or 0)
    known_columns(columns)
    if seed is None:
        return Shown(figures(now, columns, {}, None), _shipped(now))
    outcome = Outcome.of(seed, to_the_end(now.cell.chunks(seed)))
    shown = figures(now, columns, {(now.cell, seed): outcome}, (now.cell, outcome))
    return Shown(shown, outcome)


def figures(
    now: Settings, columns: str, lives: Lives, under_way: tuple[Cell, Outcome] | None
) -> dict[str, Figure]:
    """The board, and the runs of the chosen cell."""
    return {
        "board": board(now.place, columns, now.seeds, lives),
        "runs": _runs(now, lives, under_way),
    }


def _runs(
    now: Settings, lives: Mapping[tuple[Cell, int], Outcome], last: tuple[Cell, Outcome] | None
) -> Figure:
    """Every shipped run of the chosen cell, and over them the live one of the chosen seed."""
    shipped = _shipped(now)
    outcomes = shipped.outcomes if shipped else ()
    live = lives.get((now.cell, now.seed))
    if last is not None and (last[0], last[1].seed) == (now.cell, now.seed):
        live = last[1]
    return cell_runs(
        [line(o, "shipped") for o in outcomes],
        None if live is None else line(live, "live"),
        told(now.cell, now.seeds, costs=False),
        STEPS,
    )


def _shipped(now: Settings) -> Result | None:
    """The shipped runs of the chosen cell, as many seeds as are asked for."""
    found = result(now.cell)
    return found.first(now.seeds) if found else None


def _controls(start: Settings) -> dict[str, Any]:
    return {
        "t1": c.switch("T1", start.t1),
        "t2": c.switch("T2", start.t2),
        "t3": c.switch("T3", start.t3),
        "synchronous": c.switch("synchronous", start.synchronous),
        "stages": c.choice("stages", [(str(p), p) for p in STAGES], start.stages),
        "rate": c.choice("rate", [(f"{r:g}", r) for r in RATES], start.rate),
        "warm_up": c.choice("T3 steps", [(str(s), s) for s in WARM_UPS], start.warm_up),
        "seeds": c.count("seeds shown", start.seeds, SEEDS, follow=True),
        "seed": c.whole("seed to run", start.seed),
    }
