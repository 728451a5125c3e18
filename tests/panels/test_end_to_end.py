"""The panels of lesson 08, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import describe, placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import CompareRuns, TimeToTarget, compare_runs, time_to_target
from pipemare_edu.training import Job

SLICE = {"task": "digits", "method": "gpipe", "steps": 32}


def clicked(panel) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


# CompareRuns


def test_a_slice_is_drawn_over_the_shipped_runs_as_by_the_plain_call():
    panel, plain = CompareRuns(**SLICE), compare_runs(**SLICE)
    assert "shipped runs" in panel.status.value
    assert clicked(panel) == "done" and not panel.reached()
    assert plain["runs"].to_json() == panel.figures["runs"].shown.to_json()
    assert describe(plain["runs"]) == panel.figures["runs"].alt
    assert "GPipe, seed 10, live: measured" in panel.figures["runs"].alt
    assert "The shipped run had" in panel.status.value
    assert panel.result().scores == plain.value.scores


def test_a_new_seed_reaches_the_goal_and_a_run_that_diverges_is_shown():
    panel = CompareRuns("digits", "pipemare-naive", seed=30, steps=64)
    assert clicked(panel) == "diverged" and panel.reached()
    assert "No run of this seed was shipped" in panel.status.value
    assert "PipeMare naive, seed 30, live: diverged" in panel.figures["runs"].alt
    panel.controls["task"].value = "shapes"
    assert "live" not in panel.figures["runs"].alt  # it belongs to the other task
    panel.controls["task"].value = "digits"
    assert "live: diverged" in panel.figures["runs"].alt


def test_every_control_and_view_is_used():
    panel = CompareRuns()
    assert set(panel.controls) == {"task", "method", "seed", "steps"}
    seen = [panel.figures["runs"].alt]
    for name, value in (("axis", "model time"), ("axis", "measured time"), ("share", 0.8)):
        panel.views[name].value = value
        assert panel.figures["runs"].alt not in seen
        seen.append(panel.figures["runs"].alt)
    panel.set(**SLICE, seed=12)
    assert clicked(panel) == "done"
    assert (panel.result().method, panel.result().seed, panel.result().steps) == ("gpipe", 12, 32)


def test_nothing_is_trained_without_a_method(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    shown = compare_runs("shapes", None)
    assert shown.value is None
    assert shown["runs"].to_json() == CompareRuns("shapes").figures["runs"].shown.to_json()


def test_cancelling_a_slice():
    panel = CompareRuns("digits", "gpipe", steps=700)

    async def cell() -> str:
        panel.run.click()
        while panel.last is None or panel.last.steps < 2:
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert panel.result().steps < 700 and not panel.run.disabled


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"task": "word"}, "did you mean 'words'"),
        ({"method": "pipmare"}, "did you mean 'pipemare'"),
        ({"axis": "time"}, "unknown axis 'time'"),
        ({"steps": 0}, "steps"),
        ({"steps": 5000}, "a run of words has 1600 steps, and a slice of it no more"),
        ({"task": "digits", "steps": 801}, "a run of digits has 800 steps"),
        ({"seed": -1}, "seed"),
    ],
)
@pytest.mark.parametrize("make", [CompareRuns, compare_runs], ids=["panel", "plain call"])
def test_what_was_not_run_is_refused(make, given, says):
    with pytest.raises(ValueError, match=says):
        make(**given)


def test_more_steps_than_the_runs_have_are_refused_on_run_as_well(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = CompareRuns("words", steps=1200)
    panel.set(task="digits")
    with pytest.raises(ValueError, match="a run of digits has 800 steps"):
        clicked(panel)
    assert "steps is 1200" in panel.status.value


# TimeToTarget


def test_the_plain_call_gives_the_same_figure():
    given = {"task": "words", "share": 0.9, "stages": "measured", "bubble": 0.25}
    panel, plain = TimeToTarget(**given), time_to_target(**given)
    assert plain["factors"].to_json() == panel.figures["factors"].shown.to_json()
    assert plain.value == panel.result()


def test_the_figure_follows_every_control_and_the_goal_is_reached():
    panel = TimeToTarget()
    assert not panel.reached()
    changes = {"share": 0.9, "stages": "measured", "bubble": 0.0, "task": "words"}
    assert set(changes) == set(panel.controls)
    seen = [panel.figures["factors"].alt]
    for name, value in changes.items():
        panel.controls[name].value = value
        assert panel.figures["factors"].alt not in seen, name
        seen.append(panel.figures["factors"].alt)
        assert "asynchronous ones" in panel.status.value
    panel.set(task="shapes", stages="alike", share=0.95, bubble=0.0)
    assert panel.reached()


def test_stages_are_measured_here():
    panel = TimeToTarget("words")
    assert clicked(panel) == "done"
    assert panel.here["words"]["gpipe"] > panel.here["words"]["pipemare-naive"] > 0
    assert "Measured on this machine just now" in panel.status.value
    panel.controls["task"].value = "shapes"
    assert "just now" not in panel.status.value


def test_cancelling_a_measurement():
    panel = TimeToTarget("digits")

    async def cell() -> str:
        panel.run.click()
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled" and not panel.here


@pytest.mark.parametrize("bad", [0, 2.0, "a", True])
@pytest.mark.parametrize("make", [CompareRuns, compare_runs], ids=["panel", "plain call"])
def test_a_target_is_a_share(make, bad):
    with pytest.raises(ValueError, match="share is .*: give a number above 0, 1 at most"):
        make(share=bad)


@pytest.mark.parametrize(
    "bad", [{"share": 2.0}, {"bubble": -1}, {"bubble": "a"}, {"stages": "x"}, {"task": "y"}]
)
@pytest.mark.parametrize("make", [TimeToTarget, time_to_target], ids=["panel", "plain call"])
def test_impossible_assumptions_are_refused(make, bad):
    with pytest.raises(ValueError):
        make(**bad)


# Both

PANELS = {"runs": lambda: CompareRuns(**SLICE), "target": lambda: TimeToTarget("words")}


@pytest.mark.parametrize("name", PANELS)
def test_an_error_in_the_trainer_shows_and_is_raised(name, monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = PANELS[name]()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        clicked(panel)
    assert "broken on purpose" in panel.status.value and not panel.run.disabled


@pytest.mark.parametrize("name", PANELS)
def test_the_text_form_is_a_call_that_works(name):
    lines = repr(PANELS[name]()).splitlines()
    assert eval(lines[0].partition(": controls")[0]).text == "\n".join(lines)
    plain = lines[1].removeprefix("Without widgets, ").partition(" gives")[0]
    assert eval(plain).figures


@pytest.mark.parametrize("name", PANELS)
def test_disposal_and_a_new_one_leave_nothing_behind(name):
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    before = set(registry._instances)
    for _ in range(2):
        panel = PANELS[name]()
        panel.dispose()
    assert set(registry._instances) == before
