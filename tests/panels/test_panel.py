"""What every panel shares, with a panel that counts."""

from __future__ import annotations

import asyncio
import functools
import threading
import time

import ipywidgets as w
import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu import panels
from pipemare_edu.figures import placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import Goal, Panel
from pipemare_edu.panels import cells as cells_module

TEXT = "Counting(): a panel; counting() gives the same."


class Counting(Panel):
    """Counts to `upto`, and fails where it is told to."""

    def __init__(self, upto=5, fail="", **options):
        self.count, self.fail, self.drawn = 0, fail, []
        controls = {"upto": w.IntSlider(upto, 1, 10**6)}
        views = {"big": w.Checkbox(False)}
        goal = Goal("Count to five.", self._five)
        super().__init__(controls, TEXT, goal, views, **options)

    def _five(self, panel):
        if self.fail == "goal" and self.count:
            raise ZeroDivisionError("in the goal")
        return panel.count >= 5

    def work(self, settings):
        for self.count in range(1, settings["upto"] + 1):
            if self.fail == "work" and self.count == 3:
                raise ZeroDivisionError("in the work")
            if self.stopping:
                return
            yield self.count / settings["upto"]

    def draw(self, live=False):
        if self.fail == "draw" and self.count:
            raise ZeroDivisionError("in the drawing")
        self.drawn.append(live)
        return {"count": placeholder(f"Counted to {self.count}", 100)}

    def value(self):
        return self.count


def in_loop(test):
    """Run an async test on an event loop, as a cell of a notebook runs."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        return asyncio.run(test(*args, **kwargs))

    return run


@in_loop
async def test_run_and_wait():
    panel = Counting()
    assert panel.drawn == [False] and not panel.reached() and not panel.busy
    panel.run.click()
    assert panel.run.disabled and not panel.cancel.disabled and "Starting" in panel.status.value
    assert await panel.wait() == "done"
    assert panel.result() == 5 and panel.reached() and "reached" in panel._goal.value
    assert not panel.run.disabled and panel.cancel.disabled
    assert panel.progress.value == 1.0 and panel.progress.bar_style == "success"
    assert panel.figures["count"].alt == "Counted to 5. Nothing has run yet."
    assert "Counted to 5" in panel._words["count"].value


@in_loop
async def test_the_last_drawing_comes_before_the_last_words():
    panel, order = Counting(), []
    panel.figures["count"].state.observe(lambda _: order.append("drawn"), "spec")
    panel.say = order.append
    panel.run.observe(lambda _: order.append("run again"), "disabled")
    panel.run.click()
    await panel.wait()
    assert order[-3:] == ["drawn", "Done.", "run again"]


@in_loop
async def test_the_loop_goes_on_while_a_panel_works_and_cancel_stops_it():
    panel = Counting(upto=10**6)
    panel.run.click()
    panel.run.click()  # a second click changes nothing
    await asyncio.sleep(0.3)
    assert panel.busy and panel.count > 10
    with pytest.raises(RuntimeError, match="still running"):
        panel.result()
    live = [name for name in panel.drawn if name]
    assert 1 <= len(live) <= 4  # at most ten a second
    panel.cancel.click()
    assert "Stopping" in panel.status.value
    assert await panel.wait() == "cancelled"
    assert panel.result() < 10**6 and panel.progress.value < 1.0
    assert "Cancelled" in panel.status.value and panel.progress.bar_style == "warning"


@in_loop
async def test_cancel_without_a_run_changes_nothing():
    panel = Counting()
    panel.cancel.click()
    panel.run.click()
    assert await panel.wait() == "done"


@in_loop
async def test_a_panel_runs_again_with_what_its_controls_say():
    panel = Counting()
    for upto in (3, 7):
        panel.controls["upto"].value = upto
        panel.run.click()
        await panel.wait()
        assert panel.result() == upto


@pytest.mark.parametrize("where", ["work", "draw", "goal"])
@in_loop
async def test_errors_show_and_are_raised(where):
    panel = Counting(fail=where)
    panel.run.click()
    with pytest.raises(ZeroDivisionError, match="in the"):
        await panel.wait()
    with pytest.raises(ZeroDivisionError):
        panel.result()
    assert "ZeroDivisionError: in the" in panel.status.value and "<details>" in panel.status.value
    assert not panel.run.disabled and panel.cancel.disabled
    assert panel.progress.bar_style == "danger"
    panel.fail = ""
    panel.run.click()
    assert await panel.wait() == "done"  # the next run starts clean


@in_loop
async def test_an_error_in_a_controls_callback_shows_and_is_raised():
    panel = Counting()
    panel.controls["upto"].observe(panel.guarded(lambda change: 1 / 0), "value")
    panel.controls["upto"].value = 9
    assert "ZeroDivisionError" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        await panel.wait()


@in_loop
async def test_a_view_redraws_without_a_run():
    panel = Counting()
    panel.views["big"].value = True
    assert panel.drawn == [False, False]
    panel.fail, panel.count = "draw", 1
    panel.views["big"].value = False
    with pytest.raises(ZeroDivisionError):
        panel.result()


@in_loop
async def test_figures_may_follow_a_control():
    panel, changed = Counting(), []
    panel.follow(panel.controls["upto"], lambda: changed.append(panel.controls["upto"].value))
    panel.set(upto=7)
    assert changed == [7] and panel.drawn == [False, False]
    assert "Ready" in panel.status.value  # this panel has no reading to give
    panel.reading = lambda: "Reads seven."
    panel.set(upto=8)
    assert "Reads seven." in panel.status.value
    panel.fail, panel.count = "draw", 1
    panel.set(upto=9)
    with pytest.raises(ZeroDivisionError):
        panel.result()
    panel.fail = ""
    panel.set(upto=10)  # put right: the error is gone
    assert panel.result() == 1 and "Reads seven." in panel.status.value
    with pytest.raises(ValueError, match="unknown control 'upt': did you mean 'upto'"):
        panel.set(upt=3)


def test_what_is_shown_cannot_be_markup():
    panel = Counting()
    panel.say("<b>&")
    assert "&lt;b&gt;&amp;" in panel.status.value


@in_loop
async def test_clicks_from_another_thread():
    """JupyterLab's widget callbacks come on a thread of their own."""
    panel = Counting(upto=10**6)
    for button in (panel.run, panel.cancel):
        thread = threading.Thread(target=button.click)
        thread.start()
        thread.join()
        await asyncio.sleep(0.05)
    assert await panel.wait() == "cancelled"
    assert 0 < panel.count < 10**6


