"""The squares of the recipe board: which cell stands where, and how its runs are told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..checks import unknown
from ..figures import Entry, Figure, Line
from ..figures import recipe_board as drawn
from ..figures.style import listed
from ..studies.recipe import EVERY, RECIPES, STEPS, Cell, Outcome, Recipe
from ..studies.recipes import RATES, SEEDS, STAGES, WARM_UPS, Result, result

GOOD = 90.0  # per cent
COLUMNS: dict[str, tuple[float, ...]] = {
    "rate": RATES,
    "stages": STAGES,
    "warm-up": (0, *WARM_UPS),
}
Lives = dict[tuple[Cell, int], Outcome]


@dataclass(frozen=True)
class Place:
    """A recipe with all that the controls say beside it, wherever the board shows it."""

    recipe: Recipe
    stages: int
    rate: float
    warm_up: int

    @property
    def cell(self) -> Cell:
        return Cell.at(self.recipe, self.stages, self.rate, self.warm_up)


@dataclass(frozen=True)
class Settings:
    """Where the controls stand.  ValueError for what is not on the board."""

    t1: bool = False
    t2: bool = True
    t3: bool = False
    synchronous: bool = False
    stages: int = STAGES[1]
    rate: float = RATES[1]
    warm_up: int = WARM_UPS[0]
    seeds: int = SEEDS
    seed: int = 0

    def __post_init__(self) -> None:
        known = {"stages": STAGES, "rate": RATES, "warm_up": WARM_UPS, "seeds": range(1, SEEDS + 1)}
        for what, values in known.items():
            if (value := getattr(self, what)) not in values:
                raise ValueError(unknown(what, value, [str(v) for v in values]))

    @property
    def recipe(self) -> Recipe:
        if self.synchronous:
            return Recipe(synchronous=True)
        return Recipe(bool(self.t1), bool(self.t2), bool(self.t3))

    @property
    def cell(self) -> Cell:
        return Cell.at(self.recipe, self.stages, self.rate, self.warm_up)

    @property
    def place(self) -> Place:
        return Place(self.recipe, self.stages, self.rate, self.warm_up)


def known_columns(columns: str) -> None:
    if columns not in COLUMNS:
        raise ValueError(unknown("columns", columns, COLUMNS))


def rows_of(columns: str) -> list[Recipe]:
    """The recipes of the board's rows: over the warm-up, those that have one."""
    return [r for r in RECIPES if columns != "warm-up" or r.t3]


def at(place: Place, columns: str, row: int, column: int) -> Place:
    """The place in a row and column, or on the edge of the board if they lie beyond."""
    recipes, values = rows_of(columns), COLUMNS[columns]
    recipe = recipes[min(max(row, 0), len(recipes) - 1)]
    value = values[min(max(column, 0), len(values) - 1)]
    match columns:
        case "rate":
            return replace(place, recipe=recipe, rate=value)
        case "stages":
            return replace(place, recipe=recipe, stages=int(value))
        case _ if value:
            return replace(place, recipe=recipe, warm_up=int(value))
        case _:
            return replace(place, recipe=replace(recipe, t3=False))


def place_of(place: Place, columns: str) -> tuple[int, int]:
    """(row, column) of a place; of synchronous training over the warm-up, the corner."""
    recipe = place.recipe
    if columns == "warm-up":
        if recipe.synchronous:
            return 0, 0
        row = rows_of(columns).index(replace(recipe, t3=True))
        return row, COLUMNS[columns].index(place.warm_up if recipe.t3 else 0)
    value = place.rate if columns == "rate" else place.stages
    return RECIPES.index(recipe), COLUMNS[columns].index(value)


def board(place: Place, columns: str, seeds: int, lives: Lives) -> Figure:
    """The heat map with its costs; those are of the chosen column."""
    rows, costs = {}, {}
    _, chosen = place_of(place, columns)
    for r, recipe in enumerate(rows_of(columns)):
        cells = [at(place, columns, r, n).cell for n in range(len(COLUMNS[columns]))]
        label = recipe.label
        rows[label] = [_entry(cell, f"{r} {n}", seeds, lives) for n, cell in enumerate(cells)]
        found = result(cells[chosen])
        costs[label] = (found.utilization, found.memory) if found else (0.0, 0.0)
    labels = list(rows)
    marked = labels[place_of(place, columns)[0]]
    hidden = columns == "warm-up" and place.recipe.synchronous
    return drawn(
        rows,
        [f"{value:g}" for value in COLUMNS[columns]],
        {"warm-up": "T3's steps"}.get(columns, columns),
        costs,
        ("", 0) if hidden else (marked, chosen),
        _message(place, columns, seeds),
    )


