"""A run: what a training run was and what it gave, as plain values.  Saved without pickle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plan.clock import simulate
from ..plan.ops import Op, Operations
from ..plan.schedules import evaluated
from ..plan.staleness import Delay, staleness
from .files import write_atomically
from .methods import Method
from .stage import Read
from .trace import Trace

FORMAT = "pipemare_edu run 1"
SAVED = "config losses metrics status diverged memory seconds note".split()


@dataclass(frozen=True)
class Delays:
    """Staleness of one stage, in updates: over its microbatches, measured by version stamps, and
    as the operation lists imply it."""

    mean: float
    max: int
    implied_mean: float
    implied_max: int


@dataclass(frozen=True)
class Staleness:
    """Per stage, the staleness of what forwards, backwards and re-runs read, once the pipe is
    full; recompute has None where nothing is re-run, and is empty without recompute."""

    forward: tuple[Delays, ...] = ()
    backward: tuple[Delays, ...] = ()
    recompute: tuple[Delays | None, ...] = ()


@dataclass(frozen=True)
class Utilization:
    """model: steady state of the clock.  run: fill, drain, T3 and evaluations included.
    measured: share of wall-clock time a worker computes; None with fewer than two workers."""

    model: float
    run: float
    measured: float | None = None


@dataclass(repr=False)
class Run:
    """The run so far.  status: running, done, cancelled, diverged or failed.

    config      what was asked for, as text and numbers
    losses      one number per step: the minibatch's training loss
    metrics     {name: [(steps done, value)]} from evaluations; "loss" is among them
    diverged    None or (step, stage, what), both counted from 0; the stage is the first whose
                weights are not finite any more, or the last one, where the loss is
    staleness   per stage, measured by version stamps beside what the lists imply
    memory      per stage {kind: bytes}, the most that was held at any time
    seconds     time spent computing
    note        how a run that did not end by itself was stopped
    """

    config: dict[str, Any]
    losses: list[float] = field(default_factory=list)
    metrics: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    status: str = "running"
    diverged: tuple[int, int, str] | None = None
    staleness: Staleness = Staleness()
    memory: list[dict[str, int]] = field(default_factory=list)
    trace: Trace = field(default_factory=lambda: Trace(0), repr=False)
    seconds: float = 0.0
    note: str = ""
    plan: Plan | None = field(default=None, repr=False)
    stop: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        loss = f", loss {self.losses[-1]:.4g}" if self.losses else ""
        scores = "".join(
            f", {name} {values[-1][1]:.4g}"
            for name, values in self.metrics.items()
            if name != "loss"
        )
        method = self.config.get("method", "?")
        return f"<Run {method}: {self.status}, {self.steps} steps{loss}{scores}>"

    @property
    def steps(self) -> int:
        """Optimizer steps whose loss is known."""
        return len(self.losses)

    @cached_property
    def utilization(self) -> Utilization:
        """Utilization by the clock, forward and backward taking one unit each."""
        if self.plan is None:
            return Utilization(0.0, 0.0)
        return self.plan.utilization(max(self.steps, 1))

    def cancel(self) -> None:
        """Ask the run to stop; it starts no new minibatch and its status becomes cancelled."""
        self.stop = True

    def save(self, path: str | Path) -> None:
        """Write everything but the weights to `path`, as JSON (non-finite numbers as NaN)."""
        values = {name: getattr(self, name) for name in SAVED}
        values |= {"staleness": asdict(self.staleness), "utilization": asdict(self.utilization)}
        values |= {"format": FORMAT, "trace": self.trace.as_json()}
        write_atomically(Path(path), json.dumps(values).encode())


def load(path: str | Path) -> Run:
    """The run that `Run.save` wrote.  Raises ValueError for a file that is not one."""
    try:
        values = json.loads(Path(path).read_bytes())
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise ValueError("another format")
        if missing := set(SAVED) - set(values):
            raise ValueError(f"no {', '.join(sorted(missing))}")
        both = values.pop("staleness")
        delays = {k: tuple(d and Delays(**d) for d in row) for k, row in both.items()}
        utilization = Utilization(**values.pop("utilization"))
        values["trace"] = Trace.from_json(values["trace"])
        values["metrics"] = {k: [(s, v) for s, v in x] for k, x in values["metrics"].items()}
        values["diverged"] = tuple(values["diverged"]) if values["diverged"] else None
        run = Run(staleness=Staleness(**delays), **values)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} is not a saved run of this version ({error})") from error
    run.__dict__["utilization"] = utilization
    return run


@dataclass(frozen=True)
class Plan:
    """What a run's operation lists were made from, so that they can be made again."""

    method: Method
    stages: int
    microbatches: int
    first: int
    every: int = 0
    evaluates: bool = False

    def lists(self, last: int) -> list[Operations]:
        """Every stage's operations up to step `last`."""
        return [
            Operations(self.operations(i, last), inside=rerun is not None and not rerun.first)
            for i, rerun in enumerate(self.method.reruns(self.stages))
        ]

    def operations(self, stage: int, last: int) -> Iterator[Op]:
        """One stage's operations for the steps from `first` to `last`."""
        ops = self.method.operations(stage, self.stages, self.microbatches, range(self.first, last))
        return evaluated(ops, self.every, last - 1) if self.evaluates else ops

    @property
    def full(self) -> int:
        """The first step at which the pipe has been full for a whole minibatch at every stage."""
        depth = max(self.method.depths(self.stages))
        return max(self.first, self.method.t3) + -(-depth // self.microbatches)

    def utilization(self, steps: int) -> Utilization:
        """By the clock: steady state without evaluations, and a run of `steps` steps with them."""
        edge = -(-2 * self.stages // self.microbatches) + 1
        bare = Plan(replace(self.method, t3=0), self.stages, self.microbatches, 0)
        steady = simulate(bare.lists(4 * edge + 4)).steady_utilization
        whole = simulate(self.lists(self.first + steps), evaluate=1.0)
        return Utilization(steady or whole.utilization, whole.utilization)

    def staleness(self, measured: Sequence[Counter[Read]]) -> Staleness:
        """Per stage, measured delays beside implied ones, over the steps of a full pipe (over
        all steps when the run ended before)."""
        full = any(read.full for row in measured for read in row)
        columns: dict[str, list[Delays | None]] = {"forward": [], "backward": [], "recompute": []}
        for i, row in enumerate(measured):
            kept = Counter({read: n for read, n in row.items() if read.full == full})
            last = self.full + 2 if full else self.first + sum(row.values()) // self.microbatches
            implied = [
                d for d in staleness(self.operations(i, last)) if full == (d.step >= self.full)
            ]
            for name, out in columns.items():
                own = Counter[int]()
                for read, n in kept.items():
                    if (delay := getattr(read, name)) is not None:
                        own[delay] += n
                absent = name == "recompute" and not own
                out.append(None if absent else self._delays(own, implied, name))
        if not any(columns["recompute"]):
            columns["recompute"].clear()
        return Staleness(**{name: tuple(out) for name, out in columns.items()})  # type: ignore

    def _delays(self, measured: Counter[int], implied: Sequence[Delay], name: str) -> Delays:
        column = "forward" if self.method.stashes else name
        listed = Counter(getattr(d, column) for d in implied if getattr(d, name) is not None)
        return Delays(
            _mean(measured), max(measured, default=0), _mean(listed), max(listed, default=0)
        )


def _mean(counts: Counter[int]) -> float:
    total = sum(counts.values())
    return sum(value * n for value, n in counts.items()) / total if total else 0.0
