"""The exercises of lesson 08: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import pytest
from judging import refused

from pipemare_edu.lessons.beside import beside
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find, lesson08_claims
from pipemare_edu.lessons.exercises.lesson08 import cases, time, true
from pipemare_edu.studies.reproduction import PARTS

TIME, PAIR, HOLDS, CLAIM = (find(f"8.{n}") for n in (1, 2, 3, 4))


# 8.1


def test_formula_and_clock_agree():
    for case in cases():
        assert time(*case) == pytest.approx(true(*case))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda k, t3, P, N, b: k * (1 + b * (P - 1) / N), "without a warm-up every step takes 1"),
        (lambda k, t3, P, N, b: t3 * (1 + b * P / N) + k - t3, "as long as the clock says"),
        (lambda k, t3, P, N, b: t3 * (1 - b * (P - 1) / N) + k - t3, "as long as the clock says"),
        (lambda k, t3, P, N, b: t3 * P + k - t3, "as long as the clock says"),  # right for N = 1
        (lambda k, t3, P, N, b: t3 * (P - 1) / N + k, "without a bubble"),  # right for b = 1
        (lambda k, t3, P, N, b: t3 * b * (N + P - 1) / N + k - t3, "without a bubble"),
        (
            lambda k, t3, P, N, b: min(k, t3) * (P - 1) / N * (b == 1) + k,
            "that part of the waiting is left",
        ),  # right for b = 0 and 1
        (lambda k, t3, P, N, b: t3 * (1 + b * (P - 1) / N) + k - t3, "ends within its warm-up"),
        (
            lambda k, t3, P, N, b: t3 * (1 + b * (P - 1) / N) + max(0, k - t3),
            "ends within its warm-up",
        ),
        (lambda k, t3, P, N, b: "some", "the time is a number"),
        (lambda k, t3, P, N, b: None, "bubble=1) returns None"),
        (lambda k, t3, P, N, b: time(k, t3, P, N, b) * N / (N + P - 1), "in GPipe's steps"),
        (lambda k, t3, P, N, b: k, "every step as if it were asynchronous"),
        (lambda k, t3, P, N, b: k + min(k, t3) * b * P / N, "P/N, and the bubble is P - 1 over N"),
        (lambda k, t3, P, N, b: time(k, t3, P, N, b) + min(k, t3), "only k - w are left"),
        (lambda k, t3, P, N, b: k + min(k, t3) * b * (P - 1) / (N + P - 1), "the idle share"),
        (lambda k, t3, P, N, b: time(k, t3, N, P, b), "N and P have changed places"),
        (lambda k, t3, P, N, b: int(time(k, t3, P, N, b)), "(rounded)"),
    ],
)
def test_a_wrong_time_is_told_why(answer, says):
    refused(TIME, answer, says)


# 8.2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (("words", "gpipe", "pipemare"), "both methods are asynchronous"),
        (("digits", "pipedream", "pipemare"), "the first needs fewer steps"),  # the wrong way round
        (("shapes", "pipemare-t1", "pipemare"), "the first needs more time"),  # wins on both
        (("words", "pipemare", "pipedream"), "on words, PipeDream does not"),
        (("digit", "pipemare", "pipedream"), "did you mean 'digits'"),
        (("digits", "pipemare", "pipmare-t1"), "did you mean 'pipemare-t1'"),
        (("digits", "pipemare"), "An answer is a task and two methods"),
        (3, "An answer is a task and two methods"),
    ],
)
def test_a_wrong_pair_is_told_why(answer, says):
    refused(PAIR, answer, says)


@pytest.mark.parametrize(
    "answer",
    [
        "digits, pipemare, pipedream",
        "digits pipemare pipedream",
        ["digits", "PipeMare T1+T2+T3", "PipeDream"],  # as the figures call them
        "digits, PipeMare T1+T2+T3, PipeDream",
    ],
)
def test_a_pair_in_other_writings(answer):
    assert judge(PAIR, answer).outcome == "right"


# 8.3


def mean(scores):
    return sum(v or 0 for v in scores.values()) / len(scores)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda a, b: mean(a) > mean(b), "one seed that says otherwise"),
        (lambda a, b: any(a[s] > b[s] for s in a.keys() & b.keys()), "one seed that says"),
        (lambda a, b: min(a.values()) > max(b.values()), "with every seed"),  # too strict
        (lambda a, b: all(a[s] >= b[s] for s in a.keys() & b.keys()), "a tie is no win"),
        (lambda a, b: all(a[s] < b[s] for s in a.keys() & b.keys()), "with every seed"),
        (lambda a, b: all(a[s] > b[s] for s in a.keys() & b.keys()), "raised TypeError"),
        (
            lambda a, b: all(a[s] > b[s] for s in a.keys() & b.keys() if a[s] and b[s]),
            "a run that diverged (None) counts 0",
        ),
        (
            lambda a, b: all((a[s] or 0) > (b[s] or 0) for s in a.keys() & b.keys()),
            "there must be one",
        ),
        (lambda a, b: True, "one seed that says otherwise"),
    ],
)
def test_a_wrong_judge_is_told_why(answer, says):
    refused(HOLDS, answer, says)


# 8.4


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (("pipemare-t1", "gpipe"), "with shipped seed"),  # the wrong way round
        (("pipemare", "gpipe"), "with shipped seed"),  # in the warm-up the two are the same
        (("pipedream", "pipemare-t1"), "with shipped seed"),
        (("gpipe", "pipmare"), "did you mean 'pipemare'"),
        (("gpipe",), "the better one first"),
        (("GPipe", "PipeMare T1+T2+T3"), "with shipped seed"),  # as the figures call them
        ("gpipe", "the better one first"),
    ],
)
def test_a_wrong_claim_is_told_why(answer, says):
    refused(CLAIM, answer, says)


def test_a_claim_that_hidden_seeds_refute_is_told_so(monkeypatch):
    scores = {"gpipe": 50.0, "pipemare-t1": None}
    monkeypatch.setattr(lesson08_claims, "outcome", lambda method, seed: scores[method])
    assert judge(CLAIM, ("gpipe", "pipemare-t1")).outcome == "right"
    scores |= {"gpipe": 20.0, "pipemare-t1": 30.0}
    refused(CLAIM, ("gpipe", "pipemare-t1"), "with a hidden seed, GPipe is at 20.0 %")


# the paper beside ours


@pytest.mark.parametrize("task", PARTS)
def test_the_lines_fit_a_narrow_page(task):
    assert max(map(len, beside(task).splitlines())) < 76


def test_both_sides_are_shown():
    text = beside("words")
    assert "34.1" in text and "93 stages" in text
    head, below = (line.split() for line in text.splitlines()[:2])
    assert head == ["exact", "BLEU", "memory", "memory"]
    assert below == ["measured", "reported"] * 2
    assert "1 of 5" in beside("shapes") and "94.8 (1)" in beside("shapes")
    assert "(1) about, as we recall the paper" in beside("shapes")
    with pytest.raises(ValueError, match="did you mean 'words'"):
        beside("word")
