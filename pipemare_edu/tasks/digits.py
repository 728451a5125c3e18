"""Handwritten digits: the 1797 8x8 images that scikit-learn ships, 1300 to train on, 497 to test.

Measured as `python -m pipemare_edu compare digits --network NAME --seeds 5` runs it, and on five
fresh seeds: test accuracy in per cent, mean and spread as compare prints them (a diverged run
counts 0), and in brackets how many of the five diverged.

    network      mlp                     deep           residual                   conv
    seeds        0-4           5-9       0-4            0-4           5-9          0-4      5-9
    synchronous  99.0 0.2      98.9 0.4  98.8  0.2      98.3 0.2      98.5 0.4     99.4 0.2 98.9 0.4
    PipeDream    98.4 0.7      98.4 0.5  97.9  0.7      96.4 0.8      96.1 0.6     98.2 0.6 98.3 1.0
    naive                 (5)       (5)            (5)           (5)           (5)      (5)      (5)
    T1           69.3 35  (1)  82.9 11   15.7 24   (3)  56.5 46  (2)  76.5 38  (1) 96.2 1.3 96.8 0.9
    T2           98.6 0.3      98.6 0.7  94.7  1.0      17.6 35  (4)  31.3 38  (3) 98.0 0.7 97.5 0.8
    T1+T2        98.8 0.3      98.6 0.3  90.5  9.8      97.1 0.5      97.1 0.1     98.9 0.7 97.5 1.5
    T1+T2+T3     98.5 0.2      98.1 0.6  20.4 25   (3)  96.8 0.4      96.8 0.4     98.8 0.3 99.0 0.3

mlp       SETTINGS.md (a), chosen there with other software.  T2 alone is enough: beside it T1 adds
          nothing, and T3 costs a little.
deep      SETTINGS.md (f), chosen there.  T2 alone is best; T1 beside it does not help (one seed
          ends at 71), and T3 hurts: 3 of 5 diverge after the switch.
residual  Rate, steps and K chosen on seeds 0-1.  T1 and T2 each diverge in some seeds (T1 is at
          92-97 in the others) and hold together.  T3 does not help, nor in T2's place: T1+T3 leaves
          one of seeds 0-4 at 52.
conv      Rate, steps and K chosen on seeds 0-1.  T1 or T2 alone nearly suffices, and together they
          are no better on fresh seeds than T2 alone; T3 steadies them.
bottleneck  Rate chosen on seed 0, measured on seeds 5-6: synchronous 98.3 0.1, PipeDream 98.4 0.0,
          naive diverges in both, T1 98.5 0.1, T1+T2 96.5 0.9, T1+T2+T3 98.3 0.1.  T1 alone is
          enough, and T2 beside it costs two points that T3 gives back.

Rate windows, on 1-3 seeds with all else equal.
mlp       0.07: naive 92.9, synchronous 98.4.  0.8: synchronous 98.9, naive diverges.
deep      0.05: naive reaches 68 or diverges, so the window begins lower.
residual  0.13: naive 94 or 52.  0.3: synchronous 98.7, naive 81 or diverges.  In 600 steps, 0.5:
          synchronous 98.0, naive diverges; 1.0: synchronous diverges too.
conv      0.3: naive 98.1, nothing to fix.  0.8: synchronous 99.1, naive diverges.  At 0.5 with
          half the annealing (K = 150) T1+T2 is at 96.5 and all three at 95.7: K matters most.
bottleneck  0.7 (seed 0): T1+T2 87.9, all three 98.0, synchronous 98.4, naive diverges.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..models.mlp import mlp, residual_mlp
from ..models.resnet import basic_resnet, bottleneck_resnet
from ..trainer.registry import Fixes
from .task import Setting, Task, accuracy, sgd_cosine


def load() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """((images, classes) to train on, the same to test); images (n, 64), about standardized."""
    images, classes = shipped()
    order = np.random.RandomState(0).permutation(len(classes))
    x = (torch.tensor(images[order], dtype=torch.float32) - 4.9) / 6.0
    y = torch.tensor(classes[order])
    return (x[:1300], y[:1300]), (x[1300:], y[1300:])


def shipped() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's (images, classes), read from its file: importing scikit-learn takes almost as
    long as importing torch."""
    spec = importlib.util.find_spec("sklearn")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder, "datasets", "data", "digits.csv.gz")
        if file.is_file():
            table = np.loadtxt(file, delimiter=",")
            return table[:, :-1], table[:, -1].astype(int)
    from sklearn.datasets import load_digits  # another layout of its files

    return load_digits(return_X_y=True)


def conv_net() -> list[nn.Module]:
    """A residual convolutional net of four basic blocks."""
    return folded(basic_resnet(channels=1, widths=(16, 16, 32, 32), outputs=10))


def bottleneck_net() -> list[nn.Module]:
    """A residual convolutional net of six bottleneck blocks, a convolution or BatchNorm a layer."""
    return folded(bottleneck_resnet(1, (2, 2, 2), (8, 16, 16), 10, expansion=2))


def folded(layers: list[nn.Module]) -> list[nn.Module]:
    """Layers for 8x8 images, given flat ones: the first layer folds them."""
    return [nn.Sequential(nn.Unflatten(1, (1, 8, 8)), layers[0]), *layers[1:]]


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
            "bottleneck": Setting(
                bottleneck_net, sgd_cosine,
                stages=20, microbatches=1, batch=32, steps=800, rate=0.4,
                fixes=Fixes(t1=400, t3=80), about="ResNet of 6 bottleneck blocks, 45 layers",
            ),
        },
    )  # fmt: skip
