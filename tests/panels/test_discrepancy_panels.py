"""The panels of lesson 05, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio
import importlib
import math

import pytest
from effort import QUICK, calls
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import describe
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import (
    DiscrepancyMap,
    GradientDiscrepancy,
    Velocity,
    discrepancy_map,
    gradient_discrepancy,
    velocity,
)
from pipemare_edu.training import Job

SHORT = {"map": {"discrepancy": 10.0, "tau_bkwd": 8}, "bars": {"step": 6}, "speed": {"steps": 30}}
PANELS = {"map": DiscrepancyMap, "bars": GradientDiscrepancy, "speed": Velocity}
KINDS = sorted(PANELS)
MAP = importlib.import_module("pipemare_edu.panels.discrepancy_map")


def run(panel) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def shown(panel) -> dict[str, str]:
    return {name: fig.shown.to_json() for name, fig in panel.figures.items()}


def plain(call) -> dict[str, str]:
    return {name: figure.to_json() for name, figure in call.figures.items()}


# Every panel


@pytest.mark.parametrize("kind", KINDS)
def test_run_then_an_error_then_run_again(kind, monkeypatch):
    panel = PANELS[kind](**SHORT[kind])
    before = shown(panel)
    assert panel.error is None and not panel.cancel.disabled == panel.run.disabled
    assert run(panel) == "done" and shown(panel) != before
    assert panel.progress.value == 1.0 and panel.progress.bar_style == "success"

    def broken(*_, **__):
        raise RuntimeError("no such luck")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(Job, "chunks", broken)
        patch.setattr(MAP, "_runs", broken)
        with pytest.raises(RuntimeError, match="no such luck"):
            run(panel)
        assert "no such luck" in panel.status.value and 'role="alert"' in panel.status.value
        with pytest.raises(RuntimeError, match="no such luck"):
            panel.result()
    assert run(panel) == "done" and panel.result() is not None


@pytest.mark.parametrize("kind", KINDS)
def test_cancel(kind):
    long = {"map": {}, "bars": {"step": 10_000}, "speed": {"steps": 10_000}}
    panel = PANELS[kind](**long[kind])

    async def cell() -> str:
        panel.run.click()
        await asyncio.sleep(0.3)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert "Cancelled" in panel.status.value and panel.progress.bar_style == "warning"
    assert not panel.run.disabled and panel.cancel.disabled


@pytest.mark.parametrize("kind", KINDS)
def test_text_form_and_disposal(kind):
    warm = PANELS[kind](**SHORT[kind])
    warm.dispose()
    before = set(registry._instances)
    panel = PANELS[kind](**SHORT[kind])
    assert "Without widgets" in repr(panel)
    for name, fig in panel.figures.items():
        assert isinstance(fig, Fig) and describe(fig.shown) == fig.alt, name
    panel.dispose()
    assert set(registry._instances) <= before


# The map


def test_every_control_of_the_map_redraws_at_once_and_drops_marks_of_another_case():
    panel = DiscrepancyMap(**SHORT["map"])
    run(panel)
    assert len(panel.figures["map"].shown.data) > 3  # marks
    given = dict(SHORT["map"])
    for name, value in (("t2", "theory"), ("discrepancy", 2.0), ("tau_bkwd", 3)):
        panel.controls[name].value = value
        given[name] = value
        assert shown(panel) == plain(discrepancy_map(**given))
        assert "rates from" in panel.status.value
    assert set(panel.controls) == {"t2", "discrepancy", "tau_bkwd"}


def test_the_map_follows_a_slider():
    slider = DiscrepancyMap(t2="theory").controls["discrepancy"]
    for delta in (1.0, 2.0, 7.0):  # half of its time is spent in few calls, for roots
        assert calls(lambda d=delta: slider.set_trait("value", d)) < QUICK / 5


@pytest.mark.parametrize("tau_bkwd", [0, 8])
def test_runs_are_on_their_side_of_the_edge(tau_bkwd):
    panel = DiscrepancyMap(5.0, tau_bkwd, "theory")
    assert run(panel) == "done"
    marks = panel.result()
    assert [m.settled for m in marks] == [True, False] * (len(marks) // 2)
    by = "the real trainer" if tau_bkwd == 0 else "the recurrence"
    assert f"{len(marks)} of {len(marks)} runs of {by}" in panel.status.value
    assert shown(panel) == plain(discrepancy_map(5.0, tau_bkwd, "theory", run=True))


def test_the_goal_of_the_map_asks_for_t2():
    panel = DiscrepancyMap(10.0)
    assert not panel.reached()
    for t2, good in ((0.5, False), (math.exp(-2), True), ("theory", True), (0.01, False)):
        panel.controls["t2"].value = t2
        assert panel.reached() == good, t2
    panel.controls["discrepancy"].value = 1.0
    assert not panel.reached()


# Gradients


def test_the_plain_call_shows_the_bars_of_a_run():
    panel = GradientDiscrepancy(step=5, seed=1)
    run(panel)
    call = gradient_discrepancy(step=5, seed=1)
    assert shown(panel) == plain(call)
    assert panel.result().shares == call.value.shares and len(call.value.stages) == 12


def test_every_control_of_the_bars_reaches_the_run():
    panel = GradientDiscrepancy(step=3)
    run(panel)
    changes = {"fixes": "T1+T2", "step": 4, "rate": 0.01, "decay": 0.5, "seed": 2}
    panel.controls["network"].value = "deep"
    assert panel.controls["rate"].value == pytest.approx(0.15)
    panel.set(**changes)
    assert set(panel.controls) == {"network", *changes}
    run(panel)
    found = panel.result()
    config = found.run.config
    assert len(found.stages) == len(config["stages"]) == 16 and config["seed"] == 2
    assert "t1=300" in config["method"] and "t2=0.5" in config["method"]
    assert "corrects=True" in config["method"] and found.run.steps == 4
    panel.set(fixes="none", rate=0.02)
    run(panel)
    assert "t1=0" in panel.result().run.config["method"]
    assert "corrects=False" in panel.result().run.config["method"]


def test_the_goal_of_the_bars_is_a_small_rate():
    panel = GradientDiscrepancy(step=40, fixes="none", rate=0.01)
    run(panel)
    assert panel.reached()
    panel.set(rate=0.2, fixes="T2")
    run(panel)
    assert not panel.reached()


def test_a_run_that_diverges_says_so():
    panel = GradientDiscrepancy(fixes="none", rate=0.8, step=60)
    assert run(panel) == "diverged"
    assert "no gradient left to compare" in panel.status.value
    assert "no gradient left" in panel.figures["bars"].alt


# Velocity


def test_sliders_redraw_what_the_plain_call_gives():
    panel = Velocity(steps=60)
    run(panel)
    given = {"stage": 1, "decay": 0.5, "weight": 0}
    for name, value in (("decay", 0.14), ("stage", 7), ("weight", 5)):
        panel.views[name].value = value
        given[name] = value
        assert f"D = {given['decay']:.2g}" in panel.status.value
    assert shown(panel) == plain(velocity(steps=60, **given))
    assert set(panel.views) == set(given)
    panel.set(steps=20, rate=0.01, seed=3)
    run(panel)
    assert panel.result().stages[0].shape == (21, 200)
    assert panel.result().run.config["seed"] == 3


def test_a_slider_is_followed():
    panel = Velocity(steps=100)
    run(panel)
    for decay in (0.1, 0.2, 0.4):
        assert calls(lambda d=decay: panel.views["decay"].set_trait("value", d)) < QUICK
    assert not panel.reached()
    panel.views["decay"].value = 0.14
    assert panel.reached()


def test_a_run_without_a_full_pipe_shows_no_number():
    panel = Velocity(steps=5)
    run(panel)
    assert "nan" not in panel.figures["moves"].alt and "nan" not in panel.status.value
