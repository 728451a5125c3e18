"""ScheduleLab, without a browser: changed, measured, cancelled, broken."""

from __future__ import annotations

import asyncio

import pytest
from effort import QUICK, calls
from ipywidgets.widgets import widget as registry

import pipemare_edu as pm
from pipemare_edu.figures import headline
from pipemare_edu.panels import ScheduleLab, schedule_lab
from pipemare_edu.panels.timing import SCHEDULES, Settings, measuring
from pipemare_edu.trainer.session import last

SHORT = {"schedule": "1f1b", "stages": 3, "microbatches": 4, "ratio": 2.0, "steps": 4}


def measured(panel: ScheduleLab) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


CHANGES = [
    ("schedule", "naive", {"schedule": "naive"}),
    ("schedule", "1f1b", {"schedule": "1f1b"}),
    ("stages", 7, {"stages": 7}),
    ("microbatches", 20, {"microbatches": 20}),
    ("ratio", 3.5, {"ratio": 3.5}),
    ("slow", 3, {"slow": 3}),
]


@pytest.mark.parametrize(("name", "value", "given"), CHANGES)
def test_every_control_redraws_at_once_what_the_plain_call_gives(name, value, given):
    panel = ScheduleLab()
    before = panel.figures["counted"].state.spec
    panel.controls[name].value = value
    plain = schedule_lab(**given, steps=0)
    assert panel.figures["counted"].state.spec != before
    for key, figure in plain.figures.items():
        assert panel.figures[key].shown.to_json() == figure.to_json()
    assert f"idle {100 * panel.now.timeline.idle:.1f} %" in panel.status.value


def test_how_slow_the_slow_stage_is_and_the_strip():
    panel = ScheduleLab(slow=2)
    before = panel.figures["counted"].state.spec
    panel.controls["slower"].value = 3.0
    assert panel.figures["counted"].state.spec != before
    panel.views["memory"].value = "total"
    plain = schedule_lab(slow=2, slower=3.0, memory="total", steps=0)
    assert panel.figures["counted"].shown.to_json() == plain["counted"].to_json()
    assert set(panel.controls) == {name for name, *_ in CHANGES} | {"slower"}
    assert "for equal stages: (P−1)/(N+P−1) = 3/11" in panel.figures["counted"].alt


def test_the_largest_pipeline_follows_a_slider():
    panel = ScheduleLab(stages=8, microbatches=31)
    for n in (32, 31):
        assert calls(lambda n=n: panel.controls["microbatches"].set_trait("value", n)) < QUICK


def test_the_formula_stands_beside_the_count():
    panel = ScheduleLab()
    title = headline(panel.figures["counted"].shown)
    assert title == "GPipe: idle 27.3 % of the time; the formula: (P−1)/(N+P−1) = 3/11 = 27.3 %"
    assert "which is 37.5 % of working time; at most 8 in flight" in panel.status.value
    panel.set(schedule="naive", slow=1)
    assert "idle 75.0 % of the time; the formula: (P−1)/P" in panel.figures["counted"].alt


def test_a_slow_stage_is_one_of_those_that_are_there():
    panel = ScheduleLab(stages=5, slow=5)
    panel.controls["stages"].value = 4
    assert panel.controls["slow"].value == 0 and panel.now.slow == 0
    panel.controls["slow"].value = 4
    panel.controls["stages"].value = 6
    assert panel.controls["slow"].value == 4 and panel.error is None
    assert panel.controls["slow"].options[-1] == ("stage 6", 6)


def test_measure_trains_a_real_pipeline():
    panel = ScheduleLab(**SHORT)
    assert panel.result() is None
    assert measured(panel) == "done"
    found = panel.result()
    run = found.run
    assert run.status == "done" and run.steps == 4 and run.config["method"].startswith("OneFOneB")
    assert run.trace.operations(0)[:9] == pm.schedule("1f1b", 3, 4)[0]
    assert 0 < found.idle < 1 and len(found.events) == 3 * 9
    chart = panel.figures["measured"].shown
    assert "measured" in chart.layout.xaxis.title.text
    assert headline(chart).startswith("1F1B, P=3, N=4, B/F 2, measured: idle")
    assert "Done: 4 of 4 steps. 1F1B, P=3, N=4, B/F 2: measured" in panel.status.value
    assert any("measured" in t.name for t in panel.figures["ratios"].shown.data)


