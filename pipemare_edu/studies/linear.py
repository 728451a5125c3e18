"""The linearized network under delay: every direction at once, every stage at its own delay.

At a minimum without error the errors e of all samples follow, to first order,

    e[t+1] = e[t] - a sum_i K_i e[t - tau_i],    K_i = (2/n) J_i J_i^T

where J_i holds the derivatives of the n errors in stage i's weights, for a mean square loss.  Lemma
1 and plan.per_stage look at one direction of this; here none is left out.  Not in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from .minimum import Batch, jacobian

Matrix = NDArray[np.float64]
STRIDE, HALVINGS, PATIENCE = 1.25, 8, 150
ROUNDING = 1e-9


def kernels(layers: Sequence[nn.Module], data: Batch) -> list[Matrix]:
    """K_i of every layer, shape (samples, samples)."""
    _, rows = jacobian(layers, data)
    out, first = [], 0
    for layer in layers:
        count = len(list(layer.parameters()))
        mine = np.concatenate([row.numpy() for row in rows[first : first + count]], axis=1)
        out.append(2 / len(mine) * mine @ mine.T)
        first += count
    return out


def linear_edge(stages: Sequence[Matrix], taus: Sequence[int], start: float) -> float:
    """The largest rate at which e dies out, by bisection from `start` over simulated recurrences:
    to about a tenth of a per cent of itself."""
    low = high = start
    while not dies_out(stages, taus, low):
        low /= STRIDE
    while dies_out(stages, taus, high):
        high *= STRIDE
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if dies_out(stages, taus, middle) else (low, middle)
    return math.sqrt(low * high)


def dies_out(stages: Sequence[Matrix], taus: Sequence[int], rate: float) -> bool:
    """Is e no larger in the last third of a simulation than in the third before?

    It begins at random, multiplied by all of K, so that flat directions, in which nothing happens,
    do not hide the steep ones.
    """
    steps = PATIENCE * (max(taus) + 1)
    wide = np.concatenate([rate * k for k in stages], axis=1)
    past = np.zeros((steps + max(taus) + 1, len(wide)))
    past[: max(taus) + 1] = sum(stages) @ np.random.default_rng(0).normal(size=len(wide))
    for t in range(max(taus), len(past) - 1):
        past[t + 1] = past[t] - wide @ np.concatenate([past[t - tau] for tau in taus])
    third = steps // 3
    sizes = np.abs(past).max(axis=1)
    return bool(sizes[-third:].max() <= (1 + ROUNDING) * sizes[-2 * third : -third].max())
