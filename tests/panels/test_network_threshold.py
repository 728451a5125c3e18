"""NetworkThreshold, without a browser: found, tried once more, cancelled, changed, broken."""

from __future__ import annotations

import asyncio
import math
import sys

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import NetworkThreshold, network_threshold
from pipemare_edu.studies import edge

ONE = {"delays": 0, "what": "one more", "multiple": 0.8}


def ran(panel: NetworkThreshold) -> str:
    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def test_the_edge_is_found_and_told():
    panel = NetworkThreshold(delays=0, guess=0.1)
    assert ran(panel) == "done"
    found = panel.result()
    assert found.rate * found.at.curvature == pytest.approx(2, rel=0.01)
    assert "Stable up to a rate of" in panel.status.value and not panel.reached()
    names = [t.name for t in panel.figures["map"].shown.data]
    assert {"your guess", "run: settled", "run: did not", "run just now: settled"} <= set(names)
    assert "near its minimum, delay 0" in panel.figures["map"].alt
    assert len(panel.figures["growth"].shown.data) == len(found.trials)


def test_the_goal_wants_both_kinds_of_delays(monkeypatch):
    monkeypatch.setitem(edge.HALVINGS, "minimum", 1)  # found, though not so closely
    panel = NetworkThreshold()
    ran(panel)
    assert not panel.reached()
    panel.controls["delays"].value = "2"
    ran(panel)
    assert panel.reached()


@pytest.mark.parametrize(("multiple", "word"), [(0.8, "stayed"), (1.25, "left")])
def test_one_more_agrees_with_the_shipped_run(multiple, word):
    panel = NetworkThreshold(**{**ONE, "multiple": multiple})
    assert ran(panel) == "done"
    assert f"the run {word}, as did the shipped run" in panel.status.value
    assert math.isnan(panel.result().multiple)


def test_from_scratch_the_prediction_fails():
    panel = NetworkThreshold(start="scratch")
    ran(panel)
    assert panel.result().multiple > 3
    assert "from scratch, lockstep delays" in panel.figures["map"].alt


def test_every_control_is_used():
    panel = NetworkThreshold()
    changes = {
        "network": "tanh", "seed": 1, "start": "scratch", "delays": "1", "what": "one more",
        "multiple": 0.25,
    }  # fmt: skip
    assert set(changes) == set(panel.controls)
    for name, value in changes.items():
        panel.controls[name].value = value
    assert panel.settings == changes
    assert ran(panel) == "done"
    found = panel.result()
    assert (found.at.network, found.at.seed, found.at.start) == ("tanh", 1, "scratch")
    assert set(found.at.taus) == {1} and [t.multiple for t in found.trials] == [0.25]
    assert "shipped" not in panel.status.value  # none of this configuration is


def test_what_was_run_elsewhere_is_not_on_the_map():
    panel = NetworkThreshold(**ONE)
    ran(panel)
    before = {t.name or "" for t in panel.figures["map"].shown.data}
    panel.controls["seed"].value = 1
    after = {t.name or "" for t in panel.figures["map"].shown.data}
    assert "run just now: settled" in before and not {n for n in after if n.startswith("run")}
    panel.controls["seed"].value = 0
    assert {t.name or "" for t in panel.figures["map"].shown.data} == before


def test_cancel_keeps_what_was_found_and_the_next_run_goes_on():
    panel = NetworkThreshold("tanh", seed=4)

    async def cell() -> str:
        panel.run.click()
        while not (panel.founds and panel.founds[-1].trials):
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert len(panel.result().trials) >= 1 and "Cancelled" in panel.status.value
    panel.controls["what"].value = "one more"
    assert ran(panel) == "done"


def test_cancel_during_the_descent():
    panel = NetworkThreshold("deep", seed=7)

    async def cell() -> str:
        panel.run.click()
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert panel.result() is None


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    panel = NetworkThreshold(**ONE)
    monkeypatch.setattr(edge, "Trainer", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ran(panel)
    assert "ZeroDivisionError" in panel.status.value


def test_an_error_in_the_drawing_shows_and_is_raised(monkeypatch):
    panel = NetworkThreshold(**ONE)
    module = sys.modules[NetworkThreshold.__module__]  # its name is also a function's
    monkeypatch.setattr(module, "growth", lambda *a: 1 / 0)
    panel.controls["seed"].value = 2
    assert "ZeroDivisionError" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="unknown network"):
        network_threshold(network="batch")
    with pytest.raises(ValueError, match="start is"):
        network_threshold(start="top")


def test_the_plain_call_gives_the_same_figures_and_the_text_names_it():
    panel = NetworkThreshold(**ONE, guess=0.05)
    ran(panel)
    plain = network_threshold(**ONE, guess=0.05)
    for name, figure in plain.figures.items():
        assert figure.to_json() == panel.figures[name].shown.to_json()
    assert plain.value.trials == panel.result().trials
    assert "network_threshold(network='batchnorm', seed=0" in repr(panel)


def test_disposal_leaves_no_task_and_no_widget():
    async def cell() -> None:
        Fig(placeholder("brings the bundle, which stays", 100)).close()
        tasks, widgets = asyncio.all_tasks(), set(registry._instances)
        for _ in range(2):
            panel = NetworkThreshold()
            panel.run.click()
            await asyncio.sleep(0.05)
            panel.dispose()
            await asyncio.sleep(0.1)
        assert asyncio.all_tasks() == tasks
        assert not set(registry._instances) - widgets

    asyncio.run(cell())
