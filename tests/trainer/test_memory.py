"""Bytes counted in a live run equal the ledger's."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.plan.ledger import ledger
from pipemare_edu.plan.schedules import depths

P = 4
OPTIMIZERS = {
    0: lambda named: torch.optim.SGD(named, lr=1e-3),
    1: lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
    2: lambda named: torch.optim.AdamW(named, lr=1e-3),
}


@pytest.mark.parametrize("copies", OPTIMIZERS)
@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize(
    ("method", "depth", "extra"),
    [
        (pm.GPipe(), "gpipe", {}),
        (pm.OneFOneB(), "1f1b", {}),
        (pm.PipeDream(), "lockstep", {"stashes": True}),
        (pm.PipeDream("async-1f1b"), "async-1f1b", {"stashes": True}),
        (pm.PipeMare(), "lockstep", {}),
        (pm.PipeMare(t2=0.1), "lockstep", {"corrects": True}),
        (pm.PipeMare("async-1f1b", t2=0.1), "async-1f1b", {"corrects": True}),
    ],
)
def test_counted_equals_the_ledger(method, depth, extra, N, copies):
    widths = [5, 4, 3, 6, 2]
    layers = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]  # noqa: B905
    x, y = torch.randn(2 * N, 5), torch.randn(2 * N, 2)
    run = pm.Trainer(layers, mse_loss, OPTIMIZERS[copies], method, P, N).fit([(x, y)], steps=24)
    weights = [sum(p.nbytes for p in layer.parameters()) for layer in layers]
    saved = [2 * a * 4 for a in widths[:P]]  # a Linear saves its input of two rows
    saved[-1] += 2 * 2 * 4 * 2  # the loss its output and its target
    rows = ledger(
        weights,
        depths(depth, P),
        N,
        copies,
        activations=saved,
        in_flight=pm.simulate(pm.schedule(depth, P, N, 24)).in_flight,
        **extra,
    )
    assert run.memory == rows


def test_frozen_weights_have_no_gradient_and_no_stash():
    frozen = nn.Linear(3, 3)
    frozen.weight.requires_grad_(False)
    x = torch.randn(2, 3)
    trainer = pm.Trainer(
        [frozen, nn.Linear(3, 3)], mse_loss, OPTIMIZERS[1], pm.PipeDream(), stages=2
    )
    before = frozen.weight.clone()
    [first, _] = trainer.fit([(x, x)], steps=12).memory
    assert (first["weights"], first["gradients"], first["optimizer"]) == (48, 12, 12)
    assert first["stash"] == 3 * 12
    assert torch.equal(frozen.weight, before)
