"""Regression on a seeded teacher network: real-valued targets, data without end or download."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from ..models.mlp import mlp
from ..trainer.registry import Fixes
from .task import Setting, Task, sgd_cosine


def load(samples: int = 3000, inputs: int = 16, outputs: int = 4) -> tuple[Tensor, Tensor]:
    """(inputs, targets): standard normal inputs, the standardized outputs of a fixed two-layer
    tanh network."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(samples, inputs, generator=g)
    first = torch.randn(inputs, 32, generator=g) / inputs**0.5
    second = torch.randn(32, outputs, generator=g)
    y = (x @ first).tanh() @ second
    return x, (y - y.mean(0)) / y.std(0)


def explained(output: Tensor, target: Tensor) -> Tensor:
    """Share of the targets' variance (1 by construction) that is explained, in per cent; 0 for an
    output that is no better than the mean."""
    return (1.0 - (output - target).square().mean()).clamp(min=0.0) * 100


def task() -> Task:
    x, y = load()
    return Task(
        name="regression",
        title="a teacher network's outputs",
        train=(x[:2400], y[:2400]),
        test=(x[2400:], y[2400:]),
        loss=mse_loss,
        metrics={"explained": explained},
        score="explained",
        settings={
            "mlp": Setting(
                lambda: mlp(16, 64, 4, depth=12), sgd_cosine,
                stages=12, microbatches=1, batch=50, steps=800, rate=0.2,
                fixes=Fixes(t1=200, t3=80), about="12 x (Linear 64, BatchNorm, ReLU)",
            ),
        },
    )  # fmt: skip
