"""Which of the three fixes does it take?  Every combination, over rates, stages and seeds.

    python -m pipemare_edu.studies.recipes [--seeds 5] [--write]

runs what lesson 06's board does not have yet and prints the table; --write ships the results with
the lessons.  It can be interrupted, and goes on where it stopped.

Final test accuracy in per cent of the digits MLP, 400 steps, one microbatch, seeds 0-4: mean, and
in brackets how many of the five diverged (which counts 0).  Steps, rates and warm-ups were chosen
on seeds 0-1.

    stages               8                                    12
    rate           0.1   0.2      0.4      0.8        0.1      0.2      0.4      0.8
    synchronous   98.4  98.9     98.3     97.8       98.4     98.9     98.3     97.8
    no fix        94.8  40.8 (2)  0.0 (5)  0.0 (5)   61.3      0.0 (5)  0.0 (5)  0.0 (5)
    T1            82.9  64.7 (1) 61.7 (1) 28.6 (3)   62.5     11.8 (4)  9.5 (4)  6.8 (4)
    T2            98.2  96.8     94.5     77.4       94.1     92.4     50.3      0.0 (5)
    T1+T2         96.8  96.1     92.1     84.8       90.0     70.4 (1) 81.5     62.2
    all, T3 = 40  97.5  96.6     94.4     68.6 (1)   87.3     82.2     65.4     10.4 (4)
    all, T3 = 120 98.0  98.4     98.3     96.7       98.2     98.4     97.4     93.0
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from tqdm import tqdm

from ..compare import memory_factor, record
from ..lessons.cache import Cache
from ..trainer.session import last
from .recipe import RECIPES, Cell, Outcome, utilization

STAGES = (4, 8, 12)
RATES = (0.1, 0.2, 0.4, 0.8)
WARM_UPS = (40, 120)  # steps of T3
SEEDS = 5


@dataclass(frozen=True)
class Result:
    """The runs of a cell.

    utilization  of the whole run by the clock, one device a stage, filling, draining and T3's
                 synchronous steps included, evaluations left out
    memory       all weight-sized memory over weights, gradients and optimizer, as a run counted it
    """

    outcomes: tuple[Outcome, ...]
    utilization: float
    memory: float

    @property
    def mean(self) -> float:
        """Mean final accuracy; a run that diverged counts 0."""
        return statistics.mean(o.score for o in self.outcomes)

    @property
    def diverged(self) -> int:
        """How many runs diverged."""
        return sum(o.diverged is not None for o in self.outcomes)

    def first(self, seeds: int) -> Result:
        """The same, of the first few seeds."""
        return Result(self.outcomes[:seeds], self.utilization, self.memory)

    def of(self, seed: int) -> Outcome | None:
        return next((o for o in self.outcomes if o.seed == seed), None)


def cells() -> Iterator[Cell]:
    """Every cell of the board, once."""
    seen = (Cell.at(*point) for point in itertools.product(RECIPES, STAGES, RATES, WARM_UPS))
    yield from dict.fromkeys(seen)


@cache
def shipped() -> Cache:
    """The shipped results."""
    return Cache("recipes")


def result(cell: Cell, results: Cache | None = None) -> Result | None:
    """The shipped result of a cell, or None."""
    stored = (results or shipped()).get(cell.config)
    if stored is None:
        return None
    runs = ({**run, "accuracy": tuple(run["accuracy"])} for run in stored["outcomes"])
    outcomes = tuple(Outcome(**run) for run in runs)
    return Result(outcomes, stored["utilization"], stored["memory"])


def measure(cell: Cell, seed: int, before: Result | None) -> Result:
    """The result of a cell with one more seed."""
    run = last(cell.chunks(seed))
    outcome = Outcome.of(seed, run)
    if before is not None:
        return Result((*before.outcomes, outcome), before.utilization, before.memory)
    memory = memory_factor(record(run, cell.recipe.label, seed))
    return Result((outcome,), round(utilization(cell.method, cell.stages), 4), round(memory, 3))


def table(results: Cache, stages: int, warm_up: int) -> str:
    """Mean accuracy, and in brackets how many of the runs diverged, a column for each rate."""
    head = f"{f'P={stages}, {warm_up} steps of T3':<24}" + "".join(f"{r:>14g}" for r in RATES)
    lines = [head]
    for recipe in RECIPES:
        row = f"{recipe.label:<24}"
        for rate in RATES:
            found = result(Cell.at(recipe, stages, rate, warm_up), results)
            row += f"{_entry(found):>14}"
        lines.append(row)
    return "\n".join(lines)


def _entry(found: Result | None) -> str:
    if found is None:
        return "-"
    died = f" ({found.diverged})" if found.diverged else ""
    scores = [o.score for o in found.outcomes]
    return f"{found.mean:.1f} ±{statistics.pstdev(scores):.0f}{died}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.studies.recipes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds 0, 1, ... ({SEEDS})")
    parser.add_argument("--write", action="store_true", help="ship the results with the lessons")
    args = parser.parse_args(argv)
    results = Cache("recipes")
    work = list(itertools.product(range(args.seeds), cells()))
    try:
        for seed, cell in tqdm(work, unit="run", file=sys.stderr):
            before = result(cell, results)
            if before is None or before.of(seed) is None:
                results.put(cell.config, asdict(measure(cell, seed, before)))
    finally:
        if args.write:
            results.write()
    for stages, warm_up in itertools.product(STAGES, WARM_UPS):
        sys.stdout.write(table(results, stages, warm_up) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
