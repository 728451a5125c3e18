"""Lesson 00: a stage's list of operations, and idle time read off a chart."""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.clock import Event, simulate
from ..excerpt import length
from ..exercise import Exercise, Property
from ..lists import LIST, as_text, ascending, each_once, forward_first, one_step, update_last
from ..reading import number

ASKED = one_step(microbatches=3)
MICROSECONDS = "a number of microseconds"


def in_flight(text: str) -> str:
    """How many microbatches are in flight, if more than two."""
    peak = simulate([text]).in_flight[0]
    return f"yours has {peak} in flight at once" if peak > 2 else ""


def short_list() -> str:
    return "F0 F1 B0 F2 B1 B2 U0"


def within_the_chart(microseconds: float, events: Sequence[Event]) -> str:
    """A reading that cannot be an idle time on this chart."""
    if microseconds < 0:
        return f"{microseconds:g} is less than nothing"
    if microseconds > 1e6 * length(events):
        return f"{microseconds:g} microseconds is more than the chart is long"
    return ""


def adds_up(microseconds: float, events: Sequence[Event]) -> str:
    """A reading that is off by more than a tenth of the chart's length."""
    off = microseconds - idle_of_stage_4(events)
    if abs(off) <= 0.1 * 1e6 * length(events):
        return ""
    return f"{microseconds:g} microseconds is too {'much' if off > 0 else 'little'}"


def idle_of_stage_4(events: Sequence[Event]) -> float:
    whole = max(e.end for e in events) - min(e.start for e in events)
    busy = sum(e.end - e.start for e in events if e.stage == 3)
    return 1e6 * (whole - busy)


EXERCISES = (
    Exercise(
        "0.1",
        LIST,
        (
            Property(
                f"{ASKED} stand there exactly once, and no others",
                lambda text: each_once(text, ASKED),
            ),
            Property("a microbatch's backward comes after its forward", forward_first),
            Property("backwards come in the order of the microbatches", ascending),
            Property("the update comes last, when all three gradients are there", update_last),
        ),
        (
            "F0 puts microbatch 0 in flight, B0 takes it out. Count along your list: +1 at every "
            "F, -1 at every B.",
            "Start with F0 F1: now two are in flight. Only a backward makes room for F2.",
            "F0 F1, then a backward, then F2, then the backwards that are left, then U0.",
        ),
        short_list,
        target=Property("at most two microbatches in flight", in_flight),
        read=as_text,
    ),
    Exercise(
        "0.2",
        MICROSECONDS,
        (
            Property("idle time fits on the chart", within_the_chart),
            Property(
                "your reading agrees with what the chart's events add up to, give or take a tenth "
                "of the chart's length",
                adds_up,
            ),
        ),
        (
            "Idle is where stage 4 has no bar: look along its row for hatched stretches, at both "
            "ends too.",
            "Hover over a hatched stretch: it says how long it is. Add up those of stage 4; a "
            "millisecond is 1000 microseconds.",
            "Or compute it from the events behind the chart: the last end less the first start, "
            "and from that take end - start of every event whose stage is 3 (code counts stages "
            "from 0). Times 1,000,000, because events are in seconds.",
        ),
        idle_of_stage_4,
        read=number(MICROSECONDS, "250"),
        given="step",
    ),
)
