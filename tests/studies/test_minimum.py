"""The networks reach the bottom of their loss, the same way every time."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import mse_loss

from pipemare_edu.studies.minimum import (
    NETWORKS,
    Descent,
    batch,
    copied,
    descent,
    forward,
    initial,
    jacobian,
    minimum,
    parameters,
)


def loss(layers, data):
    return float(mse_loss(forward(layers, data[0]), data[1]).detach())


@pytest.mark.parametrize("network", NETWORKS)
def test_the_loss_is_zero_but_for_rounding(network):
    data = batch(0)
    layers = copied(minimum(network, 0))
    assert loss(initial(network, 0), data) > 0.1
    assert loss(layers, data) < 1e-20
    assert sum(p.numel() for p in parameters(layers)) > len(data[0])


def test_a_descent_can_be_left_and_carried_on():
    way = Descent(initial("tanh", 3), batch(3))
    seen = [next(iter(way)), next(iter(way))]
    seen += list(way)
    again = list(Descent(initial("tanh", 3), batch(3)))
    assert seen == again and seen[-1] < seen[0]


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    initial("tanh", 1)
    batch(1)
    assert torch.rand(1) == expected
    assert descent("tanh", 1) is descent("tanh", 1)


def test_unknown_network():
    with pytest.raises(ValueError, match="did you mean 'tanh'"):
        initial("tan", 0)


def test_jacobian_by_differences():
    layers, data = initial("tanh", 0), batch(0)
    errors, rows = jacobian(layers, data)
    weight = parameters(layers)[2]
    with torch.no_grad():
        weight[0, 1] += 1e-6
    moved, _ = jacobian(layers, data)
    slope = (moved - errors) / 1e-6
    assert torch.allclose(slope, rows[2][:, 1], atol=1e-5)
