"""Roots and StabilityMap, without a browser: run, cancelled, changed, broken, disposed."""

from __future__ import annotations

import asyncio
import functools
import sys

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import Roots, StabilityMap, roots, stability_map
from pipemare_edu.plan.theory import Quadratic, iterates, lemma1

STEPS = 120
PANELS = {"Roots": Roots, "StabilityMap": StabilityMap}


def in_loop(test):
    """Run an async test on an event loop, as a cell of a notebook runs."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        return asyncio.run(test(*args, **kwargs))

    return run


async def ran(panel) -> str:
    panel.run.click()
    return await panel.wait()


@in_loop
async def test_roots_runs_the_trainer_on_the_line():
    panel = Roots(rate=0.25, tau=4)
    assert await ran(panel) == "done"
    assert panel.result() == pytest.approx(iterates(Quadratic(4), 0.25, STEPS))
    assert f"{STEPS} real steps" in panel.status.value
    assert "on the line" in panel.figures["roots"].alt


@in_loop
async def test_roots_follow_every_slider():
    panel = Roots()
    seen = {panel.figures["roots"].state.spec}
    for name, value in {"rate": 0.31, "tau": 7, "momentum": 0.5}.items():
        assert name in panel.controls
        panel.controls[name].value = value
        seen.add(panel.figures["roots"].state.spec)
    assert len(seen) == 4 and set(panel.controls) == {"rate", "tau", "momentum"}
    assert "Rate 0.31, delay 7, momentum 0.5" in panel.figures["roots"].alt
    await ran(panel)
    dots = panel.figures["roots"].shown.data[-1]
    assert len(dots.x) == STEPS + 1
    panel.controls["tau"].value = 8  # those dots belong to other settings
    assert len(panel.figures["roots"].shown.data[-1].x) == 0


@in_loop
async def test_roots_goal_is_the_edge_at_a_long_delay():
    panel = Roots(rate=0.3, tau=10)
    await ran(panel)
    assert not panel.reached()
    panel.controls["rate"].value = lemma1(10)
    assert not panel.reached()  # not run yet
    await ran(panel)
    assert panel.reached() and "reached" in panel._goal.value
    panel = Roots(rate=lemma1(4), tau=4)
    await ran(panel)
    assert not panel.reached()


def test_the_arrow_keys_reach_the_goal():
    """A key moves the slider by its step: some of its places must be close enough to the edge."""
    panel = Roots(rate=0.1, tau=10)
    slider = panel.controls["rate"]
    while slider.value < 0.2 and not panel.reached():
        slider.value *= 10**slider.step
        panel.run.click()
    assert panel.reached()


@in_loop
async def test_the_map_runs_both_sides_of_the_edge():
    panel = StabilityMap()
    assert await ran(panel) == "done"
    assert [mark.settled for mark in panel.result()] == [True, False] * 4
    assert "8 of 8 runs" in panel.status.value and not panel.reached()
    panel.controls["noise"].value = "on"
    assert "run" not in [t.name for t in panel.figures["map"].shown.data]
    assert await ran(panel) == "done" and panel.reached()
    assert "in theory" in panel.result()[0].said


@in_loop
async def test_the_map_follows_every_switch():
    panel = StabilityMap()
    seen = {panel.figures["map"].state.spec}
    for name, value in {"momentum": 0.9, "noise": "on"}.items():
        panel.controls[name].value = value
        seen.add(panel.figures["map"].state.spec)
    assert len(seen) == 3 and set(panel.controls) == {"momentum", "noise"}
    assert "momentum 0.9" in panel.figures["map"].alt and "wanders" in panel.figures["map"].alt


@pytest.mark.parametrize("name", PANELS)
@in_loop
async def test_cancel(name):
    panel = PANELS[name]()
    panel.run.click()
    panel.cancel.click()
    assert await panel.wait() == "cancelled"
    assert "Cancelled" in panel.status.value and not panel.run.disabled
    assert await ran(panel) == "done"


@pytest.mark.parametrize("name", PANELS)
@in_loop
async def test_an_error_in_the_trainer_or_the_drawing_shows_and_is_raised(name, monkeypatch):
    panel = PANELS[name]()
    with monkeypatch.context() as broken:
        broken.setattr("pipemare_edu.studies.one_weight.Trainer", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await ran(panel)
        assert "ZeroDivisionError" in panel.status.value
    assert await ran(panel) == "done"
    module = sys.modules[PANELS[name].__module__]
    monkeypatch.setattr(module, "figure_of", lambda *a, **k: 1 / 0)
    panel.controls["momentum"].value = 0.5
    with pytest.raises(ZeroDivisionError):
        panel.result()


def test_the_plain_calls_give_the_same_figures():
    for panel, plain in (
        (Roots(rate=0.2, tau=6, momentum=0.3), roots(rate=0.2, tau=6, momentum=0.3)),
        (StabilityMap(momentum=0.5, noise=True), stability_map(momentum=0.5, noise=True)),
    ):
        panel.run.click()
        assert set(plain.figures) == set(panel.figures)
        for name, figure in plain.figures.items():
            assert figure.to_json() == panel.figures[name].shown.to_json()
        assert list(plain.value) == list(panel.result())
        assert repr(panel).count(repr(panel).partition("(")[2].partition(")")[0]) == 2


def test_bad_settings_are_refused():
    with pytest.raises(ValueError):
        roots(rate=0.1, tau=0, momentum=0.5)


@pytest.mark.parametrize("name", PANELS)
@in_loop
async def test_disposal_leaves_no_task_and_no_widget(name):
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    tasks, widgets = asyncio.all_tasks(), set(registry._instances)
    for _ in range(2):  # made, used and disposed of twice
        panel = PANELS[name]()
        panel.run.click()
        await asyncio.sleep(0.02)
        panel.dispose()
        await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == tasks
    assert not set(registry._instances) - widgets
