"""The steepest direction of a loss: power iteration with Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from ..trainer.threads import one_thread

MOST = 500  # products


@dataclass(frozen=True)
class Steepest:
    """The largest eigenvalue of the Hessian, and its unit eigenvector as one flat tensor, in the
    order of the parameters."""

    curvature: float
    vector: Tensor


@one_thread()
def steepest(
    loss: Callable[[], Tensor],
    parameters: Sequence[nn.Parameter],
    tolerance: float = 1e-7,
    seed: int = 0,
) -> Steepest:
    """The top eigenpair of loss()'s Hessian in `parameters`, at their present values.

    Until the eigenvalue changes by less than `tolerance` of itself from one product to the next.
    Where the largest eigenvalue in size is negative, as it can be far from a minimum, the Hessian
    is shifted by it and iterated again: the result is the most positive one.
    """
    gradient = parameters_to_vector(torch.autograd.grad(loss(), parameters, create_graph=True))
    start = torch.randn(len(gradient), generator=torch.Generator().manual_seed(seed)).to(gradient)

    def product(vector: Tensor) -> Tensor:
        parts = torch.autograd.grad(gradient, parameters, vector, retain_graph=True)
        return parameters_to_vector(parts).detach()

    value, vector = _power(product, start, tolerance)
    if value < 0:
        lowest = value
        value, vector = _power(lambda v: product(v) - lowest * v, start, tolerance)
        value += lowest
    return Steepest(value, vector)


def _power(
    product: Callable[[Tensor], Tensor], start: Tensor, tolerance: float
) -> tuple[float, Tensor]:
    vector, value = start / start.norm(), 0.0
    for _ in range(MOST):
        pushed = product(vector)
        last, value = value, float(vector @ pushed)
        if abs(value - last) <= tolerance * abs(value):
            break
        vector = pushed / pushed.norm()
    return value, vector
