"""What a step costs under different assumptions, and so how long a method takes to a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import mean
from typing import NamedTuple

from .. import tasks
from ..checks import positive, unknown
from ..figures import Factors
from ..figures.race import Racer
from ..plan.scale import Forecast, time_to_target
from ..reproduce import summary
from ..reproduce.presets import METHODS
from ..reproduce.summary import clock, pace, steps_to
from .reproduction import case_of, records, times
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
    if not isinstance(bubble, int | float) or not 0 <= bubble <= 1:
        raise ValueError(f"bubble is {bubble!r}: give a share of GPipe's, from 0 to 1")
    on = case_of(task)
    own = measured(task) if stages == "measured" else _alike(task)
    full = min(own[name] for name, method in on.methods.items() if not method.synchronous)
    waiting = full + bubble * (own[BASELINE] - full)
    return Prices(waiting, {n: waiting if n == BASELINE else v for n, v in own.items()})


@lru_cache(maxsize=64)
def _by_clock(task: str, method: str) -> Forecast:
    return clock(case_of(task), case_of(task).methods[method])


def _alike(task: str) -> dict[str, float]:
    on = case_of(task)
    intervals = {name: _by_clock(task, name).interval for name in on.methods}
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
    at, known = prices(task, stages, bubble), arrivals(task, share)
    base = known[BASELINE]
    baseline = replace(_by_clock(task, BASELINE), interval=at.synchronous)
    out: dict[str, Factors | None] = {}
    for name, mine in known.items():
        if not mine.steps or not base.steps:
            out[name] = None
            continue
        own = replace(baseline, interval=at.asynchronous[name])
        t3 = min(case_of(task).methods[name].t3, mine.steps)
        made = time_to_target(own, baseline, mine.steps, base.steps, t3)
        parts = made.utilization, made.step_ratio, made.warmup_bill
        out[name] = Factors(*parts, mine.reached, mine.runs, mine.steps)
    return out


class Arrived(NamedTuple):
    """How many runs of a method reach a target, and their mean steps until then, 0 for none."""

    runs: int
    reached: int
    steps: int


def arrivals(task: str, share: float) -> dict[str, Arrived]:
    """{method: how soon its runs reach the target}; as in the report, but fast enough to follow a
    slider."""
    mine, goal = records(task), wanted(task, share)
    out = {}
    for name in METHODS:
        runs = [r for r in mine if r["method"] == name]
        steps = [steps_to(r, metric(task), goal or 0.0) for r in runs]
        there = [k for k in steps if k is not None]
        out[name] = Arrived(len(runs), len(there), round(mean(there)) if there else 0)
    return out


def wanted(task: str, share: float) -> float | None:
    """The score that is the target; None without a run of the baseline."""
    return summary.target(case_of(task), records(task), positive("share", share, 1.0))


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
