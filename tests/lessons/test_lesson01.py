"""The exercises of lesson 01: every wrong answer is told what is wrong with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from judging import refused

import pipemare_edu as pm
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find

TABLE, ORDER, COUNT, SHARE, OWN = (find(f"1.{n}") for n in range(1, 6))


# 1.1


def timetable(down, up, stages=None):
    """The timetable whose F are in slot `down(i, m, P, N)` and whose B in slot `up(...)`."""

    def answer(P, N):
        cells = [(i, m) for i in range(1, (stages or P) + 1) for m in range(N)]
        forwards = [(down(i, m, P, N), i, f"F{m}") for i, m in cells]
        return forwards + [(up(i, m, P, N), i, f"B{m}") for i, m in cells]

    return answer


def down(i, m, P, N):
    return i - 1 + m


def up(i, m, P, N):
    return N + P - 1 + P - i + m


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (timetable(down, lambda i, m, P, N: N + P - 1 + i - 1 + m), "stage 2 runs B0 only in slot"),
        (timetable(down, lambda i, m, P, N: N + P - 2 + P - i + m), "runs F0 only in slot 0"),
        (timetable(lambda i, m, P, N: m, up), "stage 1 runs F0 only in slot 0"),
        (timetable(lambda i, m, P, N: i - 1, up), "stage 1 runs both F0 and F1 in slot 0"),
        (timetable(down, lambda i, m, P, N: 11 + 4 - i + m), "runs"),  # right for P=4, N=8 only
        (timetable(down, up, stages=4), "yours has a stage 2"),
        (timetable(lambda i, m, P, N: i - 2 + m, up), "slots count from 0"),
        (lambda P, N: timetable(down, up)(P, N) * 2, "stage 1 runs F0 2 times"),
        (lambda P, N: timetable(down, up)(P, N - 1), "stage 1 runs F0 0 times"),
        (lambda P, N: timetable(down, up)(P, N) + [(99, 1, "U0")], "runs U0 which is no F or B"),
        (lambda P, N: [(s, i - 1, op) for s, i, op in timetable(down, up)(P, N)], "has a stage 0"),
        (lambda P, N: [(0, "F0")], "one entry is (0, 'F0'), not three things"),
        (lambda P, N: [(0.5, 1, "F0")], "whose slot is no whole number"),
        (lambda P, N: [(0, "stage 1", "F0")], "whose stage is no whole number"),
        (lambda P, N: [(0, 1, 0)], "whose operation is no text"),
        (lambda P, N: {(0, 1): "F0"}, "it returns {(0, 1): 'F0'}"),
        (lambda P, N: "F0", "it returns 'F0'"),
        (lambda P, N: 1 / 0, "raised ZeroDivisionError"),
        ("F0 F1", "An answer is a function of P and N"),
    ],
)
def test_timetable_is_wrong(answer, says) -> None:
    refused(TABLE, answer, says)


def sequential(P, N):
    one = {f"F{i}": i - 1 for i in range(1, P + 1)}
    slots = [(2 * P * m + one[f"F{i}"], i, f"F{m}") for i in range(1, P + 1) for m in range(N)]
    return slots + [(2 * P * m + 2 * P - i, i, f"B{m}") for i in range(1, P + 1) for m in range(N)]


def from_the_clock(P, N):
    timeline = pm.simulate(pm.schedule("1f1b", P, N))
    kept = [e for row in timeline.events for e in row if e.kind != "U"]
    return [(int(e.start), e.stage + 1, f"{e.kind}{e.index}") for e in kept]


def test_a_timetable_of_another_schedule_is_right_too() -> None:
    for right in (
        from_the_clock,
        lambda P, N: (row for row in from_the_clock(P, N)),
        lambda P, N: [(np.int64(slot), float(i), op) for slot, i, op in from_the_clock(P, N)],
    ):
        assert judge(TABLE, right).outcome == "right"
    late = judge(TABLE, lambda P, N: [(s + 1, i, op) for s, i, op in from_the_clock(P, N)])
    assert late.outcome == "over the target" and "its first is slot 1" in late.detail
    verdict = judge(TABLE, sequential)
    assert verdict.outcome == "over the target"
    assert "yours takes" in verdict.detail and "are enough" in verdict.detail


# 1.2


def alternating(ahead):
    """A stage that runs `ahead(stage, P)` forwards before its first backward, then alternates."""

    def answer(stage, P, N):
        words, f = [], 0
        for m in range(N):
            while f < min(m + ahead(stage, P), N):
                words.append(f"F{f}")
                f += 1
            words.append(f"B{m}")
        return [*words, "U0"]

    return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda i, P, N: pm.schedule("gpipe", P, N)[i - 1], "in flight, not 1"),
        (lambda i, P, N: pm.schedule("sequential", P, N)[i - 1], "idle"),
        (alternating(lambda i, P: P - i + 2), "in flight, not"),
        (alternating(lambda i, P: max(1, P - i)), "GPipe's"),
        (
            alternating(lambda i, P: i),
            "they wait for ever: stage 1 waits",
        ),  # counted from the wrong end
        (
            lambda i, P, N: pm.schedule("1f1b", 4, 8)[i - 1] if i < 5 else "",
            "does not belong there",
        ),
        (lambda i, P, N: f"{pm.schedule('1f1b', P, N)[i - 1]}".replace(" U0", ""), "U0 is missing"),
        (lambda i, P, N: f"U0 {pm.schedule('1f1b', P, N)[i - 1]}"[:-3], "stands behind U0"),
        (lambda i, P, N: [f"F{m} B{m}" for m in range(N)][:-1] + ["U0"], "F0 is missing"),
        (lambda i, P, N: pm.schedule("1f1b", P, N), "raised ValueError"),
        (lambda i, P, N: None, "An answer is a text of operations"),
    ],
)
def test_order_is_wrong(answer, says) -> None:
    refused(ORDER, answer, says)


@pytest.mark.parametrize("form", [str, list, tuple, lambda ops: [str(op) for op in ops]])
def test_order_in_other_writings(form) -> None:
    answer = judge(ORDER, lambda i, P, N: form(pm.schedule("1f1b", P, N)[i - 1]))
    assert answer.outcome == "right"


# 1.3 and 1.4


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (26, "with 26 it is 3/29 = 10.3 %"),
        (24, "with 24"),
        (28, "27 would do as well"),
        (30, "30 is where the overhead (P-1)/N comes down to 10 %"),
        (27.5, "yours is 27.5"),
        (0, "yours is 0"),
        (-27, "yours is -27"),
        ("27", "without quotes"),
        (None, "An answer is a number of microbatches"),
    ],
)
def test_smallest_n_is_wrong(answer, says) -> None:
    refused(COUNT, answer, says)


def test_smallest_n() -> None:
    assert [n for n in range(1, 200) if judge(COUNT, n).accepted] == [27]
    assert judge(COUNT, 27.0).outcome == "right"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (3 / 8, "0.375 is the overhead"),
        (8 / 11, "the share of the time in which they work"),
        (3 / 4, "what one microbatch at a time gives"),
        (3 / 12, "0.25 is too little"),
        (4 / 11, "0.364 is too much"),
        (27.3, "27.3 % would be 0.273"),
        (-0.1, "-0.1 does not"),
        ("3/11", "without quotes"),
    ],
)
def test_idle_share_is_wrong(answer, says) -> None:
    refused(SHARE, answer, says)


@pytest.mark.parametrize("answer", [3 / 11, Fraction(3, 11), 0.273, 0.27])
def test_idle_share(answer) -> None:
    assert judge(SHARE, answer).outcome == "right"


# 1.5


def texts(kind, N=8, stages=4):
    return [str(ops) for ops in pm.schedule(kind, stages, N)]


CHUNKS = "F0 F1 F2 F3 B0 B1 B2 B3 F4 F5 F6 F7 B4 B5 B6 B7 U0"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (texts("gpipe"), "stage 1 has 8 in flight"),
        (texts("gpipe", 4), "yours are idle 42.9 %"),
        (texts("sequential"), "yours are idle 75.0 %"),
        ([CHUNKS] * 4, "yours are idle"),
        (texts("1f1b", 6), "yours are idle 33.3 %"),
        (texts("1f1b")[::-1], "it next; stage 2 waits to run"),
        (texts("1f1b", stages=3), "this is 3 of them"),
        ([*texts("1f1b")[:3], texts("1f1b", 7)[3]], "in the list of stage 4, F7 is missing"),
        ([*texts("1f1b")[:3], "B0 " + texts("1f1b")[3].replace(" B0", "")], "B0 stands before F0"),
        (["", "", "", ""], "F0 is missing"),
        (7, "this is 7"),
    ],
)
def test_own_schedule_is_wrong(answer, says) -> None:
    refused(OWN, answer, says)


@pytest.mark.parametrize("N", [7, 8, 20])
def test_own_schedule_may_have_any_number_of_microbatches(N) -> None:
    assert judge(OWN, pm.schedule("1f1b", 4, N)).outcome == "right"
    assert judge(OWN, "\n".join(texts("1f1b", N))).outcome == "right"
