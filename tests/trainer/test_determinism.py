"""The same configuration gives the same bits, whatever else happens."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import pipemare_edu as pm

METHODS = [pm.GPipe(), pm.PipeDream(), pm.PipeMare(t1=9, t2=0.1, t3=4)]


def make(method, stages=4, seed=5):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [
            nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
            for _ in range(4)
        ]
    t = pm.Trainer(
        layers,
        nn.functional.mse_loss,
        lambda named: torch.optim.Adam(named, lr=0.01),
        method,
        stages,
        microbatches=2,
        seed=seed,
    )
    g = torch.Generator().manual_seed(1)
    data = [(torch.randn(9, 8, generator=g), torch.randn(9, 8, generator=g)) for _ in range(6)]
    return t, data


def bits(t):
    flat = [v.double().flatten() for layer in t.layers for v in layer.state_dict().values()]
    return torch.cat(flat)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_twice_and_interleaved(method):
    first, data = make(method)
    losses = first.fit(data, steps=20).losses
    second, data = make(method)
    other, _ = make(pm.PipeMare(), seed=6)
    theirs = other.chunks(data, steps=50, seconds=0.0)
    for run in second.chunks(data, steps=20, seconds=0.0):  # noqa: B007  one operation a chunk
        next(theirs, None)
        torch.rand(3)
    assert run.losses == losses
    assert torch.equal(bits(first), bits(second))


def test_two_processes():
    code = (
        "import hashlib, pipemare_edu as pm, torch\n"
        "torch.set_num_threads({threads})\n"
        "run = pm.train('digits', method='pipemare', steps=40, seed=3)\n"
        "print(hashlib.sha256(repr(run.losses).encode()).hexdigest())\n"
    )
    out = {
        subprocess.run(
            [sys.executable, "-c", code.format(threads=n)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in (1, 2)
    }
    assert len(out) == 1 and len(out.pop()) == 65


def test_initial_weights_and_masks_do_not_depend_on_the_stages():
    ends = []
    for stages in (1, 2, 4, [1, 2, 1]):
        t, data = make(pm.Sequential(), stages)
        t.fit(data, steps=10)
        ends.append(bits(t))
    assert all(torch.equal(ends[0], e) for e in ends[1:])


def test_the_seed_matters():
    ends = []
    for seed in (1, 2):
        t, data = make(pm.Sequential(), seed=seed)
        t.fit(data, steps=3)
        ends.append(bits(t))
    assert not torch.equal(*ends)


def test_the_callers_random_state_and_threads_are_left_alone():
    t, data = make(pm.PipeMare())
    torch.manual_seed(123)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    t.fit(data, steps=5)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
