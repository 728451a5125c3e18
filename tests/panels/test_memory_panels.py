"""MemoryLedger and RecomputeSegments, without a browser: changed, run, cancelled, broken."""

from __future__ import annotations

import asyncio

import pytest
from effort import QUICK, calls
from ipywidgets.widgets import widget as registry

import pipemare_edu as pm
from pipemare_edu.panels import (
    MemoryLedger,
    RecomputeSegments,
    memory_ledger,
    recompute_segments,
)
from pipemare_edu.panels.bill import NAMES, OPTIMIZERS, Bill
from pipemare_edu.panels.segmented import Pipe
from pipemare_edu.plan.held import peaks
from pipemare_edu.plan.schedules import depths

SMALL = {"method": "pipemare-t2", "optimizer": "Adam", "stages": 4, "microbatches": 2}
PANELS = [(MemoryLedger, memory_ledger, SMALL), (RecomputeSegments, recompute_segments,
          {"stages": 5, "segment": 2})]  # fmt: skip
BOTH = pytest.mark.parametrize(("make", "plain", "given"), PANELS, ids=["ledger", "segments"])


def ran(panel) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def specs(panel) -> dict[str, str]:
    return {name: fig.shown.to_json() for name, fig in panel.figures.items()}


# Both


@BOTH
def test_the_plain_call_shows_what_a_panel_shows(make, plain, given):
    panel = make(**given)
    before = plain(**given, run=False)
    assert specs(panel) == {name: f.to_json() for name, f in before.figures.items()}
    assert ran(panel) == "done" and panel.result().run.status == "done"
    after = plain(**given)
    assert specs(panel) == {name: f.to_json() for name, f in after.figures.items()}
    assert after.value.run.memory == panel.result().run.memory


@BOTH
def test_cancel(make, plain, given, monkeypatch):
    monkeypatch.setattr(Bill, "steps", 100_000)
    panel = make(**given, **({} if make is MemoryLedger else {"steps": 100_000}))

    async def cell():
        panel.run.click()
        while not (panel.last and panel.last.run.steps > 5):
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert "Cancelled: " in panel.status.value and panel.draw(live=True) == {}
    assert 5 < panel.result().run.steps < 100_000
    assert "a real run" not in "".join(specs(panel).values())


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


@BOTH
def test_an_error_in_the_trainer_shows_and_is_raised(make, plain, given, monkeypatch):
    panel = make(**given)
    monkeypatch.setattr("pipemare_edu.panels.counted.mlp", broken)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        ran(panel)
    assert "broken on purpose" in panel.status.value


@BOTH
def test_an_error_after_a_change_shows_and_is_raised(make, plain, given, monkeypatch):
    panel = make(**given)
    where = "ledger.stage_bytes" if make is MemoryLedger else "segments.segment_curve"
    monkeypatch.setattr(f"pipemare_edu.panels.{where}", broken)
    panel.controls["stages"].value = 3
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


@BOTH
def test_disposal_leaves_no_widget(make, plain, given):
    make(**given).dispose()  # the bundle stays
    widgets = set(registry._instances)
    for _ in range(2):
        panel = make(**given)
        panel.controls["stages"].value = 3
        ran(panel)
        panel.dispose()
        assert set(registry._instances) == widgets


@BOTH
def test_the_text_form_says_the_plain_call(make, plain, given):
    text = repr(make(**given))
    assert text == repr(make(**given))
    assert f"{plain.__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())}" in text


# MemoryLedger

BILLS = [
    *(Bill(method, "momentum", 12, 1) for method in NAMES),
    *(Bill(method, "SGD", 5, 3) for method in NAMES),
    *(Bill("pipemare-t2", name, 3, 8) for name in OPTIMIZERS),
    Bill("pipedream", "Adam", 12, 3, 3),
    Bill("pipemare-t2", "momentum", 7, 5, 2),
    Bill("pipemare-naive", "SGD", 12, 2, 12),
    Bill("pipedream", "SGD", 1, 1),
]


@pytest.mark.parametrize("bill", BILLS, ids=lambda b: b.label)
def test_formula_prediction_and_count_agree_to_the_byte(bill):
    *_, found = bill.counting()
    assert found.run.memory == bill.rows()
    assert found.memory.predicted == found.memory.counted


def test_the_papers_factors_are_counted():
    for name, factor in (("momentum", 4 / 3), ("Adam", 5 / 4)):
        found = memory_ledger("pipemare-t2", name).value
        assert found.factor == pytest.approx(factor) and found.slots == 12 * 13


