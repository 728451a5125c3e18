"""LiveTraining, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import pipemare_edu as pm
from pipemare_edu import tasks
from pipemare_edu.figures import headline
from pipemare_edu.panels import LiveTraining, live_training
from pipemare_edu.panels.engines import engines
from pipemare_edu.trainer import registry
from pipemare_edu.trainer.placement import Machine
from pipemare_edu.training import Job

SHORT = {"stages": 4, "steps": 60, "method": "pipemare-t1t2"}


def trained(panel: LiveTraining) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def test_the_same_configuration_gives_the_same_bits_as_train():
    panel = LiveTraining(**SHORT)
    assert trained(panel) == "done"
    run = pm.train("digits", **SHORT)
    assert panel.result().losses == run.losses
    assert panel.result().metrics == run.metrics


def test_the_plain_call_gives_the_same_figures():
    panel = LiveTraining(**SHORT)
    trained(panel)
    plain = live_training(**SHORT)
    assert set(plain.figures) == set(panel.figures) == {"curves", "gantt", "staleness"}
    for name in ("curves", "staleness"):
        assert plain[name].to_json() == panel.figures[name].shown.to_json()
    chart = panel.figures["gantt"].shown
    assert [t.name for t in plain["gantt"].data] == [t.name for t in chart.data]
    assert "measured" in chart.layout.xaxis.title.text
    assert plain.value.losses == panel.result().losses


def test_in_model_time_the_charts_are_equal_too():
    panel = LiveTraining(**SHORT, time="model", log=False)
    trained(panel)
    plain = live_training(**SHORT, time="model", log=False)
    for name, figure in plain.figures.items():
        assert figure.to_json() == panel.figures[name].shown.to_json()


def test_every_control_is_used():
    panel = LiveTraining(steps=5)
    changes = {
        "task": "regression", "network": "mlp", "method": "gpipe", "stages": 3,
        "microbatches": 5, "rate": 0.05, "steps": 7, "seed": 4,
        "engine": "2 processes",
    }  # fmt: skip
    assert set(changes) == set(panel.controls)
    for name, value in changes.items():
        panel.controls[name].value = value
    assert panel.settings == changes
    assert trained(panel) == "done"
    config = panel.result().config
    assert (len(config["stages"]), config["microbatches"], config["seed"]) == (3, 5, 4)
    assert config["method"].startswith("GPipe") and panel.result().steps == 7
    changes["workers"] = 2 * (changes.pop("engine") == "2 processes")
    assert panel.result().losses == pm.train(**changes).losses


def test_a_task_or_network_brings_its_own_setting():
    panel = LiveTraining()
    panel.controls["network"].value = "deep"
    assert (panel.controls["stages"].value, panel.controls["rate"].value) == (16, 0.15)
    panel.controls["task"].value = "regression"
    assert panel.controls["network"].options == tuple(tasks.get("regression").settings)
    setting = tasks.get("regression").setting()
    assert panel.settings | {"seed": 0, "method": ""} == {
        "engine": "kernel",
        "task": "regression", "network": "mlp", "method": "", "stages": setting.stages,
        "microbatches": setting.microbatches, "rate": setting.rate, "steps": setting.steps,
        "seed": 0,
    }  # fmt: skip


def test_runs_are_overlaid_and_told_apart():
    panel = LiveTraining(**SHORT)
    trained(panel)
    trained(panel)  # the same again takes its place
    assert list(panel.runs) == ["pipemare-t1t2"]
    panel.controls["rate"].value = 0.05
    trained(panel)
    assert list(panel.runs) == ["pipemare-t1t2, rate 0.2", "pipemare-t1t2, rate 0.05"]
    names = {trace.name for trace in panel.figures["curves"].shown.data}
    assert names == set(panel.runs)
    for seed in range(1, 8):
        panel.controls["seed"].value = seed
        panel.controls["steps"].value = 2
        trained(panel)
    assert len(panel.runs) == 6


def test_divergence_is_marked_and_said():
    panel = LiveTraining(method="pipemare-naive", steps=200)
    assert trained(panel) == "diverged"
    assert "Diverged at step" in panel.status.value
    assert any("diverged" in t.name for t in panel.figures["curves"].shown.data)
    assert not panel.reached()


def test_the_goal_is_reached_by_a_run_that_is_good_and_asynchronous():
    panel = LiveTraining(method="gpipe", stages=4, steps=300)
    trained(panel)
    assert panel.runs["gpipe"].metrics["accuracy"][-1][1] > 90 and not panel.reached()
    panel.controls["method"].value = "pipemare-t1t2"
    trained(panel)
    assert panel.reached() and "✔" in panel._goal.value


def test_cancel_keeps_what_was_trained():
    panel = LiveTraining(stages=4, steps=100_000, method="pipemare-t1t2")

    async def cell():
        panel.run.click()
        while not (panel.last and panel.last.steps > 3):
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    run = panel.result()
    assert 3 < run.steps < 100_000 and "Cancelled: stopped after" in panel.status.value
    assert len(panel.figures["gantt"].shown.data) > 1


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("stages", 20, "12 layers cannot fill 20 stages"),
        ("microbatches", 200, "a batch of 50 cannot be cut"),
    ],
)
def test_bad_input_is_the_plain_text_of_the_error(name, value, text):
    panel = LiveTraining(**SHORT)
    panel.controls[name].max = 1000
    panel.controls[name].value = value
    with pytest.raises(ValueError, match=text):
        trained(panel)
    assert text in panel.status.value and "Traceback" not in panel.status.value


def test_unknown_names_are_refused_at_once():
    with pytest.raises(ValueError, match="did you mean 'digits'"):
        LiveTraining(task="digit")
    with pytest.raises(ValueError, match="unknown method"):
        LiveTraining(method="pipemar")


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = LiveTraining(**SHORT)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        trained(panel)
    assert "broken on purpose" in panel.status.value


def test_an_error_in_a_stage_says_where_it_happened(monkeypatch):
    task = tasks.get("digits")
    object.__setattr__(task, "loss", broken)
    try:
        panel = LiveTraining(**SHORT)
        with pytest.raises(pm.StageError, match="stage 4, microbatch 0, forward"):
            trained(panel)
        assert "stage 4, microbatch 0" in panel.status.value
    finally:
        tasks.get.cache_clear()


def test_an_error_in_a_callback_shows_and_is_raised(monkeypatch):
    monkeypatch.setattr("pipemare_edu.panels.live.curves", broken)
    panel = LiveTraining(**SHORT)
    with pytest.raises(ZeroDivisionError):
        trained(panel)


def test_an_error_in_a_task_shows_and_is_raised(monkeypatch):
    panel = LiveTraining(**SHORT)
    monkeypatch.setattr(tasks, "get", broken)
    panel.controls["task"].value = "regression"
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


def test_registered_methods_appear(monkeypatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    panel = LiveTraining(**SHORT)
    pm.register("mine", pm.PipeMare(t2=0.3))
    panel._repr_mimebundle_()
    assert "mine" in panel.controls["method"].options
    assert panel.controls["method"].value == SHORT["method"]
    panel.controls["method"].value = "mine"
    assert trained(panel) == "done"
    assert list(panel.runs) == ["mine"]


def test_two_panels_train_at_once_with_the_bits_of_each_alone():
    one, two = LiveTraining(**SHORT), LiveTraining(**SHORT, seed=1)

    async def cell():
        one.run.click()
        two.run.click()
        np.random.rand()
        return await asyncio.gather(one.wait(), two.wait())

    assert asyncio.run(cell()) == ["done", "done"]
    assert one.result().losses == pm.train("digits", **SHORT).losses
    assert two.result().losses == pm.train("digits", **SHORT, seed=1).losses


def test_the_text_form_says_the_plain_call():
    text = repr(LiveTraining(**SHORT))
    call = "live_training(task='digits', method='pipemare-t1t2', stages=4, steps=60, seed=0)"
    assert call in text and text == repr(LiveTraining(**SHORT))


def test_a_run_that_never_left_its_warm_up_says_so():
    panel = LiveTraining(stages=4, steps=10, method=SHORT["method"])
    trained(panel)
    assert "before its pipe was full" not in panel.figures["staleness"].alt
    panel.controls["stages"].value = 12
    trained(panel)
    assert "before its pipe was full" in panel.figures["staleness"].alt


def test_the_engine_switch_trains_in_two_processes_with_the_same_result():
    panel = LiveTraining(steps=30, stages=4)
    trained(panel)
    panel.controls["engine"].value = "2 processes"
    trained(panel)
    kernel, workers = panel.runs.values()
    assert list(panel.runs) == ["pipemare, kernel", "pipemare, 2 processes"]
    assert workers.losses == kernel.losses and workers.metrics == kernel.metrics
    assert "4 stages in 2 workers" in str(headline(panel.draw()["gantt"]))
    shown = live_training(steps=30, stages=4, engine="2 processes")
    assert shown.value.losses == kernel.losses


def test_what_the_engine_switch_offers():
    assert list(engines(Machine(0, 2, True, {}))) == ["kernel", "2 processes"]
    assert list(engines(Machine(0, 2, False, {}))) == ["kernel"]
    assert list(engines(Machine(1, 2, True, {})))[2:] == ["GPU"]
    assert engines(Machine(4, 2, True, {}))["4 GPUs"] == {"workers": "auto", "device": "cuda"}
    with pytest.raises(ValueError, match="engine"):
        LiveTraining(engine="two")
