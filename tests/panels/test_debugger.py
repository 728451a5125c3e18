"""StepDebugger, without a browser: stepped, played, cancelled, edited, broken."""

from __future__ import annotations

import asyncio

import pytest
from ipywidgets.widgets import widget as registry

import pipemare_edu as pm
from pipemare_edu.figures import headline
from pipemare_edu.panels import StepDebugger, step_debugger

DEADLOCK = ["F0 F1 B0 B1 U0", "F1 F0 B1 B0 U0"]


def played(panel: StepDebugger) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def test_one_event_a_click_forwards_and_backwards():
    panel = StepDebugger()
    titles = []
    for button in (panel.forward, panel.forward, panel.back, panel.back, panel.back):
        button.click()
        titles.append((panel.event, headline(panel.figures["pipe"].shown)))
    assert [at for at, _ in titles] == [1, 2, 1, 0, 0]
    assert titles[1][1] == "Event 2 of 21: stage 1 ran F1"
    panel.go(99)
    panel.forward.click()
    assert panel.event == 21 and "everything is done" in panel.status.value


def test_the_slider_goes_there_too_and_the_status_says_everything():
    panel = StepDebugger(pm.schedule("gpipe", 3, 4))
    panel.views["event"].value = 9
    for part in (
        "Event 9 of 27: stage 3 ran F1.",
        "Microbatches in flight: 0 1 2 3.",
        "Stage 1 holds 0 1 2 3, weight version 0, next B0.",
        "In link 2–3 wait, down: F2; up: none.",
    ):
        assert part in panel.status.value
    assert panel.result() == panel.walk.states[9] == step_debugger(panel.walk.lists, 9).value


@pytest.mark.parametrize("lists", [None, DEADLOCK, pm.schedule("lockstep", 3, 1, steps=5)])
def test_the_plain_call_gives_the_same_figures_at_every_event(lists):
    panel = StepDebugger(lists)
    for event in range(len(panel.walk.states)):
        panel.go(event)
        plain = step_debugger(lists, event)
        assert set(plain.figures) == set(panel.figures) == {"pipe", "lists"}
        for name, figure in plain.figures.items():
            assert panel.figures[name].shown.to_json() == figure.to_json()


def test_play_runs_to_the_end_and_then_from_the_beginning():
    panel = StepDebugger(event=5, pause=0)
    seen = []
    panel.views["event"].observe(lambda change: seen.append(change["new"]), "value")
    assert played(panel) == "done" and seen == list(range(6, 22))
    seen.clear()
    assert played(panel) == "done" and seen == list(range(22))


def test_cancel_stops_the_play_where_it_is():
    panel = StepDebugger(pause=0.05)

    async def cell():
        panel.run.click()
        while panel.event < 2:
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert 2 <= panel.event < 21 and f"Event {panel.event} of 21" in panel.status.value
    panel.controls["pause"].value = 0.0
    assert played(panel) == "done" and panel.event == 21


def test_a_deadlock_is_marked():
    panel = StepDebugger(DEADLOCK, pause=0)
    assert played(panel) == "deadlock"
    assert "Deadlock after 2 events" in panel.status.value
    assert "waits to run F1: stage 1 has not sent it next" in panel.status.value
    assert "Waiting for ever: stage 1 at B0" in panel.figures["lists"].alt


def test_lists_can_be_typed():
    panel = StepDebugger(event=7)
    panel.controls["lists"].value = "stage 1: F0 B0 U0\n\nstage 2: F0 B0 U0\n"
    assert panel.event == 0 and [str(row) for row in panel.walk.lists] == ["F0 B0 U0"] * 2
    panel.go(6)
    assert "everything is done" in panel.status.value
    panel.controls["lists"].value = "F0 go"
    assert "operation 2 is" in panel.status.value and "Traceback" not in panel.status.value
    assert len(panel.walk.events) == 6  # what was there stays
    with pytest.raises(ValueError, match="operation 2 is 'go'"):
        panel.result()
    panel.controls["lists"].value = "F0 B0 U0"
    assert "Nothing has run yet" in panel.status.value and panel.result().done == (0,)


def test_typing_while_it_plays_stops_the_play():
    panel = StepDebugger(pause=0.02)

    async def cell():
        panel.run.click()
        while panel.event < 2:
            await asyncio.sleep(0.01)
        panel.controls["lists"].value = "F0 B0 U0"
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert panel.event == 0 and len(panel.walk.events) == 3


def test_the_goal():
    panel = StepDebugger()
    assert not panel.reached()
    panel.go(9)
    assert panel.reached() and "✔" in panel._goal.value
    panel.go(21)
    assert not panel.reached()


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


@pytest.mark.parametrize("press", ["forward", "run"])
def test_an_error_shows_and_is_raised(monkeypatch, press):
    panel = StepDebugger(pause=0)
    monkeypatch.setattr("pipemare_edu.panels.debugger.pipe", broken)

    async def cell():
        getattr(panel, press).click()
        return await panel.wait()

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        asyncio.run(cell())
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


@pytest.mark.parametrize(
    ("lists", "event", "says"),
    [
        ("F0 X0", 0, "operation 2 is 'X0'"),
        ("", 0, "there are no lists"),
        ([], 0, "there are no lists"),
        ("F0 B0", 3, "event is 3: give a whole number, from 0 to 2"),
        ([" ".join(f"F{m} B{m}" for m in range(2000))], 0, "the lists have 4000 operations"),
    ],
)
@pytest.mark.parametrize("make", [StepDebugger, step_debugger], ids=["panel", "plain call"])
def test_what_cannot_be_is_refused_at_once(make, lists, event, says):
    with pytest.raises(ValueError, match=says):
        make(lists, event)


def test_disposal_leaves_no_widget_and_no_task():
    StepDebugger().dispose()  # the bundle stays
    widgets = set(registry._instances)

    async def cell():
        tasks = asyncio.all_tasks()
        for _ in range(2):
            panel = StepDebugger()
            panel.forward.click()
            panel.run.click()
            await asyncio.sleep(0.05)
            panel.dispose()
            await asyncio.sleep(0.05)
            assert asyncio.all_tasks() == tasks and set(registry._instances) == widgets

    asyncio.run(cell())


def test_the_text_form_says_the_plain_call():
    text = repr(StepDebugger(["F0 B0 U0"], event=2))
    assert text == repr(StepDebugger("F0 B0 U0", event=2))
    assert "step_debugger(lists=['F0 B0 U0'], event=2) gives the same figures" in text
