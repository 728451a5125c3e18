"""The exercises of lesson 00: every wrong answer fails at the property it breaks."""

from __future__ import annotations

import itertools
import random

import pytest

import pipemare_edu as pm
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find

LIST, IDLE = find("0.1"), find("0.2")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("F0 F1 B0", "F2 is missing"),
        ("F0 F0 F1 F2 B0 B1 B2 U0", "F0 stands there 2 times"),
        ("F0 F1 F2 B0 B1 B2 U0 U1", "U1 does not belong there"),
        ("B0 F0 F1 F2 B1 B2 U0", "B0 stands before F0"),
        ("F0 F1 F2 B1 B0 B2 U0", "B1 stands before B0"),
        ("F0 F1 F2 B0 B1 U0 B2", "B2 stands behind U0"),
        ("F0, F1", "F2 is missing"),
        ("F0 F1 go", "operation 3 is 'go'"),
        ("", "F0 is missing"),
        (None, "An answer is a text of operations"),
        (3, "this one is 3"),
        ([0, 1], "this one is [0, 1]"),
    ],
)
def test_list_is_wrong(answer: str, says: str) -> None:
    verdict = judge(LIST, answer)
    assert verdict.outcome == "wrong" and says in verdict.detail


@pytest.mark.parametrize(
    "answer",
    [
        "f0, f1, b0, f2, b1, b2, u0",
        "F0 F1 B0 F2 B1 B2 U0".split(),
        pm.parse("F0 F1 B0 F2 B1 B2 U0"),
        list(pm.parse("F0 F1 B0 F2 B1 B2 U0")),
    ],
    ids=["commas", "texts", "operations", "list of operations"],
)
def test_list_in_other_writings(answer: object) -> None:
    assert judge(LIST, answer).outcome == "right"


def test_list_accepts_exactly_the_orders_that_can_run() -> None:
    """All 5,040 orders of the seven operations, against an independent count."""
    words = "F0 F1 F2 B0 B1 B2 U0".split()
    counts = {"right": 0, "over the target": 0}
    for order in itertools.permutations(words):
        verdict = judge(LIST, " ".join(order))
        if verdict.accepted:
            counts[verdict.outcome] += 1
    # Forwards may come in any order; B0 B1 B2 U0 are fixed among themselves.
    assert sum(counts.values()) == sum(_runs(order) for order in itertools.permutations(words))
    assert counts["right"] == sum(
        _runs(order) and _peak(order) <= 2 for order in itertools.permutations(words)
    )


def _runs(order: tuple[str, ...]) -> bool:
    at = order.index
    ascending = at("B0") < at("B1") < at("B2") < at("U0")
    return ascending and all(at(f"F{m}") < at(f"B{m}") for m in range(3))


def _peak(order: tuple[str, ...]) -> int:
    steps = [{"F": 1, "B": -1, "U": 0}[word[0]] for word in order]
    return max(itertools.accumulate(steps))


@pytest.mark.parametrize("seed", range(5))
def test_idle_time_on_random_charts(seed: int) -> None:
    draw = random.Random(seed)
    microbatches = draw.randint(1, 6)
    costs = [draw.uniform(1e-4, 3e-3) for _ in range(4)]
    lists = pm.schedule("gpipe", stages=4, microbatches=microbatches)
    timeline = pm.simulate(lists, forward=costs, backward=costs)
    events = [e for row in timeline.events for e in row]
    length = 1e6 * timeline.makespan
    idle = length - 2e6 * microbatches * costs[3]
    assert judge(IDLE, IDLE.answer(events), events).outcome == "right"
    assert judge(IDLE, idle - min(idle, 0.09 * length), events).outcome == "right"
    for answer, says in ((idle - 0.11 * length, "too little"), (idle + 0.11 * length, "too much")):
        verdict = judge(IDLE, answer, events)
        assert verdict.outcome == "wrong"
        assert says in verdict.detail or "more than the chart is long" in verdict.detail
    for other_unit in (idle / 1000, idle / length):  # milliseconds, and the share
        assert idle < 0.11 * length or judge(IDLE, other_unit, events).outcome == "wrong"


@pytest.mark.parametrize("answer", [float("nan"), "430 us", "half of it", None, True])
def test_idle_time_is_a_number(answer: object) -> None:
    timeline = pm.simulate(pm.schedule("gpipe", stages=4, microbatches=2))
    events = [e for row in timeline.events for e in row]
    verdict = judge(IDLE, answer, events)
    assert verdict.outcome == "wrong"
    assert verdict.detail.startswith("An answer is a number of microseconds, without quotes")
    assert "less than nothing" in judge(IDLE, -1, events).detail


def test_idle_time_needs_the_chart() -> None:
    assert judge(IDLE, 430).detail == (
        'The check needs to see step: check("0.2", your answer, step).'
    )
