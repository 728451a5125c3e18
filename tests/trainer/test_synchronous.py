"""Synchronous methods equal gradient accumulation in plain PyTorch, to rounding in float64.

Same microbatches, same dropout masks (they are keyed by seed, layer and microbatch), twenty steps,
clipping by the global norm and a scheduler; uneven microbatches and a short last minibatch.
"""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import pipemare_edu as pm
from pipemare_edu.trainer.randomness import key

METHODS = [pm.Sequential(), pm.GPipe(), pm.OneFOneB(), pm.PipeMare([0] * 9), pm.PipeMare(t3=99)]


class Skip(nn.Module):
    """A residual pair of layers with its skip in a tuple, integers beside it."""

    def __init__(self, opens: bool):
        super().__init__()
        self.linear, self.opens = nn.Linear(6, 6), opens

    def forward(self, value):
        if self.opens:
            return self.linear(value), value, torch.arange(len(value))
        h, skip, order = value
        return self.linear(h)[order] + skip


def network():
    torch.manual_seed(1)
    return [
        nn.Linear(5, 6).double(),
        nn.Sequential(nn.Dropout(0.3), nn.BatchNorm1d(6), nn.ReLU()).double(),
        Skip(True).double(),
        Skip(False).double(),
        nn.Tanh(),
        nn.Sequential(nn.Linear(6, 6)).double(),
        nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 6)).double(),
        nn.LayerNorm(6).double(),
        nn.Linear(6, 3).double(),
    ]


def batches(sizes):
    g = torch.Generator().manual_seed(2)
    return [
        (
            torch.randn(n, 5, generator=g, dtype=torch.float64),
            torch.randint(0, 3, (n,), generator=g),
        )
        for n in sizes
    ]


def optimizer(named):
    opt = torch.optim.SGD(named, lr=0.3, momentum=0.9, weight_decay=1e-3)
    return opt, torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)


def plain(layers, data, N, clip, seed=11):
    """Gradient accumulation as anyone would write it; returns the losses."""
    params = [p for layer in layers for p in layer.parameters() if p.requires_grad]
    opt, scheduler = optimizer(params)
    losses, m = [], 0
    for x, y in data:
        opt.zero_grad()
        total = 0.0
        for xm, ym in zip(x.tensor_split(N), y.tensor_split(N), strict=True):
            value = xm
            for j, layer in enumerate(layers):
                torch.manual_seed(key(seed, j, m))
                value = layer(value)
            loss = cross_entropy(value, ym) * (len(xm) / len(x))
            loss.backward()
            total += loss.item()
            m += 1
        if clip:
            nn.utils.clip_grad_norm_(params, clip)
        opt.step()
        scheduler.step()
        losses.append(total)
    return losses


def state(layers):
    return torch.cat([t.double().flatten() for x in layers for t in x.state_dict().values()])


@pytest.mark.parametrize("N", [1, 3, 5])
@pytest.mark.parametrize("stages", [1, 2, 4, 9])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_every_synchronous_method_is_gradient_accumulation(N, stages, clip):
    data = batches([13, 13, 13, 10] * 5)
    reference = network()
    losses = plain(reference, data, N, clip)
    for method in METHODS:
        if isinstance(method, pm.PipeMare):
            if method.t3 and clip:
                continue  # an asynchronous method clips each stage by itself
            method = method if method.t3 else pm.PipeMare([0] * stages)
        layers = network()
        run = pm.Trainer(
            layers, cross_entropy, optimizer, method, stages, N, seed=11, clip=clip
        ).fit(data)
        torch.testing.assert_close(state(layers), state(reference), rtol=1e-12, atol=1e-12)
        assert run.losses == pytest.approx(losses, rel=1e-12)


def test_asynchronous_methods_clip_each_stage_by_itself():
    """One step from a fresh pipe has no staleness, so only the clipping can differ."""
    x = torch.ones(2, 2, dtype=torch.float64)
    ends = {}
    for method in (pm.GPipe(), pm.PipeMare()):
        torch.manual_seed(0)
        layers = [nn.Linear(2, 2).double(), nn.Linear(2, 2).double()]
        before = [copy.deepcopy(layer.state_dict()) for layer in layers]
        trainer = pm.Trainer(
            layers,
            lambda o, t: 100 * o.square().mean(),
            lambda named: torch.optim.SGD(named, lr=1.0),
            method,
            stages=2,
            clip=0.1,
        )
        trainer.fit([(x, x)])
        moved = [
            torch.cat([(v - b[k]).flatten() for k, v in layer.state_dict().items()]).norm().item()
            for layer, b in zip(layers, before, strict=True)
        ]
        ends[method.synchronous] = moved
    assert sum(v**2 for v in ends[True]) ** 0.5 == pytest.approx(0.1, rel=1e-4)
    assert ends[False] == pytest.approx([0.1, 0.1], rel=1e-4)
