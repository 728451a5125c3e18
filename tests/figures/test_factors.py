"""Factors of a time to target: where each bar begins and ends, and what is said."""

from __future__ import annotations

import math
import re

import pytest

from pipemare_edu.figures import Factors, Track, arrivals, describe, factors

FOUND = {
    "GPipe": Factors(1.0, 1.0, 1.0),
    "fast": Factors(10.0, 2.0, 1.0, reached=2, runs=3, after=40),
    "warm": Factors(10.0, 2.0, 3.0),
    "lost": None,
}


def lines(label):
    """What a label says, line by line."""
    return [re.sub("<[^>]*>", "", line).strip() for line in label.split("<br>")]


def test_bars_lead_from_one_to_the_time():
    figure = factors(FOUND, "GPipe")
    utilization, steps, bill, ends = figure.data
    assert list(ends.x) == pytest.approx([1, 0.2, 0.6])
    spans = [
        [(b, b + w) for b, w in zip(bar.base, bar.x, strict=True)]
        for bar in (utilization, steps, bill)
    ]
    assert spans[0][2] == pytest.approx((0.1, 1))
    assert spans[1][2] == pytest.approx((0.1, 0.2))
    assert spans[2][2] == pytest.approx((0.2, 0.6))
    assert len({bar.marker.pattern.shape for bar in (utilization, steps, bill)}) == 3
    assert list(map(lines, ends.text)) == [
        ["1"],
        ["", "0.2", "= 2 / 10"],
        ["", "0.6", "= 2 × 3 / 10"],
    ]
    assert figure.layout.annotations[0].text == "✕ no run arrives"
    assert len(figure.to_json()) < 8000


def test_every_row_says_how_many_runs_it_speaks_of():
    axis = factors(FOUND, "GPipe").layout.yaxis
    labels = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert "2 of 3 runs arrive" in labels["fast"] and "1 of 1 runs arrive" in labels["warm"]
    assert labels["lost"] == "lost"


def test_a_long_name_and_a_long_equation_leave_the_bars_their_room():
    """On a page of 500 pixels a name or an equation in one line runs out of the figure."""
    found = {"GPipe": FOUND["GPipe"], "PipeMare T1+T2+T3": Factors(10.5, 1.88, 2.21, 5, 5)}
    figure = factors(found, "GPipe")
    ends = figure.data[-1]
    assert ends.cliponaxis is False and ends.textposition == "middle right"
    assert lines(ends.text[1]) == ["", "0.396", "= 1.88 × 2.21 / 10.5"]
    assert lines(figure.layout.yaxis.ticktext[0]) == ["PipeMare", "T1+T2+T3", "5 of 5 runs arrive"]


def test_what_is_written_beside_a_diamond_has_room():
    for times in ((0.02, 0.9), (1.5, 1.6), (40.0, 90.0)):
        found = {str(t): Factors(2.0, 2.0 * t, 1.0) for t in times}
        figure = factors(found, "GPipe")
        low, high = figure.layout.xaxis.range
        last = max(math.log10(x) for x in figure.data[-1].x)
        assert (last - low) / (high - low) < 0.7


def test_words():
    text = describe(factors(FOUND, "GPipe"))
    assert text.startswith("fast gets there in 0.2 of GPipe's time (2 of 3 runs arrive).")
    assert "warm: 0.6 = 2 in steps, 3 for T3, over utilization 10;" in text
    assert "10; 2 of 3 runs arrive." in text and text.endswith("No run arrives: lost.")
    slow = {"GPipe": FOUND["GPipe"], "slow": Factors(2.0, 4.0, 1.0)}
    assert describe(factors(slow, "GPipe")).startswith("GPipe is there first: slow takes 2 times")
    same = {"GPipe": FOUND["GPipe"], "same": Factors(2.0, 2.0, 1.0)}
    assert describe(factors(same, "GPipe")).startswith("Nobody gets there sooner than GPipe")
    assert describe(factors({"lost": None}, "GPipe")).startswith("No other method reaches")


def test_a_live_run_is_drawn_over_the_others_and_counts_in_no_mean():
    runs = {"a": [Track([1, 2], [50, 96]), Track([1], [99], live="a, live")]}
    figure = arrivals(runs, "accuracy", "step", 95.0, log=False)
    old, new = figure.data
    assert new.name == "a, live" and new.showlegend and new.line.width > old.line.width
    assert figure.layout.xaxis.type is None
    text = describe(figure)
    assert "a 2 (1 of 1 runs)" in text and "a, live: measured 99." in text
    dead = {"a": [Track([3], [0.0], True, "a, live")]}
    assert "a, live: diverged." in describe(arrivals(dead, "accuracy", "step"))
