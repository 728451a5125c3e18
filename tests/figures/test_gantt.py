"""The Gantt chart says what its events say: no more, no less."""

from __future__ import annotations

import numpy as np
import pytest
from effort import QUICK, calls

from pipemare_edu.figures import describe, gantt, headline
from pipemare_edu.plan.clock import Event, simulate
from pipemare_edu.plan.schedules import schedule


def events_of(timeline, kind):
    return [e for row in timeline.events for e in row if e.kind == kind]


def bars(figure):
    return {trace.name: trace for trace in figure.data if trace.type == "bar"}


@pytest.mark.parametrize("measured, scale", [(False, 1.0), (True, 1000.0)])
def test_one_bar_trace_per_kind_with_the_events_times(measured, scale):
    timeline = simulate(schedule("lockstep", 4, 2, 6), forward=1.0, backward=2.5, update=0.5)
    found = bars(gantt(timeline, measured=measured))
    assert set(found) == {"forward", "backward", "update", "idle"}
    for kind, name in (("F", "forward"), ("B", "backward"), ("U", "update")):
        mine, bar = events_of(timeline, kind), found[name]
        np.testing.assert_array_equal(bar.y, [e.stage + 1 for e in mine])
        np.testing.assert_allclose(np.array(bar.base, float), [e.start * scale for e in mine])
        np.testing.assert_allclose(bar.x, [(e.end - e.start) * scale for e in mine])
        assert list(bar.text) == [str(e.index) for e in mine]
        np.testing.assert_array_equal(bar.customdata[:, 0], [e.version for e in mine])
        assert bar.orientation == "h"


def test_hover_tells_stage_operation_microbatch_version_start_and_duration():
    template = bars(gantt(simulate(schedule("gpipe", 2, 2, 1))))["backward"].hovertemplate
    for part in (
        "stage %{y}",
        "backward of microbatch %{text}",
        "weight version",
        "start",
        "takes",
    ):
        assert part in template


def test_idle_time_is_hatched_and_adds_up():
    timeline = simulate(schedule("gpipe", 4, 8, 1))
    idle = bars(gantt(timeline))["idle"]
    assert idle.marker.pattern.shape == "/" and idle.marker.color == "rgba(0,0,0,0)"
    assert idle.x.sum() / (4 * timeline.makespan) == pytest.approx(3 / 11)


def test_every_kind_has_its_own_colour_and_hatch():
    lists = ["F0 R0 B0 U0 E0"]
    looks = [bar.marker for bar in bars(gantt(simulate(lists, update=1, evaluate=1))).values()]
    assert len({look.color for look in looks}) == len(looks) == 6
    hatches = [look.pattern.shape for look in looks[:-1]]
    assert len(set(hatches)) == len(hatches)


@pytest.mark.parametrize("kind, peaks", [("lockstep", [8, 6, 4, 2]), ("async-1f1b", [4, 3, 2, 1])])
def test_memory_strip_peaks_one_above_the_depth(kind, peaks):
    figure = gantt(simulate(schedule(kind, 4, 1, 20)), memory="stages")
    strips = [trace for trace in figure.data if trace.type == "scatter"]
    assert [max(strip.y) for strip in strips] == peaks
    assert all(strip.line.shape == "hv" and strip.yaxis == "y2" for strip in strips)
    assert figure.layout.xaxis.anchor == "y2"  # one time axis for both


def test_microbatches_that_began_before_a_part_count_from_its_beginning():
    timeline = simulate(schedule("lockstep", 4, 1, 20))
    part = [
        e for row in timeline.events for e in row if 10 <= e.start and e.end <= timeline.makespan
    ]
    whole, tail = gantt(timeline, span=(12, 20)).data[-1], gantt(part, span=(12, 20)).data[-1]
    assert max(whole.y) == max(tail.y) == 20


def test_a_span_shows_and_counts_that_part_only():
    timeline = simulate(schedule("lockstep", 4, 1, 40))
    whole, steady = gantt(timeline), gantt(timeline, span=(20.0, 60.0))
    assert whole.layout.xaxis.range == (0.0, timeline.makespan)
    assert steady.layout.xaxis.range == (20.0, 60.0)
    assert "idle 0 %" in headline(steady)
    assert len(bars(steady)["forward"].x) < len(bars(whole)["forward"].x)


@pytest.mark.parametrize(
    "memory, says", [("total", "summed over stages"), ("stages", "upon stage")]
)
def test_the_strip_says_what_it_counts(memory, says):
    (label,) = gantt(simulate(schedule("gpipe", 2, 2, 1)), memory=memory).layout.annotations
    assert label.text.startswith("in flight, ") and says in label.text


def test_an_outline_keeps_bars_of_one_kind_apart():
    found = bars(gantt(simulate(schedule("gpipe", 2, 2, 1))))
    assert found["forward"].marker.line.color != found["forward"].marker.color
    assert found["update"].marker.line.color == found["update"].marker.color  # it takes no time


def test_message_and_description():
    figure = gantt(simulate(schedule("gpipe", 4, 8, 1)))
    assert headline(figure) == "4 stages, a device each: idle 27 % of the time"
    text = describe(figure)
    assert "32 forwards, 32 backwards and 4 updates" in text
    assert "in flight: 8, 8, 8 and 8; over all stages 32" in text
    assert repr(figure) == text == figure._repr_mimebundle_()["text/plain"]


def test_measured_times_are_labelled_so():
    events = [Event(0, "F", 0, 0.0, 0.002, 0), Event(0, "B", 0, 0.002, 0.006, 0)]
    figure = gantt(events, measured=True)
    assert "measured" in figure.layout.xaxis.title.text and "ms" in figure.layout.xaxis.title.text
    assert "idle 0 %" in headline(figure)


def test_hundreds_of_operations_take_milliseconds_and_tens_of_kilobytes():
    timeline = simulate(schedule("lockstep", 8, 2, 12))
    assert 450 < sum(map(len, timeline.events)) < 550
    assert len(gantt(timeline).to_json()) < 60_000
    assert calls(lambda: gantt(timeline).to_json()) < QUICK


def test_no_events_is_an_error():
    with pytest.raises(ValueError, match="no events"):
        gantt([])
