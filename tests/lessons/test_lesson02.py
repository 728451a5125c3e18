"""The exercises of lesson 02: every wrong answer fails at the property it breaks."""

from __future__ import annotations

import random

import pytest
from judging import refused

import pipemare_edu as pm
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find, lesson02_price
from pipemare_edu.plan.staleness import staleness

FOUR, MEANS, COUNT, VERSIONS, RATE = (find(f"2.{n}") for n in range(1, 6))


@pytest.mark.parametrize("answer", [[7, 5, 3, 1], (7.0, 5.0, 3.0, 1.0)])
def test_taus_are_right(answer) -> None:
    assert judge(FOUR, answer).outcome == "right"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([8, 6, 4, 2], "yours are one too many at every stage"),  # its own update counted
        ([1, 3, 5, 7], "stage 1 has 1, stage 2 3; stage 1 comes first in the list"),  # upside down
        ([7, 7, 7, 7], "stage 1 has 7, stage 2 7"),  # one delay for all
        ([3, 2, 1, 0], "stage 1's weights are not 3 updates old but older"),  # 1F1B
        ([6, 4, 2, 0], "stage 1's weights are not 6 updates old but older"),  # no turning round
        ([7, 5, 3, 2], "stage 4's weights are not 2 updates old but newer"),
        ([7, 5, 3], "An answer is a list of four whole numbers"),
        ("7 5 3 1", "this one is '7 5 3 1'"),
        ([7, 5, 3, None], "An answer is a list of four"),
        (7, "this one is 7"),
        ({1: 7, 2: 5, 3: 3, 4: 1}, "An answer is a list of four"),
        ({7, 5, 3, 1}, "An answer is a list of four"),
    ],
)
def test_taus_are_wrong(answer, says) -> None:
    refused(FOUR, answer, says)


def ceiled(stages, microbatches):
    return [-(-(2 * (stages - i) + 1) // microbatches) for i in range(1, stages + 1)]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ceiled, "you get 2 at stage 1, counted 1.75, which is the largest, not the mean"),
        (lambda P, N: [2 * (P - i) + 1 for i in range(1, P + 1)], "for P=4, N=4 you get 7"),
        (lambda P, N: [(P - i) / N for i in range(1, P + 1)], "for P=1, N=1 you get 0"),
        (lambda P, N: [(2 * i + 1) / N for i in range(1, P + 1)], "for P=1, N=1 you get 3"),
        (lambda P, N: [7 / N, 5 / N, 3 / N, 1 / N], "one number for every stage"),  # P=4 only
        (lambda P, N: [2 * (P - i) // N + 1 / N for i in range(1, P + 1)], "counted"),
        (lambda P, N: 1.75, "for P=4, N=4 it returns 1.75"),
        (lambda P, N: {i: (2 * (P - i) + 1) / N for i in range(1, P + 1)}, "it returns {1: 1.75"),
        (lambda P, N: [1 / 0], "raised ZeroDivisionError"),
        ([7, 5, 3, 1], "An answer is a function of (stages, microbatches)"),
    ],
)
def test_means_are_wrong(answer, says) -> None:
    refused(MEANS, answer, says)


def between(log, microbatch):
    return log[log.index(f"F{microbatch}") : log.index(f"B{microbatch}")]


def updates(log):
    return sum(operation[0] == "U" for operation in log)


def numbered(log, m):
    """Takes the numbers of updates for counts, and microbatches for minibatches."""
    done = [int(op[1:]) for op in log[: log.index(f"F{m}")] if op[0] == "U"]
    return m - len(done)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda log, m: updates(between(log, m)) + 1, "in the log of a synchronous pipeline"),
        (lambda log, m: len(between(log, m)) - 1, "in the log of a synchronous pipeline"),
        (lambda log, m: updates(log[: log.index(f"B{m}")]), "in the log of a synchronous"),
        (lambda log, m: 0, "right where a minibatch is one microbatch"),  # right for GPipe only
        (lambda log, m: min(updates(between(log, m)), 2), "is one microbatch"),
        (numbered, "in the log of a synchronous pipeline"),
        (lambda log, m: None, "it returns None"),
        (lambda log, m: log.index(m), "raised ValueError"),
        (7, "An answer is a function of (log, microbatch)"),
    ],
)
def test_counts_are_wrong(answer, says) -> None:
    refused(COUNT, answer, says)


