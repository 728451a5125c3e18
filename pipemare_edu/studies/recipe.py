"""One cell of the board of recipes: which fixes, where, and how its runs went."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Any

from ..plan.clock import simulate
from ..trainer.methods import GPipe, Method, PipeMare
from ..trainer.registry import Fixes
from ..trainer.run import Run
from ..training import prepare

STEPS, EVERY = 400, 25  # of a run; between two evaluations
ANNEALING = 100  # K of T1: a quarter of the run, as in the task's own setting
CALM = 2.0  # points of accuracy


@dataclass(frozen=True)
class Recipe:
    """Which of the three fixes are on, or none of this: synchronous training."""

    t1: bool = False
    t2: bool = False
    t3: bool = False
    synchronous: bool = False

    @property
    def label(self) -> str:
        if self.synchronous:
            return "synchronous"
        on = [name for name, is_on in zip(("T1", "T2", "T3"), self.flags, strict=True) if is_on]
        return "+".join(on) or "no fix"

    @property
    def flags(self) -> tuple[bool, bool, bool]:
        return self.t1, self.t2, self.t3


FLAGS = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1))
RECIPES = (Recipe(synchronous=True), *(Recipe(*map(bool, flags)) for flags in FLAGS))


@dataclass(frozen=True)
class Cell:
    """A recipe at a number of stages, a rate, and T3 steps of warm-up (0 if T3 is off)."""

    recipe: Recipe
    stages: int
    rate: float
    warm_up: int

    @classmethod
    def at(cls, recipe: Recipe, stages: int, rate: float, warm_up: int) -> Cell:
        """The cell of a recipe, whose warm-up counts only if it has T3 on."""
        return cls(recipe, stages, rate, warm_up if recipe.t3 else 0)

    @property
    def method(self) -> Method:
        if self.recipe.synchronous:
            return GPipe()
        t1, t2, _ = self.recipe.flags
        return PipeMare(t1=ANNEALING * t1, t2=Fixes().t2 * t2, t3=self.warm_up)

    @property
    def config(self) -> dict[str, Any]:
        """Under what its results are shipped."""
        recipe = asdict(self.recipe)
        return recipe | {"stages": self.stages, "rate": self.rate, "warm_up": self.warm_up}

    def chunks(self, seed: int) -> Generator[Run, None, None]:
        """Train it for real, in chunks; see Trainer.chunks."""
        job = prepare(
            "digits",
            self.method,
            stages=self.stages,
            microbatches=1,
            steps=STEPS,
            seed=seed,
            rate=self.rate,
            eval_every=EVERY,
        )
        yield from job.chunks()


@dataclass(frozen=True)
class Outcome:
    """How one run went.

    seed       of its weights and its data's order
    accuracy   on the test set after every EVERY steps, in per cent
    diverged   the step, from 1, or None
    steps      that it did
    """

    seed: int
    accuracy: tuple[float, ...]
    diverged: int | None
    steps: int

    @classmethod
    def of(cls, seed: int, run: Run) -> Outcome:
        scores = run.metrics.get("accuracy", [])
        values = tuple(round(value, 1) for _, value in scores)  # the test set has 497 images
        return cls(seed, values, run.diverged and run.diverged[0] + 1, run.steps)

    @property
    def score(self) -> float:
        """The last accuracy; 0 for a run that diverged."""
        return self.accuracy[-1] if self.accuracy and self.diverged is None else 0.0

    def agrees(self, other: Outcome) -> bool:
        """Did both diverge, or end within CALM points of each other?"""
        if self.diverged is not None or other.diverged is not None:
            return (self.diverged is None) == (other.diverged is None)
        return abs(self.score - other.score) <= CALM


def utilization(method: Method, stages: int) -> float:
    """Of a run of STEPS steps with one microbatch in each, by the clock: filling, draining and
    T3's synchronous steps included, evaluations left out."""
    lists = [method.operations(stage, stages, 1, range(STEPS)) for stage in range(stages)]
    return simulate(lists).utilization
