"""What a step costs under different assumptions, and so how long a method takes to a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from .. import tasks
from ..figures import Factors
from ..figures.race import Racer
from ..plan.scale import time_to_target
from ..reproduce.presets import METHODS
from ..reproduce.summary import clock, pace
from ..trainer.registry import unknown
from .reproduction import case_of, section, times
from .stage_times import StageTimes

STAGES = ("alike", "measured")  # how long a stage takes
BASELINE = "gpipe"


@dataclass(frozen=True)
class Prices:
    """What a minibatch costs, once the pipe is full.

    synchronous   of the baseline, and of T3's warm-up
    asynchronous  {method: its own}
    """

    synchronous: float
    asynchronous: Mapping[str, float]

    def of(self, method: str, steps: float, t3: int) -> float:
        """The time of a method's first `steps` steps, of which `t3` are synchronous."""
        waiting = min(steps, t3)
        return waiting * self.synchronous + (steps - waiting) * self.asynchronous[method]


@lru_cache(maxsize=64)
def prices(task: str, stages: str = "alike", bubble: float = 1.0) -> Prices:
    """Prices on a device per stage, messages free.

    stages  "alike": all take as long, and the unit is a synchronous step with GPipe's bubble;
            "measured": seconds, from how long each stage's operations took
    bubble  how much of GPipe's bubble a synchronous step has: 1 for GPipe, 1/v for v chunks a
            device, 0 for a schedule without a bubble

    Raises ValueError for what is not known, and where nothing was measured.
    """
    if stages not in STAGES:
        raise ValueError(unknown("stages", stages, STAGES))
    if not 0 <= bubble <= 1:
        raise ValueError(f"bubble is {bubble!r}: give a share of GPipe's, from 0 to 1")
    on = case_of(task)
    own = measured(task) if stages == "measured" else _alike(task)
    full = min(own[name] for name, method in on.methods.items() if not method.synchronous)
    waiting = full + bubble * (own[BASELINE] - full)
    return Prices(waiting, {n: waiting if n == BASELINE else v for n, v in own.items()})


def _alike(task: str) -> dict[str, float]:
    on = case_of(task)
    intervals = {name: clock(on, method).interval for name, method in on.methods.items()}
    return {name: t / intervals[BASELINE] for name, t in intervals.items()}


def measured(task: str) -> dict[str, float]:
    """{method: seconds per minibatch}, by the clock from the stages' measured times."""
    known = times(task)
    if set(known) != set(METHODS):
        raise ValueError(f"no times of {task}'s stages are shipped: use stages='alike'")
    return intervals(task, known)


def intervals(task: str, known: Mapping[str, StageTimes]) -> dict[str, float]:
    """{method: seconds per minibatch} from stage times, by the clock."""
    on = case_of(task)
    n = tasks.get(on.part.task).setting(on.network).microbatches
    return {name: t.interval(on.methods[name], n) for name, t in known.items()}


def found(
    task: str, share: float, stages: str = "alike", bubble: float = 1.0
) -> dict[str, Factors | None]:
    """{method: the factors of its time to target}; None for one of which no run gets there.

    share  of GPipe's quality that is the target
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share!r}: give one above 0, 1 at most")
    on, at, part = case_of(task), prices(task, stages, bubble), section(task, share)
    steps = {row.method: row.steps for row in part.rows}
    baseline = replace(clock(on, on.methods[BASELINE]), interval=at.synchronous)
    out: dict[str, Factors | None] = {}
    for row in part.rows:
        count, base = row.steps, steps[BASELINE]
        if not count or not base:
            out[row.method] = None
            continue
        own = replace(baseline, interval=at.asynchronous[row.method])
        t3 = min(on.methods[row.method].t3, count)
        made = time_to_target(own, baseline, count, base, t3)
        note = f"{row.reached} of {row.runs} runs get there, after {count} steps"
        out[row.method] = Factors(made.utilization, made.step_ratio, made.warmup_bill, note)
    return out


def over_time(r: Racer, task: str, axis: str) -> list[float]:
    """When a run's evaluations were: in steps, or by `prices` in model time or in seconds."""
    if axis == "steps":
        return [float(k) for k, _ in r.scores]
    at = prices(task, "alike" if axis == "model time" else "measured")
    t3 = case_of(task).methods[r.method].t3
    return [at.of(r.method, k, t3) for k, _ in r.scores]


def metric(task: str) -> str:
    """The score by which a task's runs are followed."""
    return pace(tasks.get(case_of(task).part.task))