def test_a_count_that_is_right_for_single_microbatches_only_is_told_so() -> None:
    def counts_backwards(log, microbatch):
        """As many as updates, where a minibatch is one microbatch."""
        part = between(log, microbatch)
        return sum(op[0] == "B" for op in part) if updates(part) else 0

    refused(COUNT, counts_backwards, "it counts right in any log")


@pytest.mark.parametrize("seed", range(10))
def test_the_reference_count_on_random_pipelines(seed) -> None:
    draw = random.Random(seed)
    depths = sorted((draw.randint(0, 9) for _ in range(draw.randint(1, 5))), reverse=True)
    for ops in pm.schedule(depths, len(depths), draw.randint(1, 4), draw.randint(1, 6)):
        log = list(map(str, ops))
        for delay in staleness(ops):
            assert COUNT.answer()(log, delay.microbatch) == delay.forward


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            lambda i, P, s: 2 * (P - i) + 1 if s == "lockstep" else P - i,
            "the newest version, which the next forward reads, counts too",
        ),
        (lambda i, P, s: P - i + 1, "for stage 1 of 4 you get 4, counted 8"),
        (lambda i, P, s: 2 * (P - i) + 2, "In 1F1B it agrees"),
        (lambda i, P, s: 2 * i if s == "lockstep" else i, "counted 8"),  # upside down
        (lambda i, P, s: 2 * P if s == "lockstep" else P, "for stage 2 of 4 you get 8, counted 6"),
        (lambda i, P, s: 2 * (P - i) + 1, "you get 7, counted 8: the current version counts too"),
        (lambda i, P, s: None, "you get None"),
        (8, "An answer is a function of (stage, stages, schedule)"),
    ],
)
def test_versions_are_wrong(answer, says) -> None:
    verdict = judge(VERSIONS, answer)
    assert verdict.outcome == "wrong" and says.lower() in verdict.detail.lower(), verdict.detail


@pytest.mark.parametrize("schedule", ["lockstep", "async-1f1b"])
def test_the_reference_versions_are_those_that_a_run_holds(schedule) -> None:
    run = pm.train("digits", pm.PipeDream(depth=schedule), stages=5, steps=30, rate=0.01)
    for i, stage in enumerate(run.memory, start=1):
        held = 1 + stage["stash"] / stage["weights"]
        assert held == VERSIONS.answer()(i, 5, schedule)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (0.05, "at 0.05 it still runs to its end with seed 0"),  # both live
        (0.1, "at 0.1 it still runs to its end"),
        (50.0, "GPipe runs to its end and reads 90 % right: with seed 0"),  # both die
        (-0.4, "An answer is a learning rate"),
        ("0.4", "this one is '0.4'"),
        (True, "An answer is a learning rate"),
    ],
)
def test_the_rate_is_wrong(answer, says) -> None:
    refused(RATE, answer, says)


def test_a_rate_far_beyond_the_edge_is_over_the_target() -> None:
    verdict = judge(RATE, 0.8)
    assert verdict.outcome == "over the target"
    assert "at 0.4 it dies as well, with every seed" in verdict.detail


def test_the_reference_rate_is_right_with_room_on_both_sides() -> None:
    rate = RATE.answer()
    for factor in (1.0, 1.2):
        assert judge(RATE, factor * rate).outcome == "right"


def test_a_trial_is_run_once() -> None:
    lesson02_price.trial.cache_clear()
    judge(RATE, 50.0)
    judge(RATE, 50.0)
    assert lesson02_price.trial.cache_info().misses == 1
