"""Power iteration against the whole Hessian."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipemare_edu.studies.curvature import steepest


@pytest.mark.parametrize("seed", range(4))
def test_top_eigenpair_of_a_quadratic(seed):
    """Two parameters, a random symmetric matrix: the most positive eigenvalue, however negative
    the others are."""
    torch.manual_seed(seed)
    matrix = torch.randn(7, 7, dtype=torch.float64)
    matrix = (matrix + matrix.T) / 2 - (seed % 2) * 3 * torch.eye(7, dtype=torch.float64)
    first = nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
    second = nn.Parameter(torch.zeros(3, dtype=torch.float64))

    def loss():
        w = torch.cat([first.flatten(), second])
        return w @ matrix @ w / 2

    found = steepest(loss, [first, second], tolerance=1e-12)
    values, vectors = torch.linalg.eigh(matrix)
    assert found.curvature == pytest.approx(float(values[-1]), rel=1e-6)
    assert abs(float(found.vector @ vectors[:, -1])) == pytest.approx(1.0, abs=1e-3)
    assert first.grad is None
