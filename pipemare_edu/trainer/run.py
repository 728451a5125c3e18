"""A run: what a training run was and what it gave, as plain values.  Saved without pickle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..plan.clock import simulate
from ..plan.ops import Op, Operations
from ..plan.schedules import evaluated
from ..plan.staleness import Delay, staleness
from .chrome import chrome
from .files import as_path, write_atomically
from .methods import Method
from .stage import Read
from .trace import Trace
from .waiting import Waiting, waiting

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
    measured: per worker, the share of wall-clock time it computes; None with fewer than two."""

    model: float
    run: float
    measured: tuple[float, ...] | None = None


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
        """By the clock, forward and backward taking one unit each; and as workers measured it."""
        if self.plan is None:
            return Utilization(0.0, 0.0)
        by_clock = self.plan.utilization(max(self.steps, 1))
        return replace(by_clock, measured=self.trace.busy(self.plan.homes))

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """Per stage, seconds computing, with a message on its way, and waiting for one; among the
        trace's kept events.  Empty unless several workers ran."""
        homes = self.plan.homes if self.plan else ()
        return waiting(self.trace.windows, homes) if homes else ()

    def save_trace(self, path: str | Path) -> None:
        """Write the trace's kept events to `path` for Perfetto or chrome://tracing; where a longer
        run kept none, the file says so."""
        homes = (self.plan.homes if self.plan else ()) or (0,) * self.trace.stages
        write_atomically(path, json.dumps(chrome(self.trace.windows, homes)).encode())

    def cancel(self) -> None:
        """Ask the run to stop; it starts no new minibatch and its status becomes cancelled."""
        self.stop = True

    def save(self, path: str | Path) -> None:
        """Write everything but the weights to `path`, as JSON (non-finite numbers as NaN)."""
        values = {name: getattr(self, name) for name in SAVED}
        values |= {"staleness": asdict(self.staleness), "utilization": asdict(self.utilization)}
        values |= {"format": FORMAT, "trace": self.trace.as_json()}
        write_atomically(path, json.dumps(values).encode())


def load(path: str | Path) -> Run:
    """The run that `Run.save` wrote.  Raises ValueError for a file that is not one."""
    path = as_path(path)
    try:
        values = json.loads(path.read_bytes())
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise ValueError("another format")
        if missing := set(SAVED) - set(values):
            raise ValueError(f"no {', '.join(sorted(missing))}")
        both = values.pop("staleness")
        delays = {k: tuple(d and Delays(**d) for d in row) for k, row in both.items()}
        utilization = Utilization(**values.pop("utilization"))
        if utilization.measured is not None:
            utilization = replace(utilization, measured=tuple(utilization.measured))
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
    """What a run's operation lists were made from, so that they can be made again.

    save_every  after every so many steps (counted from step 0) the pipe drains for a checkpoint
    homes       each stage's worker; empty when all stages run in one process
    """

    method: Method
    stages: int
    microbatches: int
    first: int
    every: int = 0
    evaluates: bool = False
    save_every: int = 0
    homes: tuple[int, ...] = ()

    def lists(self, last: int) -> list[Operations]:
        """Every stage's operations up to step `last`."""
        return [
            Operations(self.operations(i, last), inside=rerun is not None and not rerun.first)
            for i, rerun in enumerate(self.method.reruns(self.stages))
        ]

    def operations(self, stage: int, last: int) -> Iterator[Op]:
        """One stage's operations for the steps from `first` to `last`."""
        for span in self.spans(last):
            yield from self.span(stage, span, last)

    def spans(self, last: int) -> list[range]:
        """The steps from `first` to `last`, cut where the pipe drains for a checkpoint."""
        size = self.save_every or max(last, 1)
        cuts = [self.first, *range(self.first - self.first % size + size, last, size), last]
        return [range(a, b) for a, b in pairwise(cuts)]

    def drains(self, step: int) -> bool:
        """Is a checkpoint due after `step` steps?"""
        return bool(self.save_every) and step % self.save_every == 0

    def span(self, stage: int, steps: range, last: int) -> Iterator[Op]:
        """One stage's operations for `steps`, from an empty pipe to an empty pipe."""
        ops = self.method.operations(stage, self.stages, self.microbatches, steps)
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
            last = self.first + sum(row.values()) // self.microbatches
            if full and not self.save_every:
                last = self.full + 2  # from there on every minibatch is like the others
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
