"""A pipeline event by event, and its two pictures."""

from __future__ import annotations

import pytest
from effort import QUICK, calls

from pipemare_edu.figures import describe, headline, listing, pipe, walk
from pipemare_edu.plan.clock import simulate
from pipemare_edu.plan.ops import Op
from pipemare_edu.plan.schedules import schedule

DEADLOCK = ["F0 F1 B0 B1 U0", "F1 F0 B1 B0 U0"]
KINDS = ["sequential", "gpipe", "1f1b", "async-1f1b", "lockstep"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_every_state_follows_from_the_lists(kind, stages):
    """Against counts made from the lists alone."""
    lists = schedule(kind, stages, 2, steps=3)
    found = walk(lists)
    assert len(found.events) == sum(map(len, lists)) and len(found.states) == len(found.events) + 1
    for state in found.states:
        ran = [ops[:n] for ops, n in zip(lists, state.done, strict=True)]
        kinds = [{k: [op.index for op in ops if op.kind == k] for k in "FBU"} for ops in ran]
        for i, mine in enumerate(kinds):
            assert state.held[i] == tuple(m for m in mine["F"] if m not in mine["B"])
            assert state.versions[i] == len(mine["U"])
        for i, (above, below) in enumerate(zip(kinds, kinds[1:], strict=False)):
            down = [Op("F", m) for m in above["F"] if m not in below["F"]]
            up = [Op("B", m) for m in below["B"] if m not in above["B"]]
            assert (list(state.down[i]), list(state.up[i])) == (down, up)
    assert found.states[-1].in_flight == [] and found.next(len(found.events)) == [None] * stages


def test_the_most_held_is_the_clocks_in_flight():
    lists = schedule("1f1b", 4, 8)
    states = walk(lists).states
    peaks = tuple(max(len(state.held[i]) for state in states) for i in range(4))
    assert peaks == simulate(lists).in_flight


def test_evaluations_travel_too():
    found = walk(["F0 B0 U0 E0", "F0 B0 U0 E0"])
    waiting = [state.down[0] for state in found.states if state.down[0]]
    assert (Op("E", 0),) in waiting and found.deadlock is None
    at = next(n for n, state in enumerate(found.states) if state.down[0] == (Op("E", 0),))
    figure = pipe(found, at)
    assert figure.layout.xaxis.ticktext == ("E", "0")
    assert "down: E0" in describe(figure)


def test_recompute_changes_nothing_that_is_held():
    found = walk(["F0 R0 B0 U0"])
    assert [state.held for state in found.states] == [((),), ((0,),), ((0,),), ((),), ((),)]


def test_a_deadlock_says_who_waits_for_what():
    found = walk(DEADLOCK)
    assert len(found.events) == 2 and found.stuck(1) == {}
    assert found.stuck(2) == {
        0: "stage 1 waits to run B0: stage 2 has not sent it next",
        1: "stage 2 waits to run F1: stage 1 has not sent it next",
    }
    assert headline(pipe(found, 2)) == "Deadlock after 2 events: no stage can go on"
    figure = listing(found, 2)
    assert headline(figure) == "Waiting for ever: stage 1 at B0, stage 2 at F1"
    marked = {
        text: width
        for bar in figure.data
        if bar.type == "bar"
        for text, width in zip(bar.text, bar.marker.line.width, strict=True)
    }
    assert marked["✕ B0"] == marked["✕ F1"] == 4 and marked["F0"] == 1
    first = [bar.marker.line.width[0] for bar in figure.data if bar.type == "bar"]
    assert first == [1, 1, 1]  # the legend shows the first bar: not the frame of one that waits
    assert "stuck at B0" in pipe(found, 2).layout.yaxis2.ticktext[0]


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_where_every_microbatch_is():
    found = walk(schedule("gpipe", 3, 4))
    figure = pipe(found, 9)
    state, seen = found.states[9], traces(figure)
    held = [(m, 2 * i) for i, row in enumerate(state.held) for m in row]
    tokens = seen["held by a stage"]
    assert list(zip(tokens.x, tokens.y, strict=True)) == held and len(held) > 4
    down = seen["output in a link, going down"]
    assert [(op.index, 2 * i + 1) for i, row in enumerate(state.down) for op in row] == list(
        zip(down.x, down.y, strict=True)
    )
    assert seen["gradient in a link, going up"].x == (None,)  # it keeps its entry in the legend
    assert len({trace.marker.symbol for trace in (*list(seen.values())[1:],)}) == 4
    assert figure.layout.xaxis.title.text == "microbatch; in flight: 0 1 2 3"
    assert headline(figure) == "Event 9 of 27: stage 3 ran F1"


def test_what_has_run_is_filled_and_what_is_to_come_is_pale():
    found = walk(schedule("1f1b", 2, 2))
    for at in (0, 3, len(found.events)):
        bars = [bar for bar in listing(found, at).data if bar.type == "bar"]
        ran = [done for bar in bars for done in bar.customdata]
        assert ran.count("has run") == at and len(ran) == 10
        colours = [c for bar in bars for c in bar.marker.color]
        assert sum(c.startswith("rgba") for c in colours) == 10 - at
    assert headline(listing(found, 3)) == "3 of 10 operations have run"
    assert "Nothing has run yet: 10 events to come" in describe(pipe(found, 0))
    assert "everything is done" in describe(pipe(found, 10))


def test_a_lone_stage_and_lists_without_operations():
    for lists in (["F0 B0 U0"], [""], ["", ""]):
        found = walk(lists)
        for at in range(len(found.states)):
            assert describe(pipe(found, at)) and describe(listing(found, at))


def test_a_picture_takes_milliseconds_and_tens_of_kilobytes():
    found = walk(schedule("gpipe", 8, 16))
    assert len(pipe(found, 100).to_json()) + len(listing(found, 100).to_json()) < 60_000
    assert calls(lambda: (pipe(found, 101).to_json(), listing(found, 101).to_json())) < QUICK
