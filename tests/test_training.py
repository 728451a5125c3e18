"""Training a task by name."""

from __future__ import annotations

import math

import pytest
import torch

import pipemare_edu as pm
from pipemare_edu import tasks
from pipemare_edu.trainer.registry import Fixes
from pipemare_edu.training import prepare, scaled

LAYERS = len(tasks.get("regression").setting().layers())


def test_train_is_the_front_door() -> None:
    run = pm.train(
        "digits", method="pipemare", stages=12, microbatches=1, steps=20, seed=0, workers=0,
        network=None, rate=None, batch=None, eval_every=None,
    )  # fmt: skip
    assert run.status == "done" and run.steps == len(run.losses) == 20
    assert set(run.metrics) == {"loss", "accuracy"}
    assert [k for k, _ in run.metrics["accuracy"]] == [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    assert run.config["stages"] == [1] * 12 and run.config["microbatches"] == 1


def test_the_same_call_gives_the_same_bits_and_leaves_the_callers_state() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = pm.train("regression", method="pipemare", steps=12, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    second = pm.train("regression", method="pipemare", steps=12, seed=3)
    assert first.losses == second.losses and first.metrics == second.metrics
    assert pm.train("regression", method="pipemare", steps=12, seed=4).losses != first.losses


@pytest.mark.parametrize("stages", [1, 3, [2, LAYERS - 2]])
def test_the_stage_count_does_not_change_a_synchronous_run(stages) -> None:
    reference = pm.train("regression", method="gpipe", steps=6)
    run = pm.train("regression", method="gpipe", steps=6, stages=stages)
    assert run.losses == pytest.approx(reference.losses, rel=1e-5)
    assert run.losses[0] == reference.losses[0]


@pytest.mark.parametrize("name", tasks.names())
def test_every_network_of_every_task_starts(name) -> None:
    for network in tasks.get(name).settings:
        run = pm.train(name, method="gpipe", network=network, steps=2)
        assert run.status == "done" and all(map(math.isfinite, run.losses))


@pytest.mark.parametrize("method", pm.method_names())
def test_every_method_by_name(method) -> None:
    run = pm.train("regression", method=method, steps=12, microbatches=2)
    assert run.status == "done" and run.steps == 12


def test_a_method_may_be_a_value() -> None:
    by_name = pm.train("regression", method="pipemare-t2", steps=8)
    fixes = tasks.get("regression").setting().fixes
    assert pm.train("regression", pm.PipeMare(t2=fixes.t2), steps=8).losses == by_name.losses


def test_fixes_keep_their_share_of_another_length() -> None:
    setting = tasks.get("regression").setting()
    half = scaled(setting, setting.steps // 2)
    assert half.t1 == round(setting.fixes.t1 / 2) and half.t3 == round(setting.fixes.t3 / 2)
    assert half.t2 == setting.fixes.t2
    assert isinstance(scaled(setting, 1), Fixes) and scaled(setting, 1).t1 == 1


BAD = {
    "task": ({"task": "digit"}, "did you mean 'digits'"),
    "method": ({"method": "pipemore"}, "did you mean 'pipemare'"),
    "network": ({"network": "m1p"}, "did you mean 'mlp'"),
    "stages": ({"stages": 99}, f"{LAYERS} layers cannot fill 99 stages"),
    "stages 0": ({"stages": 0}, "stages"),
    "counts": ({"stages": [4, 3]}, "sum to 7"),
    "microbatches": ({"microbatches": 51}, "microbatches is 51"),
    "microbatches 0": ({"microbatches": 0}, "microbatches is 0"),
    "starved": ({"microbatches": 30}, "BatchNorm"),
    "rate": ({"rate": 0}, "rate is 0"),
    "rate nan": ({"rate": math.nan}, "rate is nan"),
    "rate word": ({"rate": "0.1"}, "rate is '0.1'"),
    "batch": ({"batch": 10000}, "batch is 10000"),
    "batch 0": ({"batch": 0}, "batch is 0"),
    "batch -3": ({"batch": -3}, "batch is -3"),
    "batch 2.5": ({"batch": 2.5}, "batch is 2.5"),
    "steps 0": ({"steps": 0}, "steps is 0"),
    "steps -1": ({"steps": -1}, "steps is -1"),
    "eval_every": ({"eval_every": -1}, "every is -1"),
    "eval_every 0": ({"eval_every": 0}, "every is 0"),
    "seed": ({"seed": -1}, "seed is -1"),
    "seed word": ({"seed": "one"}, "seed is 'one'"),
    "workers": ({"workers": -1}, "workers is -1"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_before_any_work(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(**({"task": "regression", "method": "gpipe"} | options))
