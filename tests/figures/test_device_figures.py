"""The speed-up over the microbatches, and where the time goes."""

from __future__ import annotations

import pytest

from pipemare_edu.figures import describe, speedup, time_use
from pipemare_edu.figures.time_use import shares
from pipemare_edu.plan.clock import simulate
from pipemare_edu.plan.schedules import schedule
from pipemare_edu.trainer.waiting import Waiting, waiting

CLOCK = [1.0, 4 / 3, 1.5, 1.6]


def test_the_speed_up_is_a_curve_with_a_mark_and_a_limit():
    figure = speedup(CLOCK, 4, 2.0, label="GPipe")
    curve, limit, now = figure.data
    assert list(curve.x) == [1, 2, 3, 4] and list(curve.y) == CLOCK
    assert set(limit.y) == {2.0} and (now.x[0], now.y[0]) == (4, 1.6)
    assert describe(figure).startswith("GPipe: 1.60 times as fast as one process, by the clock.")
    assert "No schedule gets past 2.00" in describe(figure)


def test_what_was_measured_is_marked_and_said():
    figure = speedup(CLOCK, 3, 2.0, measured=1.41)
    assert (figure.data[-1].x[0], figure.data[-1].y[0]) == (3, 1.41)
    assert describe(figure).count("measured 1.41") == 2


def test_shares_of_a_clocks_run_add_up():
    clock = simulate(schedule("gpipe", 2, 4), transfer=1.0)
    found = waiting([[e for row in clock.events for e in row]], (0, 1))
    figure = time_use(found)
    compute, transfer, wait = figure.data
    for i in range(2):
        assert compute.x[i] + transfer.x[i] + wait.x[i] == pytest.approx(100)
    assert transfer.x[0] > 0 and list(compute.y) == ["worker 1, modelled", "worker 2, modelled"]
    assert "Worker 1, modelled: computes" in describe(figure)


def test_measured_bars_stand_beside_modelled_ones():
    modelled, measured = [Waiting(8, 0, 2)] * 2, [Waiting(6, 1, 3), Waiting(5, 5, 0)]
    figure = time_use(modelled, measured)
    assert list(figure.data[0].y) == [
        "worker 1, measured", "worker 1, modelled", "worker 2, measured", "worker 2, modelled",
    ]  # fmt: skip
    assert list(figure.data[0].x) == [60, 80, 50, 80]
    words = describe(figure)
    assert words.startswith(
        "The busiest computes measured 60 % of the time, the idlest measured 50"
    )
    assert "a message is on its way measured 50 %" in words


def test_names_and_time_that_nobody_spent():
    figure = time_use([Waiting(0, 0, 0)], names=["device 1"], title="Nothing yet")
    assert shares(Waiting(0, 0, 0)) == {"compute": 0, "transfer": 0, "wait": 0}
    assert describe(figure).startswith("Nothing yet. Device 1, modelled: computes 0 %")
