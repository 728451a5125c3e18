"""Does a network obey Lemma 1?  The largest stable rate under delay, predicted and found.

    python -m pipemare_edu.studies.threshold [--networks batchnorm,tanh] [--seeds 5] [--write]

prints the table; --write ships it with the lessons, and the trials that lesson 03 marks on its map.

FINDINGS
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

from ..lessons.cache import Cache
from ..plan.theory import lemma1
from .edge import Trial, find
from .linear import kernels, linear_edge
from .minimum import NETWORKS, batch, copied, minimum
from .point import Delays, Point

SEEDS = 5
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

    def ratio(self, prediction: str) -> float:
        """Found over predicted; above 1 the network bears more than was predicted."""
        return self.found / float(getattr(self, prediction))


UNIFORM = 4
COLUMNS = {
    "weighted": "weighted delay",
    "by_stage": "delay by stage",
    "linear": "all directions",
    "longest": "longest delay",
    "mean": "mean delay",
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


def rows(cache: Cache, networks: Sequence[str] = tuple(NETWORKS)) -> list[Row]:
    """The shipped rows, by network and seed."""
    kept = [Row(**value) for config, value in cache.matching() if "edge" in config]
    order = {name: n for n, name in enumerate(networks)}
    return sorted((r for r in kept if r.network in order), key=lambda r: (order[r.network], r.seed))


def marks(network: str, seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(configuration, result) of every trial that the map shows."""
    for delays, multiple in itertools.product(MARKS, MULTIPLES):
        tried = find(network, seed, "minimum", delays, multiple)
        config = trial_config(network, seed, "minimum", delays, multiple)
        yield config, trial_result(tried.at, tried.trials[0])


def table(found_rows: Sequence[Row]) -> str:
    """Found over predicted, mean and spread over the seeds, a line for each network."""
    heads = [*COLUMNS.values(), f"delay {UNIFORM} on all", "no delay", "from scratch"]
    lines = [f"{'found / predicted':<12}" + "".join(f"{head:>18}" for head in heads)]
    for network in dict.fromkeys(r.network for r in found_rows):
        mine = [r for r in found_rows if r.network == network]
        values = [[r.ratio(name) for r in mine] for name in COLUMNS]
        values += [[r.uniform for r in mine], [r.control for r in mine]]
        cells = [f"{statistics.mean(v):.3f} ± {statistics.pstdev(v):.3f}" for v in values]
        scratch = [r.scratch for r in mine if r.scratch is not None]
        cells.append(f"{min(scratch):.2g} to {max(scratch):.2g}" if scratch else "none")
        lines.append(f"{network:<17}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


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
