"""The exercises of lesson 06: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import pytest
from judging import refused

import pipemare_edu as pm
from pipemare_edu.lessons import logbook
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find, lesson06
from pipemare_edu.lessons.exercises.lesson06 import by_clock, cases, isolating
from pipemare_edu.lessons.logbook import RUNS

SPEED, PAIRS, RECIPE = (find(f"6.{n}") for n in (1, 2, 3))


# 6.1


def test_formula_and_clock_agree():
    for P, N, share in cases():
        assert lesson06.speed(P, N, share) == pytest.approx(by_clock(P, N, share))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda P, N, s: s * N / (N + P - 1) + 1 - s, "it is the times that add up"),
        (lambda P, N, s: s * (N + P - 1) / N + 1 - s, "yours is the time of a step"),
        (lambda P, N, s: 1 / (s * (N + P) / N + 1 - s), "for P=8, N=1 and a share of 1"),
        (lambda P, N, s: 1 / (s * (P - 1) / N + 1 - s), "for P=8, N=1 and a share of 1"),
        (lambda P, N, s: 1 / (s * P + 1 - s), "a run of synchronous steps alone"),  # for N=1
        (lambda P, N, s: 1 / (1 + s * (N - P + 1) / N), "for P=8"),
        (lambda P, N, s: N / (N + P - 1), "without a synchronous step the speed is 1"),
        (lambda P, N, s: 1 / ((1 - s) * (N + P - 1) / N + s), "without a synchronous step"),
        (lambda P, N, s: "1", "raised TypeError"),
    ],
)
def test_a_wrong_throughput_is_told_why(answer, says):
    refused(SPEED, answer, says)


# 6.2


def test_the_book_has_three_pairs_and_traps_of_each_kind():
    assert isolating() == lesson06.pairs() and len(isolating()) == 3
    told = str(logbook()).splitlines()
    assert len(told) == 1 + len(RUNS) and told[1].split() == ["A", "-", "-", "-", "8", "0.2", "0"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (["AF", "CG"], "1 more in the book does"),
        ("AF", "2 more in the book do"),
        (["AF", "CG", "EH", "AD"], "A and D differ in rate as well"),
        (["AF", "CG", "EH", "AB"], "A and B differ in T1 as well"),
        (["CB"], "B and C differ in seed as well"),
        (["AG"], "differ in T1 and seed as well"),
        (["GE"], "E and G both have T2"),
        (["AC"], "A and C are both without T2"),
        (["AX"], "there is no run X"),
        (["A"], "An answer is a list of pairs"),
        (["AFG"], "An answer is a list of pairs"),
        (7, "An answer is a list of pairs"),
        ([], "An answer is a list of pairs"),
    ],
)
def test_a_wrong_pair_is_told_why(answer, says):
    refused(PAIRS, answer, says)


@pytest.mark.parametrize(
    "answer",
    [
        ["HE", "fa", "gc"],
        [("A", "F"), ("C", "G"), ("E", "H")],
        ("A-F", "C-G", "E-H"),
        "AF, CG, EH",
    ],
)
def test_pairs_in_other_forms_are_read(answer):
    assert judge(PAIRS, answer).outcome == "right"


# 6.3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (pm.PipeMare(), "with a hidden seed it diverged at step"),
        (pm.PipeMare(t1=100), "with a hidden seed it"),
        (pm.PipeMare(t2=0.135), "with a hidden seed it ended at"),  # holds with some seeds
        (pm.PipeMare(t1=100, t2=0.135, t3=120), "120 of 400 steps wait for the whole pipe"),
        (pm.PipeMare(t1=100, t2=0.135, depth="async-1f1b"), "depth='async-1f1b'"),
        (pm.GPipe(), "it is a pm.PipeMare in lockstep"),
        ("pipemare", "it is a pm.PipeMare in lockstep"),
        ({"t1": 100}, "it is a pm.PipeMare in lockstep"),
    ],
)
def test_a_recipe_that_does_not_survive_is_told_why(answer, says):
    refused(RECIPE, answer, says)
