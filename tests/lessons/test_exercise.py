"""The judgement of an answer, by an exercise made up for these tests."""

from __future__ import annotations

import random

import pytest

from pipemare_edu.lessons.exercise import Exercise, Property, judge


def wrong_total(total, seed: int = 0) -> str:
    """Small random cases, as the lessons' exercises use them."""
    draw = random.Random(seed)
    for _ in range(20):
        numbers = [draw.randint(1, 9) for _ in range(draw.randint(1, 4))]
        if total(numbers) != sum(numbers):
            return f"for {numbers} it is {total(numbers)}"
    return ""


CALLS: list[int] = []


def too_many(total) -> str:
    CALLS.clear()
    total([1, 2, 3])
    return f"yours took {len(CALLS)} turns" if len(CALLS) > 1 else ""


EXERCISE = Exercise(
    "9.9",
    "a function",
    (
        Property("nothing adds up to nothing", lambda total: total([]) and "it is not 0"),
        Property("it is the sum", wrong_total),
    ),
    ("one", "two", "three"),
    sum,
    target=Property("in one turn", too_many),
    function=True,
)


def stub(numbers):
    return ...


def misses_the_last(numbers):
    return sum(numbers[:-1])


def divides(numbers):
    return 1 / len(numbers)


def slow(numbers):
    CALLS.extend(numbers)
    return sum(numbers)


@pytest.mark.parametrize(
    ("answer", "outcome", "says"),
    [
        (..., "not attempted", ""),
        (stub, "not attempted", ""),
        ([1, ...], "not attempted", ""),  # a part of it still to come
        (lambda numbers: (1, ...), "not attempted", ""),
        (misses_the_last, "wrong", "It must hold that it is the sum: for ["),
        (lambda numbers: 7, "wrong", "nothing adds up to nothing: it is not 0"),
        (divides, "wrong", "divides([]) raised ZeroDivisionError: division by zero"),
        (3, "wrong", "An answer is a function"),
        (slow, "over the target", "The target: in one turn; yours took 3 turns"),
        (sum, "right", ""),
    ],
)
def test_verdicts(answer: object, outcome: str, says: str) -> None:
    verdict = judge(EXERCISE, answer)
    assert verdict.outcome == outcome
    assert says in verdict.detail
    assert verdict.accepted == (outcome in ("right", "over the target"))


def test_an_answer_of_the_wrong_kind_is_wrong() -> None:
    value = Exercise(
        "9.8", "a number", (Property("it is 3", lambda x: x + 0 != 3 and "no"),), ("",) * 3, int
    )
    assert "An answer is a number; looking at this one raised TypeError" in judge(value, "3").detail


def test_ctrl_c_is_not_swallowed() -> None:
    def interrupted(numbers):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(EXERCISE, interrupted)
