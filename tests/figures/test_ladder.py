"""The version ladder: ages from versions alone, the same on paper and from a run."""

from __future__ import annotations

import random

import pytest
from effort import QUICK, calls

import pipemare_edu as pm
from pipemare_edu.figures import describe, headline, ladder
from pipemare_edu.figures.ages import ages, by_stage, stashed
from pipemare_edu.figures.ladder import LIT, UNIT, beginning
from pipemare_edu.figures.passages import find, passage, tell
from pipemare_edu.plan.clock import Event, simulate
from pipemare_edu.plan.ops import Op
from pipemare_edu.plan.schedules import schedule


def paper(kind="lockstep", stages=4, microbatches=1, steps=12):
    return simulate(schedule(kind, stages, microbatches, steps), update=UNIT["U"])


def bars(figure):
    return {trace.name: trace for trace in figure.data if trace.type == "bar"}


def random_depths(draw):
    depths, least = [], 0
    for _ in range(draw.randint(1, 5)):
        least += draw.randint(0, 3)
        depths.insert(0, least)
    return depths


@pytest.mark.parametrize("seed", range(20))
def test_ages_and_passages_are_the_staleness_of_the_lists(seed):
    draw = random.Random(seed)
    depths, size = random_depths(draw), draw.randint(1, 4)
    timeline = paper(depths, len(depths), size, draw.randint(1, 9))
    for row, delays in zip(timeline.events, timeline.staleness, strict=True):
        found = ages(row)
        assert len(found) == 2 * len(delays)
        for d in delays:
            assert found[Op("F", d.microbatch)] == d.forward
            assert found[Op("B", d.microbatch)] == d.backward
            seen = passage(row, d.microbatch)
            assert seen.tau == d.forward and seen.applied.index == d.step
            assert all(seen.forward.start < u.start < seen.backward.start for u in seen.between)


def test_what_belongs_to_no_whole_passage_has_no_age():
    row = [Event(0, "B", 0, 0, 1, 0), Event(0, "U", 0, 1, 2, 0), Event(0, "F", 1, 2, 3, 1)]
    assert ages(row) == {}
    assert passage(row, 0) is None and passage(row, 1).tau is None
    assert "used outside this chart" in tell([row], (0, "F1"))
    assert "used outside" in bars(ladder(row))["forward"].customdata[0][1]


def test_a_stashing_backward_is_as_old_as_its_forward():
    events = stashed(paper())
    row = by_stage(events)[0]
    found = ages(row)
    assert found[Op("F", 8)] == found[Op("B", 8)] == 7


@pytest.mark.parametrize("kind", ["lockstep", "async-1f1b", "gpipe", [3, 3, 1, 0]])
@pytest.mark.parametrize("method", [pm.PipeMare, pm.PipeDream])
def test_a_run_gives_the_ladder_of_its_lists(kind, method):
    run = pm.train("digits", method(depth=kind), 4, 2, steps=6, rate=0.01)
    timeline = paper(kind, 4, 2, 6)
    events = stashed(timeline) if method is pm.PipeDream else timeline
    expected = [tuple(e) for row in by_stage(events) for e in row]
    assert sorted(map(tuple, beginning(run))) == sorted(expected)
    drawn, counted = ladder(run), ladder(events, stamped=True)
    assert describe(drawn) == describe(counted)
    assert "stamped by a real run" in drawn.layout.xaxis.title.text
    assert "counted from the lists" in ladder(events).layout.xaxis.title.text


def test_bars_carry_microbatch_version_and_age():
    timeline = paper()
    forward = bars(ladder(timeline))["forward"]
    mine = [e for row in timeline.events for e in row if e.kind == "F"]
    assert list(forward.ids) == [f"{e.stage} F{e.index}" for e in mine]
    assert list(forward.text) == [str(e.index) for e in mine]
    assert [data[0] for data in forward.customdata] == [e.version for e in mine]
    flat = {(e.stage, e.index): ages(timeline.events[e.stage])[Op("F", e.index)] for e in mine}
    assert list(forward.marker.color) == list(flat.values())
    assert [data[1] for data in forward.customdata][:2] == [
        "0 updates old when its gradient is used",
        "1 update old when its gradient is used",
    ]
    assert "weight version" in forward.hovertemplate


def test_kinds_are_told_apart_without_colour_and_ages_by_lightness():
    figure = ladder(paper())
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 3
    scale = [colour for _, colour in figure.layout.coloraxis.colorscale]
    light = [sum(int(c[n : n + 2], 16) * k for n, k in ((1, 2), (3, 7), (5, 1))) for c in scale]
    assert light == sorted(light, reverse=True)


def lit(figure):
    return {
        id
        for trace in figure.data
        if trace.type == "bar"
        for id, colour in zip(trace.ids, trace.marker.line.color, strict=True)
        if colour == LIT
    }


def test_a_chosen_forward_lights_its_backward_and_the_updates_between_counted():
    updates = {f"0 U{k}" for k in range(1, 8)}
    figure = ladder(paper(), (0, "F8"))
    assert lit(figure) == {"0 F8", "0 B8", *updates}
    counts = figure.data[-1]
    assert [text.strip("<b>/") for text in counts.text] == [str(n) for n in range(1, 8)]
    assert headline(figure).endswith("so τ = 7")
    assert lit(ladder(paper(), (0, "B8"))) == lit(figure)
    assert lit(ladder(paper(), (0, "U4"))) == {"0 U4"}
    assert lit(ladder(paper())) == set()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ((0, "F8"), "7 updates, 1 to 7, come before its gradient is used, so τ = 7"),
        ((3, "F8"), "1 update, 7, comes before its gradient is used, so τ = 1"),
        ((0, "F0"), "no update comes before its gradient is used, so τ = 0"),
        (
            (1, "B8"),
            "It reads version 8, its forward version 3; update 8 applies the gradient to",
        ),
        ((0, "U4"), "Stage 1, update 4: makes version 5 with the gradient of microbatch 4."),
    ],
)
def test_an_operation_in_words(place, says):
    assert says in tell(by_stage(paper()), place)


def test_an_update_names_all_microbatches_that_it_uses():
    rows = by_stage(paper(microbatches=2))
    assert "gradient of microbatches 4 and 5." in tell(rows, (0, "U2"))


@pytest.mark.parametrize(
    ("place", "says"),
    [((0, "F99"), "has no F99"), ((9, "F0"), "stages 0 to 3"), ((0, "F1 B1"), "not one operation")],
)
def test_an_operation_that_is_not_there(place, says):
    with pytest.raises(ValueError, match=says):
        find(by_stage(paper()), place)


def test_message_and_description():
    assert headline(ladder(paper())) == (
        "Forwards of stage 1 read weights up to 7 updates old, those of stage 4 up to 1"
    )
    assert "forwards 7, 5, 3 and 1; by backwards 0, 0, 0 and 0" in describe(ladder(paper()))
    assert "still the newest" in headline(ladder(paper("gpipe", 4, 2)))
    assert "up to 1 update old" in headline(ladder(paper("lockstep", 1, 1)))


def test_hundreds_of_operations_take_milliseconds_and_tens_of_kilobytes():
    timeline = paper("lockstep", 8, 2, 13)
    assert 500 < sum(map(len, timeline.events)) < 550
    assert len(ladder(timeline, (0, "F15")).to_json()) < 90_000
    assert calls(lambda: ladder(timeline, (0, "F16")).to_json()) < QUICK


def test_no_events_is_an_error():
    with pytest.raises(ValueError, match="no events"):
        ladder([])
