"""Curves of several runs, told apart with and without colour; divergence is marked."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipemare_edu.figures import curves, describe, headline
from pipemare_edu.figures.curves import bucket
from pipemare_edu.figures.style import log_axis
from pipemare_edu.trainer.run import Run


def fake(losses, status="done", diverged=None, metrics=None):
    return Run(
        {"steps": len(losses), "method": "PipeMare()"},
        losses=list(losses),
        status=status,
        diverged=diverged,
        metrics=metrics or {},
    )


GOOD = fake([2.0, 1.0, 0.5, 0.25], metrics={"loss": [(4, 0.3)], "accuracy": [(2, 60), (4, 91)]})
BAD = fake([2.0, 4.0, math.nan], "diverged", (2, 0, "the loss is nan"))


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_losses_and_metric_of_each_run():
    figure = curves({"one": GOOD, "two": GOOD})
    one, two, *scores = figure.data
    np.testing.assert_array_equal(one.x, [1, 2, 3, 4])
    np.testing.assert_array_equal(one.y, GOOD.losses)
    assert one.line.color != two.line.color and one.line.dash != two.line.dash
    assert [list(s.y) for s in scores] == [[60, 91], [60, 91]]
    assert scores[0].marker.symbol != scores[1].marker.symbol
    assert figure.layout.yaxis2.title.text == "accuracy"
    assert headline(figure) == "two reaches accuracy 91, one 91"


def test_a_diverged_run_ends_in_a_marked_point_that_says_when():
    figure = curves({"bad": BAD})
    end = named(figure, "diverged at step 3")
    assert list(end.x) == [3] and list(end.y) == [4.0]  # the last loss that was finite
    assert end.marker.symbol == "x" and end.showlegend is not False
    assert headline(figure) == "bad diverges at step 3"
    assert np.isfinite(named(figure, "bad").y).all()
    assert "diverged at step 3" in describe(figure)


def test_the_title_counts_diverged_runs():
    assert headline(curves({"bad": BAD, "good": GOOD})) == (
        "good reaches accuracy 91; 1 of 2 runs diverged"
    )


@pytest.mark.parametrize("log, kind", [(True, "log"), (False, "linear")])
def test_loss_axis(log, kind):
    axis = curves([GOOD], log=log).layout.yaxis
    assert axis.type == kind and (axis.tickvals is not None) == log  # 0.5, not a lone 5


def test_log_ticks_are_whole_numbers_of_the_decades_that_are_there():
    low, *_, high = log_axis("loss", [0.3, 2.0, 0.0])["tickvals"]
    assert (low, high) == pytest.approx((0.1, 50)) and curves([GOOD]).layout.yaxis.tickvals
    assert log_axis("loss", [1e-4, 2.0])["tickvals"] == pytest.approx(
        [1e-4, 1e-3, 0.01, 0.1, 1, 10]
    )
    assert log_axis("loss", [])["tickvals"]


def test_divergence_does_not_flatten_the_others_on_a_linear_axis():
    high = fake([2.0, 9000.0, math.inf], "diverged", (2, 0, "the loss is inf"))
    assert curves({"bad": high, "good": GOOD}, log=False).layout.yaxis.range == (0, 6.0)


def test_long_runs_are_drawn_as_means():
    run = fake(np.linspace(2.0, 0.0, 1600))
    figure = curves([run])
    assert bucket(run) == 8 and len(figure.data[0].x) == 200
    assert figure.data[0].y[0] == pytest.approx(np.mean(run.losses[:8]))
    assert figure.data[0].x[-1] == 1600
    assert len(figure.to_json()) < 20_000


def test_one_run_alone():
    assert curves(GOOD) == curves([GOOD])


def test_runs_of_one_method_get_different_labels():
    names = [trace.name for trace in curves([GOOD, GOOD]).data[:2]]
    assert names == ["PipeMare()", "PipeMare() (2)"]


def test_no_runs_and_no_steps_yet():
    assert "appear here" in headline(curves({}))
    assert "no step done yet" in describe(curves({"new": fake([], "running")}))
