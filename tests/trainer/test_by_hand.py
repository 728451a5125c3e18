"""A three-stage linear pipeline written out by hand: every method, ten updates.

The model below knows no operation list and no autograd.  It keeps every past weight and reads the
version that PAPER.md section 1 gives: of the forward of microbatch n of minibatch k at a stage of
depth D, k + floor((n - D) / N), and never one from before the switch to asynchronous.
"""

import math

import pytest
import torch
from torch import nn

from pipemare_edu.plan.schedules import depths
from pipemare_edu.trainer.methods import GPipe, OneFOneB, PipeDream, PipeMare, Sequential
from pipemare_edu.trainer.trainer import Trainer

WIDTHS = (3, 4, 3, 2)
STEPS = 10
DECAY = 0.3


def weights():
    g = torch.Generator().manual_seed(3)
    shapes = zip(WIDTHS[1:], WIDTHS[:-1], strict=True)
    return [torch.randn(o, i, generator=g, dtype=torch.float64) / 2 for o, i in shapes]


def batches():
    g = torch.Generator().manual_seed(4)
    return [
        (
            torch.randn(7, 3, generator=g, dtype=torch.float64),
            torch.randn(7, 2, generator=g, dtype=torch.float64),
        )
        for _ in range(STEPS)
    ]


class Momentum:
    rate = 0.1

    def __init__(self):
        self.v = None

    def step(self, w, g, rate):
        self.v = g if self.v is None else 0.9 * self.v + g
        return w - rate * self.v


class Adam:
    rate = 0.05

    def __init__(self):
        self.m = self.v = 0.0
        self.t = 0

    def step(self, w, g, rate):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.98 * self.v + 0.02 * g * g
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.98**self.t)
        return w - rate * m / (v.sqrt() + 1e-8)


FACTORIES = {
    Momentum: lambda named: torch.optim.SGD(named, lr=0.1, momentum=0.9),
    Adam: lambda named: torch.optim.Adam(named, lr=0.05, betas=(0.9, 0.98), eps=1e-8),
}


def by_hand(depth, stash, t1, t2, t3, N, Optimizer):
    """The weights after STEPS updates, from the definitions alone."""
    history = [[w] for w in weights()]
    optimizers = [Optimizer() for _ in history]
    deltas = [torch.zeros_like(w[0]) for w in history]
    taus = [d / N for d in depth]
    for k, (x, y) in enumerate(batches()):
        grads = [torch.zeros_like(w[0]) for w in history]
        for n, (xm, ym) in enumerate(zip(x.tensor_split(N), y.tensor_split(N), strict=True)):
            warm = k < t3
            read = [k if warm else max(t3, k + math.floor((n - d) / N)) for d in depth]
            read = [max(0, v) for v in read]
            activations = [xm]
            for w, v in zip(history, read, strict=True):
                activations.append(activations[-1] @ w[v].T)
            share = len(xm) / len(x)
            g = share * 2 * (activations[-1] - ym) / ym.numel()
            for i in reversed(range(3)):
                grads[i] += g.T @ activations[i]
                if stash:
                    back = history[i][read[i]]
                elif t2 and not warm:
                    back = history[i][k] - taus[i] * deltas[i]
                else:
                    back = history[i][k]
                g = g @ back
        for i, w in enumerate(history):
            p = 1 - min((k - t3) / t1, 1) if t1 and k >= t3 else 0
            new = optimizers[i].step(w[-1], grads[i], Optimizer.rate * max(taus[i], 1) ** -p)
            if t2 and taus[i]:
                gamma = max(0.0, 1 - 2 / (taus[i] + 1)) if t2 == "theory" else t2 ** (1 / taus[i])
                deltas[i] = gamma * deltas[i] + (1 - gamma) * (new - w[-1])
            w.append(new)
    return [w[-1] for w in history]


def by_trainer(method, N, Optimizer):
    layers = [nn.Linear(i, o, bias=False).double() for i, o in zip(WIDTHS, WIDTHS[1:])]  # noqa: B905
    with torch.no_grad():
        for layer, w in zip(layers, weights(), strict=True):
            layer.weight.copy_(w)
    Trainer(
        layers,
        nn.functional.mse_loss,
        FACTORIES[Optimizer],
        method=method,
        stages=3,
        microbatches=N,
    ).fit(batches())
    return [layer.weight.detach() for layer in layers]


METHODS = {
    "sequential": (Sequential(), {}),
    "gpipe": (GPipe(), {}),
    "1f1b": (OneFOneB(), {}),
    "pipedream": (PipeDream(), {"depth": "lockstep", "stash": True}),
    "pipedream 1f1b": (PipeDream("async-1f1b"), {"depth": "async-1f1b", "stash": True}),
    "naive": (PipeMare(), {"depth": "lockstep"}),
    "t1": (PipeMare(t1=6), {"depth": "lockstep", "t1": 6}),
    "t2": (PipeMare(t2=DECAY), {"depth": "lockstep", "t2": DECAY}),
    "t2 theory": (PipeMare(t2="theory"), {"depth": "lockstep", "t2": "theory"}),
    "t3": (PipeMare(t3=3), {"depth": "lockstep", "t3": 3}),
    "all": (PipeMare(t1=5, t2=DECAY, t3=3), {"depth": "lockstep", "t1": 5, "t2": DECAY, "t3": 3}),
    "all 1f1b": (
        PipeMare("async-1f1b", t1=5, t2=DECAY, t3=3),
        {"depth": "async-1f1b", "t1": 5, "t2": DECAY, "t3": 3},
    ),
    "list": (PipeMare([4, 4, 1], t2=DECAY), {"depth": [4, 4, 1], "t2": DECAY}),
}


@pytest.mark.parametrize("Optimizer", [Momentum, Adam])
@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_ten_updates_equal_the_definitions(name, N, Optimizer):
    method, settings = METHODS[name]
    settings = {"depth": "sequential", "stash": False, "t1": 0, "t2": 0, "t3": 0} | settings
    settings["depth"] = depths(settings["depth"], 3)
    expected = by_hand(N=N, Optimizer=Optimizer, **settings)
    for got, want in zip(by_trainer(method, N, Optimizer), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_the_methods_differ_from_each_other():
    """Otherwise the comparison above would pass on a trainer that ignores its method."""
    ends = [
        torch.cat([w.flatten() for w in by_trainer(m, 1, Momentum)]) for m, _ in METHODS.values()
    ]
    distinct = {tuple(e.tolist()) for e in ends}
    assert len(distinct) == len(METHODS) - 2  # sequential, gpipe and 1f1b agree


@pytest.mark.parametrize("N", [1, 3])
def test_zero_depths_are_sequential_bitwise(N):
    for settings in ({}, {"t1": 5}, {"t2": DECAY}, {"t1": 5, "t2": DECAY, "t3": 3}):
        ours = by_trainer(PipeMare([0, 0, 0], **settings), N, Adam)
        reference = by_trainer(Sequential(), N, Adam)
        assert all(map(torch.equal, ours, reference))
