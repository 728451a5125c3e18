"""Lesson 09, a trace: what holds up a pipe, a stage or a link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..exercise import Exercise, Property
from ..modelled import Devices, Events, Thing, machines

THING = 'a function of (events) that returns a pair such as ("stage", 3) or ("link", 2)'

# 9.3 the bottleneck

CASES = 22


def is_thing(bottleneck: Callable[..., Any]) -> str:
    """What is neither a stage nor a link."""
    for devices in machines(CASES):
        found = bottleneck(Events.of(devices.timeline))
        if not isinstance(found, list | tuple) or tuple(found) not in devices.needs:
            return f"for one trace it returns {found!r}; stages are 1 to 4 and links 1 to 3"
    return ""


def gains(kind: str) -> Callable[[Callable[..., Any]], str]:
    """The first trace with a stage (a link) as the bottleneck that gains nothing where it says."""

    def fault(bottleneck: Callable[..., Any]) -> str:
        for devices in machines(CASES):
            found = tuple(bottleneck(Events.of(devices.timeline)))
            if devices.slowest[0] == kind and not gained(devices, found):
                return _useless(devices, found)
        return ""

    return fault


def gained(devices: Devices, thing: Thing) -> bool:
    """Does the pipe get faster, if this thing becomes twice as fast?"""
    return devices.faster(thing).interval < 0.999 * devices.interval


def _useless(devices: Devices, found: Thing) -> str:
    kind, i = found
    still = f"with {kind} {i} twice as fast a microbatch still takes {devices.interval:g} units"
    if devices.slowest[0] == "link" != kind:
        return f"{still}; none of the stages computes that long"
    return f"{still}, and it needs only {devices.needs[found]:g} of {kind} {i}"


def bottleneck(events: Sequence[Any]) -> tuple[str, int]:
    ends = {(e.stage, e.kind, e.index): e.end for e in events}
    microbatches = sum(e.stage == 0 and e.kind == "F" for e in events)
    needs = dict.fromkeys([("stage", i) for i in (1, 2, 3, 4)], 0.0)
    for e in events:
        needs["stage", e.stage + 1] += (e.end - e.start) / microbatches
        if e.kind == "F" and e.stage > 0:
            way = e.start - ends[e.stage - 1, "F", e.index]
            needs["link", e.stage] = min(way, needs.get(("link", e.stage), way))
    return max(needs, key=lambda thing: needs[thing])


EXERCISES = (
    Exercise(
        "9.3",
        THING,
        (
            Property("it names a stage or a link", is_thing),
            Property(
                "what it names makes the pipe faster, if that becomes twice as fast, where a stage "
                "is the bottleneck",
                gains("stage"),
            ),
            Property(
                "what it names makes the pipe faster, if that becomes twice as fast, where a link "
                "is the bottleneck",
                gains("link"),
            ),
        ),
        (
            "A full pipe is as fast as the thing that takes longest over one microbatch. What "
            "does a microbatch take of a stage? Of a link?",
            "Of a stage: all that it computes, divided by the number of microbatches. Of a link: "
            "the time from the end of F<m> at one stage to its start at the next. That is longer "
            "where the next stage is busy, so take the least of them.",
            "Keep ends = {(e.stage, e.kind, e.index): e.end for e in events}. For each F with "
            "e.stage > 0 the way is e.start - ends[e.stage - 1, 'F', e.index]; keep the least for "
            "each link. Then the largest of all seven numbers. Code counts stages from 0.",
        ),
        bottleneck,
        function=True,
    ),
)