def test_the_knobs_reach_the_layers():
    """By the work that each stage is given, which no other program can disturb."""
    works = []
    for settings in ({}, {"slow": 2, "slower": 3.0}, {"ratio": 4.0}):
        panel = ScheduleLab(**SHORT | settings)
        now = panel.now
        works.append((now.forward, now.ratio))
    assert works == [([1, 1, 1], 2.0), ([1, 3, 1], 2.0), ([1, 1, 1], 4.0)]
    run = last(measuring(Settings(stages=3, microbatches=2, slow=2, slower=20.0), steps=6))
    seconds = [row["F"] + row["B"] for row in run.trace.seconds]
    assert seconds[1] == max(seconds)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_each_schedule_runs_as_its_lists_say(kind):
    run = last(measuring(Settings(kind, stages=3, microbatches=2), steps=2))
    lists = pm.schedule(SCHEDULES[kind].depth, 3, 2, steps=2)
    assert [run.trace.operations(i) for i in range(3)] == lists


def test_a_measurement_keeps_its_name_when_the_controls_move_on():
    panel = ScheduleLab(**SHORT)
    measured(panel)
    panel.controls["stages"].value = 5
    assert headline(panel.figures["measured"].shown).startswith("1F1B, P=3")
    assert not any("measured" in t.name for t in panel.figures["ratios"].shown.data)


def test_the_plain_call_shows_what_a_panel_shows_after_a_run():
    panel = ScheduleLab(**SHORT)
    measured(panel)
    plain = schedule_lab(**SHORT)
    assert list(plain.figures) == list(panel.figures) == ["counted", "measured", "ratios"]
    for name, figure in plain.figures.items():
        theirs = panel.figures[name].shown
        assert [t.name for t in figure.data] == [t.name for t in theirs.data]
    assert plain["counted"].to_json() == panel.figures["counted"].shown.to_json()
    assert plain.value.settings == panel.result().settings


def test_cancel_keeps_what_was_measured():
    panel = ScheduleLab(**SHORT | {"steps": 100_000})

    async def cell():
        panel.run.click()
        while panel.measured is None:
            await asyncio.sleep(0.01)
        drawn = panel.figures["measured"].state.spec
        async with asyncio.timeout(20):
            while panel.figures["measured"].state.spec == drawn:
                await asyncio.sleep(0.01)
        panel.controls["microbatches"].value = 9  # follows while it measures
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert "Cancelled: " in panel.status.value and "measured" in panel.status.value
    assert panel.result().settings.microbatches == 4
    assert "P=3, N=9" not in panel.figures["measured"].alt


def test_cancelled_before_the_first_step_says_so():
    panel = ScheduleLab(**SHORT)
    panel.draw(live=True)

    async def cell():
        panel.run.click()
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert "Cancelled: " in panel.status.value


def test_the_goal():
    panel = ScheduleLab(stages=6)
    panel.set(microbatches=32)
    assert not panel.reached()  # GPipe holds all 32
    panel.set(schedule="1f1b")
    assert panel.reached() and "✔" in panel._goal.value
    panel.set(microbatches=20)
    assert not panel.reached() and "✔" not in panel._goal.value


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    panel = ScheduleLab(**SHORT)
    monkeypatch.setattr("pipemare_edu.panels.timing.mse_loss", broken)
    with pytest.raises(pm.StageError, match="on purpose"):
        measured(panel)
    assert "broken on purpose" in panel.status.value


def test_an_error_in_a_control_shows_and_is_raised(monkeypatch):
    panel = ScheduleLab(**SHORT)
    monkeypatch.setattr("pipemare_edu.panels.schedules.bubbles", broken)
    panel.controls["microbatches"].value = 5
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"schedule": "gpip"}, "did you mean 'gpipe'"),
        ({"stages": 0}, "stages is 0"),
        ({"microbatches": 1.5}, "microbatches is 1.5"),
        ({"ratio": 0}, "ratio is 0"),
        ({"slow": 5}, "slow is 5: give a whole number, from 0 to 4"),
        ({"slower": -1}, "slower is -1"),
        ({"steps": -1}, "steps is -1"),
    ],
)
@pytest.mark.parametrize("make", [ScheduleLab, schedule_lab], ids=["panel", "plain call"])
def test_what_cannot_be_is_refused_at_once(make, given, says):
    with pytest.raises(ValueError, match=says):
        make(**given)


def test_disposal_leaves_no_widget():
    ScheduleLab().dispose()  # the bundle stays
    widgets = set(registry._instances)
    for _ in range(2):
        panel = ScheduleLab(**SHORT)
        panel.controls["slow"].value = 1
        measured(panel)
        panel.dispose()
        assert set(registry._instances) == widgets


def test_the_text_form_says_the_plain_call():
    text = repr(ScheduleLab(**SHORT))
    assert text == repr(ScheduleLab(**SHORT)) and "Measure, Cancel" in text
    assert (
        "schedule_lab(schedule='1f1b', stages=3, microbatches=4, ratio=2.0, slow=0, slower=2.0, "
        "steps=4, memory='stages') gives the same figures" in text
    )
