"""Handwritten digits: the 1797 8x8 images that scikit-learn ships, 1300 to train on, 497 to test.

SETTINGS.md (a) and (f) are the starting points of "mlp" and "deep".
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..models.mlp import mlp, residual_mlp
from ..models.resnet import basic_resnet
from ..trainer.registry import Fixes
from .task import Setting, Task, accuracy, sgd_cosine


def load() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """((images, classes) to train on, the same to test); images (n, 64), about standardized."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(classes))
    x = (torch.tensor(images[order], dtype=torch.float32) - 4.9) / 6.0
    y = torch.tensor(classes[order])
    return (x[:1300], y[:1300]), (x[1300:], y[1300:])


def conv_net() -> list[nn.Module]:
    """A residual convolutional net on the flat images: the first layer folds them to 8x8."""
    stem, *rest = basic_resnet(channels=1, widths=(16, 16, 32, 32), outputs=10)
    return [nn.Sequential(nn.Unflatten(1, (1, 8, 8)), stem), *rest]


def task() -> Task:
    train, test = load()
    return Task(
        name="digits",
        title="8x8 handwritten digits",
        train=train,
        test=test,
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        score="accuracy",
        settings={
            "mlp": Setting(
                lambda: mlp(64, 64, 10, depth=12), sgd_cosine,
                stages=12, microbatches=1, batch=50, steps=1600, rate=0.2,
                fixes=Fixes(t1=400, t3=160), about="12 x (Linear 64, BatchNorm, ReLU)",
            ),
            "deep": Setting(
                lambda: mlp(64, 64, 10, depth=16), sgd_cosine,
                stages=16, microbatches=1, batch=50, steps=1600, rate=0.15,
                fixes=Fixes(t1=300, t3=160), about="16 x (Linear 64, BatchNorm, ReLU)",
            ),
            "residual": Setting(
                lambda: residual_mlp(64, 64, 10, depth=12), sgd_cosine,
                stages=12, microbatches=1, batch=50, steps=800, rate=0.4,
                fixes=Fixes(t1=200, t3=80), about="12-layer residual MLP with LayerNorm",
            ),
            "conv": Setting(
                conv_net, sgd_cosine,
                stages=10, microbatches=1, batch=32, steps=600, rate=0.5,
                fixes=Fixes(t1=300, t3=60), about="residual conv net, 4 basic blocks",
            ),
        },
    )  # fmt: skip
