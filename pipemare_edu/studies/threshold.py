"""Does a network obey Lemma 1?  The largest stable rate under delay, predicted and found.

    python -m pipemare_edu.studies.threshold [--networks batchnorm,tanh] [--seeds 5] [--write]

prints the table; --write ships it with the lessons, and the trials that lesson 03 marks on its map.

Found over predicted, four networks and five seeds, on 50 digits, mean and spread over the seeds:

    rate found / predicted                batchnorm           deep           tanh       residual
    no delay: 2/L                       1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00
    delay 4 on every stage: Lemma 1     1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00
    delays weighted: Lemma 1            1.00 ± 0.13    1.07 ± 0.02    1.26 ± 0.04    1.46 ± 0.56
    longest delay: Lemma 1              1.28 ± 0.18    1.28 ± 0.05    4.96 ± 0.53    3.37 ± 0.87
    mean delay: Lemma 1                 0.77 ± 0.11    0.70 ± 0.03    2.81 ± 0.30    1.91 ± 0.50
    one direction, delay by stage       0.85 ± 0.28    1.00 ± 0.01    1.00 ± 0.00    0.56 ± 0.38
    all directions, delay by stage      1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00    1.00 ± 0.00
    from scratch, weighted: Lemma 1    18.00 ± 5.72 156.14 ± 58.96    1.27 ± 0.33   23.36 ± 9.32

At a minimum without error, with one delay for all stages, Lemma 1 is exact (the bisection's own
resolution is 0.4 %).  With each stage's own delay (lockstep) it takes one number, the delays
weighted by the steepest direction's shares.  Beside that the network bears 4 to 9 % more in `deep`,
2 to 11 % more in four seeds of `batchnorm` and 26 % less in the fifth, 19 to 32 % more in `tanh`,
and half to twice as much in `residual`.  Two things are missing from the one number.  Echoes of
different age partly cancel, so several delays do less harm than their mean: each share at its own
delay repairs that in `deep` and `tanh`.  And another direction, less steep but with older weights,
can be the first to go, as in `residual`: the linearized network with all its directions predicts
every case to half a per cent.
Lemma 1 with the longest delay was safe each time; with the mean delay it was not.  From the initial
weights the same prediction is off by up to a factor of 273, and says nothing.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqdm import tqdm

from .. import figures
from ..figures import Figure
from ..lessons.cache import Cache
from ..plan.theory import lemma1
from .edge import Trial, find
from .linear import kernels, linear_edge
from .minimum import NETWORKS, batch, copied, minimum
from .point import Delays, Point

SEEDS = 5
UNIFORM = 4  # a delay that every stage can have
MARKED = ("batchnorm", 0)  # network and seed whose trials are marked on the lesson's map
MARKS: tuple[Delays, ...] = ("lockstep", 0, 1, 2, 4, 6, 8, 12)  # delays of the marked trials
MULTIPLES = (0.6, 0.8, 0.95, 1.05, 1.25, 1.6)  # of Lemma 1's rate


@dataclass(frozen=True)
class Row:
    """One network and seed.  Rates; `found` by bisection, the others predicted.

    found      from the minimum, with the stages' own delays (lockstep)
    weighted   Lemma 1, the delays weighted by the steepest direction's shares: tau
    by_stage   each share at its own stage's delay (plan.per_stage)
    linear     all directions at their stages' delays (studies.linear)
    longest, mean  Lemma 1 with the longest delay, and with the plain mean
    uniform    one delay of UNIFORM on every stage: found over Lemma 1
    control    no delay: found over 2 / curvature
    scratch    from the initial weights: found over Lemma 1 there (None: no edge within reach)
    """

    network: str
    seed: int
    curvature: float
    tau: float
    found: float
    weighted: float
    by_stage: float
    linear: float
    longest: float
    mean: float
    uniform: float
    control: float
    scratch: float | None

    def ratio(self, prediction: str) -> float | None:
        """Found over predicted; above 1 the network bears more than was predicted."""
        value: float | None = getattr(self, prediction)
        if prediction in ("uniform", "control", "scratch") or value is None:
            return value
        return self.found / value


PREDICTIONS = {
    "control": "no delay: 2/L",
    "uniform": f"delay {UNIFORM} on every stage: Lemma 1",
    "weighted": "delays weighted: Lemma 1",
    "longest": "longest delay: Lemma 1",
    "mean": "mean delay: Lemma 1",
    "by_stage": "one direction, delay by stage",
    "linear": "all directions, delay by stage",
    "scratch": "from scratch, weighted: Lemma 1",
}


def measure(network: str, seed: int) -> Row:
    """Carry out every search for one network and seed (about ten seconds)."""
    near = find(network, seed)
    at = near.at
    pieces = kernels(copied(minimum(network, seed)), batch(seed))
    scratch = find(network, seed, start="scratch").multiple
    return Row(
        network,
        seed,
        at.curvature,
        at.tau,
        found=near.rate,
        weighted=at.predicted,
        by_stage=at.by_stage,
        linear=linear_edge(pieces, at.taus, at.predicted),
        longest=lemma1(max(at.taus), at.curvature),
        mean=lemma1(statistics.mean(at.taus), at.curvature),
        uniform=find(network, seed, delays=UNIFORM).multiple,
        control=find(network, seed, delays=0).multiple,
        scratch=scratch if scratch == scratch else None,
    )


def trial_config(network: str, seed: int, start: str, delays: Delays, multiple: float) -> dict:
    """Under what a trial's result is shipped."""
    return {
        "trial": network,
        "seed": seed,
        "start": start,
        "delays": delays,
        "multiple": round(multiple, 4),
    }