def test_without_a_loop_a_click_runs_to_the_end():
    panel = Counting()
    panel.run.click()
    assert panel.result() == 5


@in_loop
async def test_an_interrupted_wait_stops_the_work():
    panel = Counting(upto=10**6)
    panel.run.click()
    waiting = asyncio.ensure_future(panel.wait())
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await panel.wait() == "cancelled"


@in_loop
async def test_two_panels_at_once():
    one, two = Counting(upto=30), Counting(upto=40)
    one.run.click()
    two.run.click()
    await asyncio.gather(one.wait(), two.wait())
    assert (one.result(), two.result()) == (30, 40)


@in_loop
async def test_disposal_leaves_no_task_and_no_widget():
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    tasks, widgets = asyncio.all_tasks(), set(registry._instances)
    panel = Counting(upto=10**6)
    panel.run.click()
    await asyncio.sleep(0.05)
    panel.dispose()
    await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == tasks
    left = {id: registry._instances[id] for id in set(registry._instances) - widgets}
    assert not left


@in_loop
async def test_a_cell_that_runs_again_replaces_its_panel(monkeypatch):
    run_of_cell = ["cell 1", "first run"]
    monkeypatch.setattr(cells_module.Cells, "running", lambda: tuple(run_of_cell))
    old, beside = Counting(upto=10**6), Counting()
    old.run.click()
    await asyncio.sleep(0.02)
    assert old.busy and beside.view.comm is not None
    run_of_cell[1] = "second run"
    Counting()
    await asyncio.sleep(0.05)
    assert not old.busy


def test_the_text_form_is_fixed():
    panel = Counting()
    bundle = panel._repr_mimebundle_()
    assert bundle["text/plain"] == repr(panel) == TEXT
    assert set(bundle) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    panel.run.click()
    assert panel._repr_mimebundle_()["text/plain"] == TEXT


def test_drawing_takes_a_fifth_of_the_time_at_most(monkeypatch):
    panel = Counting(upto=10**6)
    slow = panel.draw

    def draw(live=False):
        time.sleep(0.05)
        return slow(live)

    monkeypatch.setattr(panel, "draw", draw)
    panel._advance(0.1)
    assert panel._pace.wait >= 0.25


def test_a_misspelt_panel_has_a_close_match() -> None:
    with pytest.raises(AttributeError, match="'StepDebuger': did you mean 'StepDebugger'"):
        panels.StepDebuger  # noqa: B018
