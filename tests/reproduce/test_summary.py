"""Rows of numbers from records: means, divergences, the clock, and time to target."""

from __future__ import annotations

import math

import pytest

from pipemare_edu import tasks
from pipemare_edu.plan.copies import counted_factor
from pipemare_edu.reproduce import reported
from pipemare_edu.reproduce.presets import METHODS, Part
from pipemare_edu.reproduce.study import case
from pipemare_edu.reproduce.summary import clock, pace, steps_to, summarize

CASE = case(Part("regression"))  # 12 stages, one microbatch, 800 steps, 80 of them T3's


def made(method, scores, status="done", seed=10, stash=0):
    """A record whose evaluations after 100, 200, ... steps gave `scores`."""
    return {
        "method": method,
        "seed": seed,
        "status": status,
        "metrics": {"explained": [[100 * k, v] for k, v in enumerate(scores, start=1)]},
        "staleness": {"forward": [{"mean": 23.0}, {"mean": 21.0}]},
        "memory": [
            {"weights": 8, "gradients": 8, "optimizer": 8, "stash": stash, "correction": 0}
        ] * 12,
        "seconds": 1.0,
    }  # fmt: skip


RECORDS = [
    made("gpipe", [40, 80, 90, 100]),
    made("gpipe", [50, 96, 98, 100], seed=11),
    made("pipedream", [10, 20, 30, 40], stash=12),
    made("pipemare-naive", [99, 1], "diverged"),
    made("pipemare-naive", [5, 6, 7, 8], seed=11),
    made("pipemare", [20, 40, 97, 99]),
    made("pipemare", [20, 40, 60, 80], seed=11),
]


def rows(records=RECORDS, share=0.95):
    found = summarize(CASE, records, share)
    assert [r.method for r in found] == list(METHODS)
    return {r.method: r for r in found}


def test_a_diverged_run_counts_nothing():
    naive = rows()["pipemare-naive"]
    assert (naive.mean, naive.spread) == (4.0, 4.0)
    assert (naive.runs, naive.diverged, naive.reached) == (2, 1, 0)


def test_memory_is_counted_and_for_stashing_by_the_papers_formula_too():
    stashing, naive = rows()["pipedream"], rows()["pipemare-naive"]
    assert stashing.memory == counted_factor(RECORDS[2]["memory"]) == 1.5
    taus = [2 * (12 - i) + 1 for i in range(1, 13)]
    assert stashing.memory_formula == pytest.approx((2 + sum(taus) / 12) / 3)
    assert naive.memory == 1.0 and naive.memory_formula is None


@pytest.mark.parametrize(
    ("part", "factor"),
    [(Part("regression"), 12), (Part("words"), 6.5), (Part("digits", "bottleneck"), 20)],
)
def test_utilization_by_the_clock_is_the_papers_factor(part, factor):
    own = case(part)
    synchronous = clock(own, own.methods["gpipe"]).interval
    for name, method in own.methods.items():
        expected = 1 if name == "gpipe" else factor
        assert synchronous / clock(own, method).interval == pytest.approx(expected)


def test_time_to_target_is_made_of_its_three_factors():
    """GPipe needs 400 and 200 steps to 95; all three fixes 300 in one run of two."""
    gpipe, recipe = rows()["gpipe"], rows()["pipemare"]
    assert gpipe.target == 95.0 and gpipe.pace == "explained"
    assert (gpipe.reached, gpipe.steps, gpipe.time) == (2, 300, 1.0)
    assert (recipe.reached, recipe.runs, recipe.steps, recipe.step_ratio) == (1, 2, 300, 1.0)
    assert recipe.t3_bill == pytest.approx((80 * 12 + 220) / 300)
    assert recipe.time == pytest.approx((80 + 220 / 12) / 300)
    assert recipe.time == pytest.approx(recipe.step_ratio * recipe.t3_bill / recipe.utilization)
    assert rows()["pipedream"].time is None and rows()["pipedream"].reached == 0


def test_another_share_is_another_target():
    assert rows(share=0.5)["gpipe"].target == 50.0
    assert rows(share=0.5)["gpipe"].steps == 150


def test_a_target_within_the_warm_up_is_paid_in_full():
    quick = made("pipemare", [])
    quick["metrics"]["explained"] = [[40, 99.0]]
    row = rows([RECORDS[0], quick])["pipemare"]
    assert row.steps == 40 and row.t3_bill == pytest.approx(12)
    assert row.time == pytest.approx(40 / 400)


def test_without_gpipe_no_target_and_without_runs_no_quality():
    row = rows(RECORDS[2:])["pipedream"]
    assert row.target is row.time is row.steps is None and row.mean == 40.0
    empty = rows([])["gpipe"]
    assert (empty.runs, empty.mean, empty.spread, empty.memory) == (0, None, None, None)
    assert rows(RECORDS[:1])["gpipe"].spread is None


def test_steps_to_a_target():
    assert steps_to(made("gpipe", [1, 5, 3, 5]), "explained", 5) == 200
    assert steps_to(made("gpipe", [1, None, 7]), "explained", 5) == 300
    assert steps_to(made("gpipe", [9, 9], "diverged"), "explained", 5) is None
    assert steps_to(made("gpipe", [1]), "explained", math.inf) is None


def test_pace_is_the_score_or_what_needs_no_search():
    assert pace(tasks.get("words")) == "exact"
    assert pace(tasks.get("phrases")) == "token_accuracy"


def test_the_papers_rows_stand_beside_networks_of_their_kind():
    assert reported.row("shapes", "resnet") is reported.row("cifar10", "resnet50")
    assert reported.row("digits", "bottleneck") is reported.CIFAR10
    assert reported.row("words", "transformer") is reported.row("iwslt14", "transformer")
    assert reported.row("wmt17", "transformer") is reported.WMT17
    assert reported.row("digits", "mlp") is reported.row("characters", "transformer") is None


def test_what_is_only_remembered_of_the_paper_says_so():
    assert str(reported.CIFAR10.quality["pipedream"]) == "94.8 (about, as we recall the paper)"
    assert str(reported.IWSLT14.quality["pipedream"]) == "0.0 (diverges)"
    assert str(reported.CIFAR10.quality["pipemare"]) == "not needed"
    assert str(reported.WMT17.quality["pipemare"]) == "27.8"
    assert reported.CIFAR10.memory["pipedream"] == "2.7x"
