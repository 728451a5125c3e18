"""What a run was: its weights over steps, and its gradients with other weights."""

import numpy as np
import pytest
import torch

import pipemare_edu as pm
from pipemare_edu.plan import theory
from pipemare_edu.plan.velocity import deltas
from pipemare_edu.studies.past import discrepancies, gradients, noting, policies
from pipemare_edu.tasks.task import Shuffled
from pipemare_edu.training import prepare

STEPS = 30


@pytest.fixture(scope="module")
def job():
    job = noting(step=STEPS)
    job.fit()
    return job


def weights(trainer):
    return torch.cat([p.detach().reshape(-1) for x in trainer.layers for p in x.parameters()])


@pytest.mark.parametrize(
    ("fixes", "method"),
    [
        ("T2", pm.PipeMare(t2=float(np.exp(-2)))),
        ("T1", pm.PipeMare(t1=400)),
        ("T1+T2", pm.PipeMare(t1=400, t2=float(np.exp(-2)))),
    ],
)
def test_taking_notes_changes_no_bit(fixes, method):
    noted = noting(fixes=fixes, step=12)
    noted.fit()
    plain = prepare("digits", method)
    plain.trainer.fit(Shuffled(plain.task.train, plain.batch, plain.seed), steps=12)
    assert torch.equal(weights(noted.trainer), weights(plain.trainer))


def test_notes_are_the_versions_and_delta_is_the_policy_s(job):
    (first,), (last,) = policies(job)[0], policies(job)[-1]
    assert first.course().shape == (STEPS + 1, 200)
    newest = first.newest[first._some].double().numpy()
    assert np.array_equal(first.course()[-1], newest)
    assert len(first.recent) == 23 and len(last.recent) == 1
    forward, now, t2 = first.reads()
    assert np.array_equal(forward[first._some].double().numpy(), first.course()[-1 - 23])
    delta = deltas(first.course(), theory.gamma(float(np.exp(-2)), 23))[-1]
    assert np.allclose((now - t2)[first._some].numpy(), 23 * delta, atol=1e-5)


def test_gradients_with_equal_weights_are_autograd_s(job):
    stages = job.trainer.stages
    now = [[policy.newest.clone() for policy in row] for row in policies(job)]
    inputs, target = (part[:50] for part in job.task.train)
    found = gradients(stages, inputs, lambda y: job.task.loss(y, target), now, now)
    value = inputs
    for layer in job.trainer.layers:
        value = layer(value)
    job.task.loss(value, target).backward()
    for stage, mine in zip(stages, found, strict=True):
        own = torch.cat([p.grad.reshape(-1) for _, p in stage.named])
        assert torch.allclose(mine, own, atol=1e-6)
        for _, p in stage.named:
            p.grad = None


def test_discrepancy_grows_towards_stage_1_and_t2_removes_most(job):
    before = weights(job.trainer)
    *_, found = discrepancies(job)
    newest, t2 = zip(*(stage.shares for stage in found), strict=True)
    assert newest[0] > newest[5] > newest[-2] > newest[-1] == t2[-1] == 0
    assert all(b < 0.7 * a for a, b in zip(newest[:-1], t2[:-1], strict=True))
    assert torch.equal(weights(job.trainer), before)


def test_it_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="fixes is 'T9': it is one of none, T1, T2, T1\\+T2"):
        noting(fixes="T9")
    with pytest.raises(ValueError, match="unknown network"):
        noting(network="mpl")
