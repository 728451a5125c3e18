"""A part of a run's events on the virtual clock, as if each stage had a device of its own.

In this engine the stages run in turn, so the times of a run's events say nothing about a pipeline.
Their durations do: placed by the clock, they show the pipeline that the run stands for.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..plan.clock import Event, simulate
from ..plan.ops import Op, sender

Key = tuple[int, str, int]  # stage, kind, index


def replay(
    events: Iterable[Event], unit: dict[str, float] | None = None, message: float = 0.0
) -> list[Event]:
    """The same operations, placed by the virtual clock; versions stay as they were stamped.

    events   a gapless part of a run, in the order in which it ran (run.trace.first or .last);
             what was under way before it counts as done
    unit     None: every operation takes as long as it was measured to take.  Or model time: a
             duration for each kind, such as {"F": 1, "B": 2}; kinds left out take none
    message  time until a neighbour has what an operation sent
    """
    events = list(events)
    stages = 1 + max((e.stage for e in events), default=-1)
    own = {_key(e): e for e in events}
    seconds = {
        key: e.end - e.start if unit is None else unit.get(e.kind, 0.0) for key, e in own.items()
    }
    lists = _before(own, stages)
    for e in events:
        lists[e.stage].append(Op(e.kind, e.index))

    def cost(stage: int, op: Op) -> float:
        return seconds.get((stage, *op), 0.0)

    done = simulate(lists, cost, cost, message, cost, cost)
    if done.deadlock:
        raise ValueError(f"these events are not a gapless part of a run: {done.deadlock}")
    return [
        e._replace(version=own[_key(e)].version)
        for row in done.events
        for e in row
        if _key(e) in own
    ]


def _before(own: dict[Key, Event], stages: int) -> list[list[Op]]:
    """Per stage, the operations outside `own` that those in it wait for, in an order that runs."""
    missing: set[Key] = set()
    todo = list(own)
    while todo:
        for key in _needs(todo.pop(), stages):
            if key not in own and key not in missing:
                missing.add(key)
                todo.append(key)
    lists: list[list[Op]] = [[] for _ in range(stages)]
    for stage, kind, index in sorted(missing, key=lambda k: ("FBE".index(k[1]), k[2])):
        lists[stage].append(Op(kind, index))
    return lists


def _needs(key: Key, stages: int) -> Iterable[Key]:
    """What an operation waits for: its message, and a B or R the forward of its own stage."""
    stage, kind, index = key
    here = sender(Op(kind, index), stage, stages)
    if here is not None:
        yield here, kind, index
    if kind in "BR":
        yield stage, "F", index


def _key(e: Event) -> Key:
    return e.stage, e.kind, e.index
