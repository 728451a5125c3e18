"""What can be wrong with the lists of all stages together: a function (stage, P, N) -> the list of
one stage, or the lists themselves.

Every fault is a sentence's worth of words, or "" if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..figures.bubbles import idle_fraction, percent
from ..plan.clock import simulate
from ..plan.ops import parse
from .cases import case, cases
from .lists import as_text, each_once, one_step

Order = Callable[[int, int, int], Any]
FOUR = 'four lists of operations, one for each stage, such as ["F0 B0 U0", ...]'


def orders(answer: Order, stages: int, microbatches: int) -> list[str]:
    """The list of every stage, as text."""
    return [as_text(answer(stage, stages, microbatches)) for stage in range(1, stages + 1)]


def on_every_list(fault: Callable[[str, int], str]) -> Callable[[Order], str]:
    """What is wrong with the first list in which `fault` of (text, N) finds something."""

    def find(answer: Order) -> str:
        for stages, microbatches in cases():
            for stage, text in enumerate(orders(answer, stages, microbatches), start=1):
                if seen := fault(text, microbatches):
                    return f"{case(stages, microbatches)}in the list of stage {stage}, {seen}"
        return ""

    return find


def all_run(answer: Order) -> str:
    """Where the lists of all stages, run together, deadlock."""
    for stages, microbatches in cases():
        if seen := stuck(orders(answer, stages, microbatches)):
            return f"{case(stages, microbatches)}{seen}"
    return ""


def stuck(lists: Sequence[str]) -> str:
    """Who waits for what in a deadlock."""
    report = simulate(lists).deadlock
    waits = [line.strip() for line in (report or "").splitlines() if "waits to run" in line]
    return f"they wait for ever: {'; '.join(waits)}" if waits else ""


def few_in_flight(answer: Order) -> str:
    """The first stage with more than P - i + 1 microbatches in flight."""
    for stages, microbatches in cases():
        timeline = simulate(orders(answer, stages, microbatches))
        for stage, peak in enumerate(timeline.in_flight, start=1):
            if peak > (most := stages - stage + 1):
                return f"{case(stages, microbatches)}stage {stage} has {peak} in flight, not {most}"
    return ""


def idle_as_gpipe(answer: Order) -> str:
    """The first pair of P and N with more idle time than GPipe has."""
    for stages, microbatches in cases():
        idle = simulate(orders(answer, stages, microbatches)).idle
        least = idle_fraction(stages, microbatches)
        if idle > float(least) + 1e-9:
            return (
                f"{case(stages, microbatches)}your stages are idle {percent(idle)} of the time, "
                f"GPipe's {percent(least)}"
            )
    return ""


def in_each(lists: list[str], fault: Callable[[str], str]) -> str:
    found = ((stage, fault(text)) for stage, text in enumerate(lists, start=1))
    return next((f"in the list of stage {i}, {seen}" for i, seen in found if seen), "")


def as_lists(answer: Any) -> list[str]:
    """Lists as texts, from a text with a line for each stage or a list of lists."""
    if isinstance(answer, str):
        answer = [line for line in answer.splitlines() if line.strip()]
    if not isinstance(answer, list | tuple) or len(answer) != 4:
        got = f"{len(answer)} of them" if isinstance(answer, list | tuple) else repr(answer)
        raise ValueError(f"An answer is {FOUR}; this is {got}.")
    return [as_text(one) for one in answer]


def complete(lists: list[str]) -> str:
    """The first list that has not every operation of the same microbatches once."""
    last = max((op.index for text in lists for op in parse(text) if op.kind == "F"), default=0)
    return in_each(lists, lambda text: each_once(text, one_step(last + 1)))


def at_most_four(lists: list[str]) -> str:
    for stage, peak in enumerate(simulate(lists).in_flight, start=1):
        if peak > 4:
            return f"stage {stage} has {peak} in flight"
    return ""


def at_most_30_percent(lists: list[str]) -> str:
    idle = simulate(lists).idle
    return f"yours are idle {percent(idle)}" if idle > 0.3 + 1e-9 else ""
