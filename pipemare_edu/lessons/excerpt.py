"""A few steps of a run to look at, each stage as if on a device of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from ..figures import replay
from ..plan.clock import Event
from ..trainer.run import Run


def excerpt(run: Run, steps: int = 1) -> list[Event]:
    """`steps` steps in a row, the first that the run kept of a full pipe, from one update of every
    stage to a later one, placed by the clock.

    An operation takes the median time of its kind at its stage, over the run's kept events: other
    programs disturb a single one now and then.  Raises ValueError if the run is too short.
    """
    for part in (run.trace.first, run.trace.last):
        rounds = _full_rounds(part, run)
        if starts := [k for k in rounds if all(k + n in rounds for n in range(steps))]:
            break
    else:
        raise ValueError(f"the run has no {steps} steps in a row with a full pipe: train longer")
    seconds = typical_seconds(run.trace.events)
    kept = [e for n in range(steps) for e in rounds[min(starts) + n]]
    return replay([e._replace(end=e.start + seconds[e.stage, e.kind]) for e in kept])


def typical_seconds(events: Sequence[Event]) -> dict[tuple[int, str], float]:
    """{(stage, kind): the median time of such an operation}."""
    times: dict[tuple[int, str], list[float]] = defaultdict(list)
    for e in events:
        times[e.stage, e.kind].append(e.end - e.start)
    return {key: median(values) for key, values in times.items()}


def length(events: Sequence[Event]) -> float:
    """Seconds from the first start to the last end."""
    return max(e.end for e in events) - min(e.start for e in events)


def idle_share(events: Sequence[Event], stage: int | None = None) -> float:
    """The share of that time in which a stage (from 0) does nothing; of all stages if None."""
    rows = {e.stage for e in events} if stage is None else {stage}
    busy = sum(e.end - e.start for e in events if e.stage in rows)
    return 1.0 - busy / (len(rows) * length(events))


def _full_rounds(events: Sequence[Event], run: Run) -> dict[int, list[Event]]:
    """{step: what each stage ran between its update before that step and its update of it}, for
    the steps at which every stage has as much to do as in any other."""
    upcoming: dict[int, int] = {}
    rounds: dict[int, list[Event]] = defaultdict(list)
    for e in reversed([e for e in events if e.kind != "E"]):
        if e.kind == "U":
            upcoming[e.stage] = e.index
        if e.stage in upcoming:
            rounds[upcoming[e.stage]].insert(0, e)
    size, stages = run.config["microbatches"], run.trace.stages
    return {
        k: found
        for k, found in rounds.items()
        if k >= run.trace.full_from and _is_full(found, stages, size)
    }


def _is_full(events: Sequence[Event], stages: int, microbatches: int) -> bool:
    counts = Counter((e.stage, e.kind) for e in events)
    return all(counts[i, kind] == microbatches for i in range(stages) for kind in "FB")
