"""The multilayer perceptrons: sizes, and the networks written out as functions of their weights."""

import torch
from torch import nn
from torch.nn import functional as F

from pipemare_edu.models.mlp import mlp, residual_mlp


def count(layers):
    return sum(p.numel() for layer in layers for p in layer.parameters())


def test_mlp_has_depth_layers_and_the_parameters_of_its_shapes():
    layers = mlp(8, 16, 3, depth=5)
    assert len(layers) == 5
    # Linear (weight, bias) and BatchNorm (scale, shift): 8 -> 16, three times 16 -> 16, 16 -> 3.
    assert count(layers) == (8 * 16 + 16 + 32) + 3 * (16 * 16 + 16 + 32) + (16 * 3 + 3)


def test_residual_mlp_has_depth_layers_and_the_parameters_of_its_shapes():
    layers = residual_mlp(8, 16, 3, depth=5)
    assert len(layers) == 5
    assert count(layers) == (8 * 16 + 16) + 3 * (32 + 16 * 16 + 16) + (32 + 16 * 3 + 3)


def test_mlp_computes_linear_batchnorm_relu():
    torch.manual_seed(0)
    layers = mlp(8, 16, 3, depth=3)
    x = torch.randn(5, 8)
    (w1, b1, s1, t1), (w2, b2, s2, t2), (w3, b3) = (list(layer.parameters()) for layer in layers)
    h = F.batch_norm(x @ w1.T + b1, None, None, s1, t1, training=True).relu()
    h = F.batch_norm(h @ w2.T + b2, None, None, s2, t2, training=True).relu()
    torch.testing.assert_close(nn.Sequential(*layers)(x), h @ w3.T + b3)


def test_residual_mlp_computes_x_plus_linear_of_relu_of_layernorm():
    torch.manual_seed(0)
    layers = residual_mlp(8, 16, 3, depth=3)
    x = torch.randn(5, 8)
    (w1, b1), (s2, t2, w2, b2), (s3, t3, w3, b3) = (list(layer.parameters()) for layer in layers)
    h = x @ w1.T + b1
    h = h + F.layer_norm(h, (16,), s2, t2).relu() @ w2.T + b2
    expected = F.layer_norm(h, (16,), s3, t3) @ w3.T + b3
    torch.testing.assert_close(nn.Sequential(*layers)(x), expected)
