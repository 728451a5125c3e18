"""What a first-time user writes, and what the trainer answers."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import pipemare_edu as pm


def net():
    torch.manual_seed(0)
    return [nn.Linear(3, 3) for _ in range(4)]


def sgd(named):
    return torch.optim.SGD(named, lr=0.1)


def loader():
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(x, x), batch_size=4)


def test_every_documented_name_is_accepted():
    method = pm.PipeMare(t1=400, t2=0.135, t3=0, recompute=0, depth="lockstep")
    trainer = pm.Trainer(
        net(), mse_loss, sgd, method=method, stages=4, microbatches=2, workers=0, device="auto",
        seed=0, clip=None, timeout=60,
    )  # fmt: skip
    run = trainer.fit(loader(), steps=None, evaluate=None, every=0, metrics={})
    assert run.status == "done" and run.steps == 5
    assert repr(run).startswith("<Run PipeMare(") and len(repr(run)) < 200


@pytest.mark.parametrize("done", [5, 10, 7])
def test_a_restored_trainer_goes_on_with_the_pass(done, tmp_path):
    """One pass is five minibatches: after whole passes another one, else what is left of it."""
    first = pm.Trainer(net(), mse_loss, sgd, "gpipe", 2)
    first.fit(loader(), steps=done)
    first.save(tmp_path / "state")
    second = pm.Trainer(net(), mse_loss, sgd, "gpipe", 2)
    second.restore(tmp_path / "state")
    assert second.fit(loader()).steps == (5 if done % 5 == 0 else 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": nn.Linear(3, 3)}, "give a list of modules"),
        ({"layers": None}, "layers is None: give a list of modules"),
        ({"layers": "abc"}, "layers is 'abc': give a list of modules"),
        ({"loss": "mse"}, "loss is 'mse'"),
        ({"loss": torch.nn.MSELoss}, "loss is <class .*MSELoss.*give a function"),
        ({"stages": "2"}, "stages is '2': give a whole number"),
        ({"method": 3}, "method is 3"),
        ({"device": None}, "device is None"),
        ({"workers": 1.5}, "workers is 1.5: give a whole number"),
        ({"workers": "-1"}, "workers is '-1': give a whole number"),
        ({"workers": "env"}, r"torchrun did not start this process \(RANK, "),
        ({"seed": 2**63}, f"seed is {2**63}: give a whole number, from 0 to {2**63 - 1}"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], lr=1)}, "function that builds one"),
        ({"device": "gpu"}, 'give "auto"'),
        ({"workers": 9}, "workers is 9"),
        ({"timeout": 0}, "timeout is 0"),
    ],
)
def test_what_cannot_work_is_refused_in_plain_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        pm.Trainer(**({"layers": net(), "loss": mse_loss, "optimizer": sgd} | arguments))


@pytest.mark.parametrize("depth", [5, None, 2.5])
def test_depths_that_are_no_list_are_refused(depth):
    with pytest.raises(ValueError, match=f"depth is {depth}: give one of .* list of depths"):
        pm.PipeMare(depth=depth)


@pytest.mark.parametrize("task", [3, None, ["digits"]])
def test_a_task_that_is_no_name_is_unknown(task):
    with pytest.raises(ValueError, match="unknown task"):
        pm.train(task)


def test_a_misspelt_name_has_a_close_match():
    with pytest.raises(AttributeError, match="'Trainr': did you mean 'Trainer'"):
        pm.Trainr  # noqa: B018


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a GPU that is absent")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no GPU"):
        pm.Trainer(net(), mse_loss, sgd, device="cuda")


def test_a_method_that_sets_a_field_unseen_is_refused():
    class Plain(pm.Method):
        depth = "lockstep"

    class Bare(pm.PipeMare):
        t1 = 100

    @dataclass(frozen=True)
    class Right(pm.Method):
        depth: str = "lockstep"

    for wrong in (Plain, Bare):
        with pytest.raises(TypeError, match="dataclass"):
            wrong()
    assert Right().depth == "lockstep" and Right(depth=[3, 1]).depth == (3, 1)


def test_numbers_may_be_numpys(tmp_path):
    method = pm.PipeMare(t1=np.int64(5), t2=np.float64(0.1), depth=np.array([2, 1, 0]))
    assert repr(method) == repr(pm.PipeMare(t1=5, t2=0.1, depth=(2, 1, 0)))
    trainer = pm.Trainer(
        [nn.Linear(4, 4) for _ in range(3)], mse_loss, lambda n: torch.optim.SGD(n, lr=0.1), method,
        stages=np.int64(3), microbatches=np.int64(2), seed=np.int64(1), clip=np.float32(1),
    )  # fmt: skip
    batches = [(torch.randn(6, 4), torch.randn(6, 4))] * 4
    run = trainer.fit(batches, np.int64(4), save_every=np.int64(2), save_to=tmp_path / "checkpoint")
    run.save(tmp_path / "run")
    trainer.restore(tmp_path / "checkpoint")
    lists = pm.schedule("gpipe", np.int64(4), np.int64(8))
    assert pm.simulate(lists, forward=np.float32(1)).idle == 3 / 11
    with pytest.raises(ValueError, match="stages is np.True_"):
        pm.schedule("gpipe", np.bool_(True))


def test_what_is_wrong_with_evaluate_is_said_of_it():
    trainer = pm.Trainer([nn.Linear(4, 4)], mse_loss, lambda n: torch.optim.SGD(n, lr=0.1))
    x = torch.randn(6, 4)
    for evaluate, what in (([(x,)], "is a tuple of 1"), ([(x, x[:3])], "mixes lengths")):
        with pytest.raises(pm.DataError, match=f"evaluate's batch 0 {what}"):
            trainer.fit([(x, x)], evaluate=evaluate)
