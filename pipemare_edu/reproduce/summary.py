"""Records of runs to rows of numbers: a method on a task, over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .. import tasks
from ..compare import final, memory_factor
from ..plan.copies import reported_factor
from ..plan.machine import Machine, Strategy, uniform
from ..plan.scale import Forecast, forecast, time_to_target
from ..runs import Record
from ..tasks import Task
from ..trainer.methods import Method
from . import reported
from .presets import METHODS
from .reported import Value
from .study import Case

TARGET = 0.95  # of GPipe's quality


@dataclass(frozen=True)
class Row:
    """A method on a task.  None: not known, for want of runs.

    runs, diverged   how many there are, and how many of them diverged
    mean, spread     of the score after the last step; a run that diverged counts 0
    staleness        of stage 1's forward weights, in steps, measured once the pipe is full
    memory           weights, gradients, optimizer and extra copies over the first three, counted
    memory_formula   the same by the paper's formula for stashing
    utilization      GPipe's time per minibatch over this method's, by the clock
    target           the quality to be reached, a share of GPipe's, in the metric `pace`
    reached          how many runs reach it; `steps` is their mean number of steps until then
    step_ratio       those steps over GPipe's
    t3_bill          what T3's synchronous steps add
    time             to target, over GPipe's: step_ratio * t3_bill / utilization
    """

    task: str
    network: str
    method: str
    score: str
    runs: int
    diverged: int
    mean: float | None
    spread: float | None
    staleness: float | None
    memory: float | None
    memory_formula: float | None
    utilization: float
    pace: str
    target: float | None
    reached: int
    steps: int | None
    step_ratio: float | None
    t3_bill: float | None
    time: float | None
    reported_setting: str
    reported_quality: Value | None
    reported_memory: str
    reported_utilization: str


def pace(task: Task) -> str:
    """The metric that tells during a run how far it is: the score, or if that needs a search over
    outputs the first one that does not."""
    return task.score if task.score in task.metrics else next(iter(task.metrics))


def clock(case: Case, method: Method) -> Forecast:
    """`method` with a device per stage, all stages alike, backwards twice a forward's work, and
    messages that take no time."""
    setting = tasks.get(case.part.task).setting(case.network)
    depth = method.depth if isinstance(method.depth, str) else tuple(method.depth)
    strategy = Strategy(depth, setting.microbatches)
    return forecast(uniform(setting.stages), Machine(), strategy)


def target(case: Case, records: Sequence[Record], share: float) -> float | None:
    """`share` of what GPipe's runs end with, None without any."""
    metric = pace(tasks.get(case.part.task))
    ends = [final(r, metric) for r in records if r["method"] == "gpipe"]
    return share * statistics.mean(ends) if ends else None


def steps_to(record: Record, metric: str, wanted: float) -> int | None:
    """The steps after which an evaluation first shows `wanted`; None for a run that does not get
    there, or that diverges."""
    if record["status"] == "diverged":
        return None
    values = record["metrics"].get(metric, [])
    return next((step for step, v in values if v is not None and v >= wanted), None)


def summarize(case: Case, records: Sequence[Record], share: float = TARGET) -> list[Row]:
    """A row for every method, in the order of the report."""
    baseline, wanted = clock(case, case.methods["gpipe"]), target(case, records, share)
    mine = {name: [r for r in records if r["method"] == name] for name in METHODS}
    paces = {name: _pace(case, runs, wanted) for name, runs in mine.items()}
    return [
        _row(case, name, mine[name], wanted, paces[name], paces["gpipe"], baseline)
        for name in METHODS
    ]


def _pace(case: Case, records: Sequence[Record], wanted: float | None) -> list[int]:
    """Steps to target of the runs that reach it."""
    if wanted is None:
        return []
    metric = pace(tasks.get(case.part.task))
    steps = (steps_to(r, metric, wanted) for r in records)
    return [k for k in steps if k is not None]


def _row(
    case: Case, name: str, records: Sequence[Record], wanted: float | None,
    steps: Sequence[int], baseline_steps: Sequence[int], baseline: Forecast,
) -> Row:  # fmt: skip
    task, method = tasks.get(case.part.task), case.methods[name]
    scores = [final(r, task.score) for r in records]
    own, known = clock(case, method), reported.row(case.part.kind, case.network)
    mean = round(statistics.mean(steps)) if steps else None
    factors: tuple[float | None, ...] = (None, None, None)
    if mean and baseline_steps:
        at = time_to_target(
            own, baseline, mean, round(statistics.mean(baseline_steps)), min(method.t3, mean)
        )
        factors = at.step_ratio, at.warmup_bill, at.seconds / at.baseline_seconds
    return Row(
        task=case.part.kind,
        network=case.network,
        method=name,
        score=task.score,
        runs=len(records),
        diverged=sum(r["status"] == "diverged" for r in records),
        mean=statistics.mean(scores) if scores else None,
        spread=statistics.pstdev(scores) if len(scores) > 1 else None,
        staleness=max((r["staleness"]["forward"][0]["mean"] for r in records), default=None),
        memory=max(map(memory_factor, records), default=None),
        memory_formula=_formula(case, method, records) if method.stashes else None,
        utilization=baseline.interval / own.interval,
        pace=pace(task),
        target=wanted,
        reached=len(steps),
        steps=mean,
        step_ratio=factors[0],
        t3_bill=factors[1],
        time=factors[2],
        reported_setting=known.setting if known else "",
        reported_quality=known.quality.get(name) if known else None,
        reported_memory=known.memory[name] if known else "",
        reported_utilization=known.utilization if known else "",
    )


def _formula(case: Case, method: Method, records: Sequence[Record]) -> float | None:
    """The paper's memory factor of stashing, for the weights and the optimizer that ran."""
    if not records:
        return None
    memory = records[0]["memory"]
    n = tasks.get(case.part.task).setting(case.network).microbatches
    copies = sum(s["optimizer"] for s in memory) / sum(s["gradients"] for s in memory)
    weights = [s["gradients"] for s in memory]
    return reported_factor(weights, method.depths(len(memory)), n, round(copies))
