"""Lesson 00: a stage's list of operations, and idle time read off a chart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...plan.clock import Event, simulate
from ...plan.ops import Op, parse
from ..answers import number
from ..excerpt import length
from ..exercise import Exercise, Property

ASKED = parse("F0 F1 F2 B0 B1 B2 U0")
LIST = 'a text of operations, such as "F0 B0 U0"'
MICROSECONDS = "a number of microseconds"


def as_text(answer: Any) -> str:
    """The list as text, from a text, a list of texts, or operations."""
    if isinstance(answer, list | tuple) and all(isinstance(word, str | Op) for word in answer):
        answer = " ".join(map(str, answer))
    if not isinstance(answer, str):
        raise ValueError(f"An answer is {LIST}, and this one is {answer!r}.")
    text = re.sub(r"[fbuer]\d+", lambda op: op[0].upper(), answer.replace(",", " "))
    try:
        return str(parse(text))
    except ValueError as error:
        raise ValueError(f"An answer is {LIST}, but {error}.") from None


def as_number(answer: Any) -> float:
    """A finite number, of whatever type."""
    value = number(answer)
    if value is None:
        raise ValueError(
            f"An answer is {MICROSECONDS}, without quotes or a unit, such as 250; this one is "
            f"{answer!r}."
        )
    return value


def each_once(text: str) -> str:
    """What stands in the list too often, not at all, or without having been asked for."""
    counts = Counter(parse(text))
    wrong = [op for op in {**dict.fromkeys(ASKED), **counts} if counts[op] != (op in ASKED)]
    if not wrong:
        return ""
    first = wrong[0]
    if first not in ASKED:
        return f"{first} does not belong there"
    return f"{first} stands there {counts[first]} times" if counts[first] else f"{first} is missing"


def in_order(text: str) -> str:
    """The first backward that stands before its forward."""
    place = {op: n for n, op in enumerate(parse(text))}
    pairs = zip(ASKED[:3], ASKED[3:6], strict=True)
    return next((f"{b} stands before {f}" for f, b in pairs if place[b] < place[f]), "")


def ascending(text: str) -> str:
    """The first backward that stands before one of an earlier microbatch."""
    order = [op for op in parse(text) if op.kind == "B"]
    pairs = zip(order, order[1:], strict=False)
    return next((f"{a} stands before {b}" for a, b in pairs if a.index > b.index), "")


def update_last(text: str) -> str:
    """What stands behind the update."""
    last = parse(text)[-1]
    return "" if last.kind == "U" else f"{last} stands behind U0"


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
            Property("F0 F1 F2 B0 B1 B2 U0 stand there exactly once, and no others", each_once),
            Property("a microbatch's backward comes after its forward", in_order),
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
        read=as_number,
        given="step",
    ),
)