def _entry(cell: Cell, id: str, seeds: int, lives: Lives) -> Entry:
    found = result(cell)
    outcomes = found.first(seeds).outcomes if found else ()
    live = {seed: _end(o) for (other, seed), o in lives.items() if other == cell}
    return Entry({o.seed: _end(o) for o in outcomes}, id, live)


def _end(outcome: Outcome) -> float | None:
    return None if outcome.diverged is not None else outcome.score


def _message(place: Place, columns: str, seeds: int) -> str:
    """Which recipes hold in the chosen column."""
    _, column = place_of(place, columns)
    good = []
    for r, recipe in enumerate(rows_of(columns)):
        cell = at(place, columns, r, column).cell
        found = result(cell)
        if found and not recipe.synchronous and _good(found.first(seeds)):
            good.append(cell.recipe.label)
    where = f"P={place.stages}, rate {place.rate:g}"
    if columns == "warm-up":
        where += f", {COLUMNS[columns][column]:g} steps of T3"
    return f"{where}: {listed(good) if good else 'no recipe'} above {GOOD:g} % with every seed"


def _good(found: Result) -> bool:
    return all(outcome.score > GOOD for outcome in found.outcomes)


def name(cell: Cell) -> str:
    """A cell in words."""
    warm_up = f", {cell.warm_up} steps of T3" if cell.warm_up else ""
    return f"{cell.recipe.label}, P={cell.stages}, rate {cell.rate:g}{warm_up}"


def told(cell: Cell, seeds: int, costs: bool = True) -> str:
    """The shipped runs of a cell in a sentence, and what it costs."""
    found = result(cell)
    if found is None:
        return f"{name(cell)}: nothing was shipped; Run trains it."
    found = found.first(seeds)
    said = f"{name(cell)}: {_seeds(found)}"
    if costs:
        said += f"; utilization {found.utilization:.2f}, memory {found.memory:.2f}×."
    return said


def _seeds(found: Result) -> str:
    """How the seeds ended."""
    scores = [o.score for o in found.outcomes if o.diverged is None]
    count = len(found.outcomes)
    seeds = f"{count} seed" + "s" * (count > 1)
    died = f"{found.diverged} of {seeds} diverged"
    if not scores:
        return died
    low, high = f"{min(scores):.1f}", f"{max(scores):.1f}"
    span = f"at {low} %" if low == high else f"between {low} and {high} %"
    return f"{died}, the rest end {span}" if found.diverged else f"{seeds} end {span}"


def tell(cell: Cell, outcome: Outcome, word: str) -> str:
    """How a live run went, beside the shipped one of the same seed."""
    which = f"{name(cell)}, seed {outcome.seed}"
    if word == "running":
        reached = f", accuracy {outcome.accuracy[-1]:.1f} %" if outcome.accuracy else ""
        return f"Training {which}: step {outcome.steps} of {STEPS}{reached}."
    if word not in ("done", "diverged"):
        return f"{word.capitalize()} after step {outcome.steps} of {STEPS}: {which}."
    shipped = result(cell)
    same = shipped.of(outcome.seed) if shipped else None
    if same is None:
        return f"Done: {which} {_ended(outcome)}. No run of this seed was shipped."
    agree = "they agree" if outcome.agrees(same) else "they differ"
    return f"Done: {which} {_ended(outcome)}; the shipped run {_ended(same)}: {agree}."


def _ended(outcome: Outcome) -> str:
    if outcome.diverged is not None:
        return f"diverged at step {outcome.diverged}"
    return f"ended at {outcome.score:.1f} %"


def line(outcome: Outcome, which: str) -> Line:
    """A run as a line of the second figure."""
    steps = [EVERY * n for n in range(1, len(outcome.accuracy) + 1)]
    return Line(f"{which}, seed {outcome.seed}", steps, outcome.accuracy, outcome.diverged)