def trial_result(at: Point, tried: Trial) -> dict[str, Any]:
    """What is shipped: where it lies on the map (rate times curvature, delay), and how it went."""
    return {"x": tried.rate * at.curvature, "tau": at.tau, "stayed": tried.stayed}


def rows(cache: Cache | None = None, networks: Sequence[str] = tuple(NETWORKS)) -> list[Row]:
    """The shipped rows, by network and seed."""
    known = (cache or Cache("threshold")).matching()
    kept = [Row(**value) for config, value in known if "edge" in config]
    order = {name: n for n, name in enumerate(networks)}
    return sorted((r for r in kept if r.network in order), key=lambda r: (order[r.network], r.seed))


def marks(network: str, seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(configuration, result) of every trial that the map shows."""
    for delays, multiple in itertools.product(MARKS, MULTIPLES):
        tried = find(network, seed, "minimum", delays, multiple)
        config = trial_config(network, seed, "minimum", delays, multiple)
        yield config, trial_result(tried.at, tried.trials[0])


def ratios(found: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    """{prediction: {network: found over predicted, by seed}}; an edge that was not found is left
    out."""
    networks = list(dict.fromkeys(r.network for r in found))
    return {
        label: {
            network: [
                value
                for r in found
                if r.network == network and (value := r.ratio(name)) is not None
            ]
            for network in networks
        }
        for name, label in PREDICTIONS.items()
    }


def chart(found: Sequence[Row]) -> Figure:
    """The figure of the study."""
    values = ratios(found)
    even = max(abs(v - 1) for row in values[PREDICTIONS["uniform"]].values() for v in row)
    own = [v for row in values[PREDICTIONS["weighted"]].values() for v in row]
    title = (
        f"Lemma 1 is right to {100 * even:.1f} % with one delay for all; with one a stage, "
        f"networks bear {min(own):.2f} to {max(own):.2f} times its rate"
    )
    return figures.ratios(values, title)


def table(found: Sequence[Row]) -> str:
    """Found over predicted, mean and spread over the seeds, a column for each network."""
    values = ratios(found)
    networks = list(next(iter(values.values())))
    lines = [f"{'rate found / predicted':<32}" + "".join(f"{name:>15}" for name in networks)]
    for label, row in values.items():
        cells = [_mean_and_spread(values) for values in row.values()]
        lines.append(f"{label:<32}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


def _mean_and_spread(found: Sequence[float]) -> str:
    return f"{statistics.mean(found):.2f} ± {statistics.pstdev(found):.2f}" if found else "none"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.studies.threshold")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="comma-separated")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds 0, 1, ... (5)")
    parser.add_argument("--write", action="store_true", help="ship the results with the lessons")
    args = parser.parse_args(argv)
    networks = args.networks.split(",")
    if unknown := set(networks) - set(NETWORKS):
        parser.error(f"there is no network {unknown.pop()!r}; there are {', '.join(NETWORKS)}")
    cache = Cache("threshold")
    pairs = [(network, seed) for network in networks for seed in range(args.seeds)]
    for network, seed in tqdm(pairs, unit="network", file=sys.stderr):
        cache.put({"edge": network, "seed": seed}, asdict(measure(network, seed)))
    if MARKED in pairs:
        for config, result in marks(*MARKED):
            cache.put(config, result)
    sys.stdout.write(table([r for r in rows(cache, networks) if r.seed < args.seeds]) + "\n")
    if args.write:
        cache.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
