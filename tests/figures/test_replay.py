"""Any gapless part of a run can be placed by the clock."""

from __future__ import annotations

import pytest

import pipemare_edu as pm
from pipemare_edu.figures import gantt, headline, replay
from pipemare_edu.figures.settled import UNIT, settled
from pipemare_edu.plan.clock import Event, simulate
from pipemare_edu.plan.schedules import schedule


@pytest.fixture(scope="module")
def run():
    return pm.train("digits", method="pipemare", stages=4, microbatches=2, steps=60)


def keyed(events):
    return {(e.stage, e.kind, e.index): e for e in events}


def test_model_time_of_a_whole_run_is_the_clocks(run):
    events = run.trace.events
    placed = replay(events, {"F": 1.0, "B": 2.0})
    lists = [run.trace.operations(i) for i in range(4)]
    timeline = simulate(lists, forward=1.0, backward=2.0)
    assert keyed(placed) == keyed(e for row in timeline.events for e in row)


@pytest.mark.parametrize("first, count", [(0, 50), (0, 333), (117, 200), (500, 1000), (-40, 40)])
def test_any_part_keeps_operations_durations_and_versions(run, first, count):
    part = run.trace.events[first:][:count]
    before, after = keyed(part), keyed(replay(part))
    assert before.keys() == after.keys()
    for key, e in before.items():
        assert after[key].version == e.version
        assert after[key].end - after[key].start == pytest.approx(e.end - e.start)
    for stage in range(4):
        row = [e for e in after.values() if e.stage == stage]
        assert all(a.end <= b.start + 1e-12 for a, b in zip(row, row[1:], strict=False))


def test_a_full_pipe_has_no_bubbles_in_model_time():
    timeline = simulate(schedule("lockstep", 4, 1, 40))
    ordered = sorted((e for row in timeline.events for e in row), key=lambda e: e.start)
    middle = replay([e for e in ordered if 20 <= e.start < 60], {"F": 1.0, "B": 1.0})
    assert "idle 0 %" in headline(gantt(middle, span=(5.0, 35.0)))


@pytest.mark.parametrize("measured, unit", [(None, "ms"), (True, "ms"), (False, "model time")])
def test_a_run_is_drawn_as_the_panel_draws_it(run, measured, unit):
    chart = gantt(run, measured)
    events, span = settled(run, UNIT if measured is False else None)
    assert chart == gantt(events, measured is not False, span=span)
    assert unit in chart.layout.xaxis.title.text and span is not None


def test_events_with_a_gap_are_refused():
    with pytest.raises(ValueError, match="gapless"):
        replay([Event(0, "B", 0, 0.0, 1.0, 0), Event(0, "F", 0, 1.0, 2.0, 0)])


def test_nothing_gives_nothing():
    assert replay([]) == []
