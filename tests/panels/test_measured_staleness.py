"""MeasuredStaleness, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio
import math

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import describe, placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import MeasuredStaleness, measured_staleness
from pipemare_edu.training import Job


def run(panel: MeasuredStaleness) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def depth(schedule: str, stages: int, stage: int) -> int:
    return 2 * (stages - stage) + 1 if schedule == "lockstep" else stages - stage


def names(panel: MeasuredStaleness) -> list[str]:
    return [trace.name for trace in panel.figures["staleness"].shown.data]


@pytest.mark.parametrize("schedule", ["lockstep", "async-1f1b"])
@pytest.mark.parametrize("stages, microbatches", [(1, 1), (4, 1), (4, 4), (8, 3), (12, 8)])
def test_measured_implied_and_formula_agree(schedule, stages, microbatches):
    panel = MeasuredStaleness(schedule, stages, microbatches)
    assert names(panel) == ["implied by the schedule", "formula τ"]
    assert run(panel) == "done"
    expected = [depth(schedule, stages, i) for i in range(1, stages + 1)]
    for trace in panel.figures["staleness"].shown.data:
        assert list(trace.y) == pytest.approx([d / microbatches for d in expected])
    assert [d.max for d in panel.result().staleness.forward] == [
        math.ceil(d / microbatches) for d in expected
    ]


def test_the_plain_call_gives_the_same_figure():
    given = ("async-1f1b", 3, 2, 12)
    panel, plain = MeasuredStaleness(*given), measured_staleness(*given)
    run(panel)
    assert plain["staleness"].to_json() == panel.figures["staleness"].shown.to_json()
    assert describe(plain["staleness"]) == panel.figures["staleness"].alt
    assert plain.value.losses == panel.result().losses and plain.value.steps == 12


def test_every_control_is_followed_at_once_and_used_by_run():
    panel = MeasuredStaleness()
    run(panel)
    assert "measured" in names(panel)
    changes = {"schedule": "async-1f1b", "stages": 8, "microbatches": 4}
    assert set(changes) == set(panel.controls)
    seen = {panel.figures["staleness"].alt}
    for name, value in changes.items():
        panel.controls[name].value = value
        assert "measured" not in names(panel) and panel.result() is None
        seen.add(panel.figures["staleness"].alt)
    assert len(seen) == 4 and not panel.reached()
    run(panel)
    config = panel.result().config
    assert (len(config["stages"]), config["microbatches"]) == (8, 4)
    assert "depth='async-1f1b'" in config["method"]
    assert panel.reached() and "✔" in panel._goal.value


def test_the_goal_wants_a_measurement_of_an_asynchronous_pipe():
    panel = MeasuredStaleness("lockstep", 8, 8)
    assert not panel.reached()
    run(panel)
    assert panel.result().staleness.forward[0].mean == 15 / 8 and panel.reached()
    panel.controls["microbatches"].value = 7
    run(panel)
    assert not panel.reached()


def test_a_run_that_ends_early_says_so():
    panel = MeasuredStaleness(stages=12, steps=5)
    assert run(panel) == "done"
    assert "before its pipe was full" in panel.figures["staleness"].alt


def test_cancel_and_a_control_moved_meanwhile():
    panel = MeasuredStaleness(steps=100_000)

    async def cell():
        panel.run.click()
        while not (panel.last and panel.last.steps > 20):
            await asyncio.sleep(0.01)
        panel.controls["stages"].value = 6
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert 20 < panel.result().steps < 100_000 and "Cancelled" in panel.status.value
    for trace in panel.figures["staleness"].shown.data:  # what was measured, not what is asked now
        assert list(trace.y) == [7, 5, 3, 1]


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = MeasuredStaleness()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run(panel)
    assert "broken on purpose" in panel.status.value


def test_an_error_after_a_change_shows_and_is_raised(monkeypatch):
    panel = MeasuredStaleness()
    monkeypatch.setattr("pipemare_edu.panels.staleness.staleness_bars", broken)
    panel.controls["stages"].value = 5
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


def test_bad_input_is_the_plain_text_of_the_error():
    panel = MeasuredStaleness()
    panel.controls["stages"].max = 20
    panel.controls["stages"].value = 20
    with pytest.raises(ValueError, match="12 layers cannot fill 20 stages"):
        run(panel)
    assert "12 layers" in panel.status.value and "Traceback" not in panel.status.value


def test_disposal_and_a_new_one_leave_nothing_behind():
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    before = set(registry._instances)
    for _ in range(2):
        panel = MeasuredStaleness()
        run(panel)
        panel.dispose()
    assert set(registry._instances) == before


def test_the_text_form_says_the_plain_call():
    text = repr(MeasuredStaleness(steps=30))
    assert "measured_staleness(schedule='lockstep', stages=4, microbatches=1, steps=30)" in text