CHANGES = [
    ("method", "pipemare-t2"),
    ("optimizer", "Adam"),
    ("stages", 7),
    ("microbatches", 4),
    ("recompute", 3),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_every_control_is_followed_at_once(name, value):
    panel = MemoryLedger()
    before = specs(panel)
    panel.controls[name].value = value
    plain = memory_ledger(**{name: value}, run=False)
    assert specs(panel) != before
    assert specs(panel) == {key: f.to_json() for key, f in plain.figures.items()}
    assert panel.now.label in panel.status.value and set(panel.controls) == {k for k, _ in CHANGES}
    panel.views["shown"].value = "activations"
    assert specs(panel) != {key: f.to_json() for key, f in plain.figures.items()}


def test_recompute_is_offered_where_there_can_be_one():
    panel = MemoryLedger(recompute=9)
    panel.controls["stages"].value = 6
    assert panel.now.recompute == 6
    panel.controls["method"].value = "gpipe"
    assert panel.now.recompute == 0 and panel.controls["recompute"].disabled
    panel.controls["method"].value = "pipemare-naive"
    assert panel.controls["recompute"].max == 6 and panel.error is None


def test_runs_are_kept_beside_each_other_and_the_goal_is_reached():
    panel = MemoryLedger(optimizer="Adam")
    ran(panel)
    panel.set(method="pipemare-t2")
    assert not panel.reached()
    ran(panel)
    assert "counted in runs: PipeDream" in panel.figures["methods"].alt
    assert not panel.reached()  # its activations are as many
    panel.set(recompute=3)
    ran(panel)
    assert panel.reached() and "✔" in panel._goal.value


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "gpip"}, "did you mean 'gpipe'"),
        ({"optimizer": "adam"}, "unknown optimizer"),
        ({"stages": 13}, "stages is 13"),
        ({"microbatches": 0}, "microbatches is 0"),
        ({"recompute": 13}, "at most the pipe's 12 stages"),
        ({"method": "gpipe", "recompute": 2}, "synchronous"),
        ({"shown": "every"}, "unknown choice"),
    ],
)
@pytest.mark.parametrize("make", [MemoryLedger, memory_ledger], ids=["panel", "plain call"])
def test_a_bill_that_cannot_be_is_refused_at_once(make, given, says):
    with pytest.raises(ValueError, match=says):
        make(**given)


# RecomputeSegments


@pytest.mark.parametrize("stages", [2, 3, 9, 16, 25])
def test_counts_in_the_lists_are_those_of_the_whole_schedule(stages):
    D = depths("lockstep", stages)
    assert Pipe(stages, 2).every == [
        sum(h.slots for h in peaks(D, s)) for s in range(1, stages + 1)
    ]
    lists = pm.schedule("lockstep", stages, 1, 2 * stages + 2, recompute=2)
    assert Pipe(stages, 2).held == pm.simulate(lists).held


def test_a_real_run_holds_what_the_lists_say():
    for stages, segment, slots in ((9, 3, 54), (16, 4, 128), (7, 3, Pipe(7, 3).slots)):
        found = recompute_segments(stages, segment).value
        assert found.slots == slots == Pipe(stages, segment).slots
        assert found.again > 0.05
    assert recompute_segments(4, 4).value.again == 0  # one segment: nothing is re-run


def test_sliders_are_followed_and_what_ran_keeps_its_name():
    panel = RecomputeSegments()
    ran(panel)
    assert "a real run held 54" in panel.figures["segments"].alt
    assert "54 stage activations counted" in panel.status.value
    panel.controls["stages"].value = 8
    assert "a real run" not in panel.figures["segments"].alt
    assert "P=8, S=3: 44 stage activations, counted in the lists" in panel.status.value
    panel.controls["stages"].value = 2
    assert panel.now.segment == 2 and panel.error is None
    panel.controls["stages"].value = 10
    assert "at most 9 stages" in panel.figures["chart"].alt


def test_the_chart_shows_a_full_pipe_in_which_the_last_segment_waits():
    words = recompute_segments(6, 2, run=False)["chart"]
    assert "recomputes" in repr(words)
    assert "Idle, from the first stage to the last: 0 %, 0 %, 0 %, 0 %, 25 % and 25 %" in repr(
        words
    )


def test_the_goal_of_the_segments():
    panel = RecomputeSegments()
    panel.set(stages=25, segment=4)
    assert not panel.reached()
    panel.set(segment=5)
    assert panel.reached()


def test_the_largest_pipe_follows_a_slider():
    panel = RecomputeSegments(25, 5)
    for segment in (6, 5):
        assert calls(lambda s=segment: panel.controls["segment"].set_trait("value", s)) < QUICK


@pytest.mark.parametrize(
    ("given", "says"),
    [({"stages": 1}, "stages is 1"), ({"segment": 0}, "segment is 0"),
     ({"stages": 4, "segment": 5}, "segment is 5"), ({"steps": 0}, "steps is 0")],
)  # fmt: skip
def test_segments_that_cannot_be_are_refused_at_once(given, says):
    with pytest.raises(ValueError, match=says):
        RecomputeSegments(**given)
    with pytest.raises(ValueError, match=says):
        recompute_segments(**given)
