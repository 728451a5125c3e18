"""The residual convolutional network: sizes, initialization, the skip that travels in tuples."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipemare_edu as pm
from pipemare_edu.models.resnet import basic_resnet, conv_norm

WIDTHS = (4, 4, 6)  # a block that keeps its shape, one that halves, one that halves and widens
STRIDES = (1, 2, 2)


@pytest.fixture
def layers():
    torch.manual_seed(0)
    return basic_resnet(channels=2, widths=WIDTHS, outputs=3)


def convolved(x, pair, stride=1):
    """Convolution and BatchNorm in training, from their parameters alone."""
    conv, norm = pair
    y = F.conv2d(x, conv.weight, stride=stride, padding=conv.weight.shape[-1] // 2)
    return F.batch_norm(y, None, None, norm.weight, norm.bias, training=True)


def reference(layers, x):
    """The whole network with its skips as local variables: nothing travels."""
    stem, *middle, head = layers
    x = convolved(x, stem[:2]).relu()
    for branch, merge, stride in zip(middle[::2], middle[1::2], STRIDES, strict=True):
        h = convolved(convolved(x, branch.body, stride).relu(), merge.body)
        plain = isinstance(merge.shortcut, nn.Identity)
        x = (h + (x if plain else convolved(x, merge.shortcut, stride))).relu()
    return F.linear(x.mean((2, 3)), head[-1].weight, head[-1].bias)


def test_a_stem_two_layers_a_block_and_a_head(layers):
    assert len(layers) == 1 + 2 * len(WIDTHS) + 1


def test_parameters_are_those_of_the_shapes(layers):
    def pair(inputs, outputs, size=3):  # convolution without bias, BatchNorm's scale and shift
        return inputs * outputs * size**2 + 2 * outputs

    blocks = 2 * pair(4, 4) + (2 * pair(4, 4) + pair(4, 4, 1)) + pair(4, 6) + pair(6, 6)
    expected = pair(2, 4) + blocks + pair(4, 6, 1) + (6 * 3 + 3)
    assert sum(p.numel() for layer in layers for p in layer.parameters()) == expected


def test_image_is_halved_at_every_block_but_the_first(layers):
    x = torch.randn(5, 2, 8, 8)
    shapes = []
    for layer in layers:
        x = layer(x)
        shapes.append([tuple(t.shape[1:]) for t in (x if isinstance(x, tuple) else (x,))])
    assert shapes == [
        [(4, 8, 8)],
        [(4, 8, 8), (4, 8, 8)],
        [(4, 8, 8)],
        [(4, 4, 4), (4, 8, 8)],
        [(4, 4, 4)],
        [(6, 2, 2), (4, 4, 4)],
        [(6, 2, 2)],
        [(3,)],
    ]


def test_output_and_gradients_equal_the_functional_reference(layers):
    x = torch.randn(5, 2, 8, 8)
    weights = [p for layer in layers for p in layer.parameters()]
    net = nn.Sequential(*layers)
    out, expected = net(x), reference(layers, x)
    torch.testing.assert_close(out, expected)
    direction = torch.randn(5, 3)
    torch.testing.assert_close(
        torch.autograd.grad(out, weights, direction),
        torch.autograd.grad(expected, weights, direction),
        rtol=1e-4,
        atol=1e-5,
    )


def test_skip_crosses_stages_with_the_reference_s_gradient(layers):
    """One SGD step of the pipeline, every layer a stage of its own, against the reference."""
    x, target = torch.randn(6, 2, 8, 8), torch.randint(0, 3, (6,))
    weights = [p for layer in layers for p in layer.parameters()]
    before = [p.detach().clone() for p in weights]
    grads = torch.autograd.grad(F.cross_entropy(reference(layers, x), target), weights)
    pm.Trainer(
        layers,
        F.cross_entropy,
        lambda named: torch.optim.SGD(named, lr=0.1),
        method="gpipe",
        stages=len(layers),
    ).fit([(x, target)], steps=1)
    for p, w, g in zip((p for m in layers for p in m.parameters()), before, grads, strict=True):
        torch.testing.assert_close(p.detach(), w - 0.1 * g, rtol=1e-4, atol=1e-5)


def test_kaiming_initialization_keeps_the_variance_of_a_relu_s_gradient():
    torch.manual_seed(0)
    conv, norm = conv_norm(64, 128, size=3)
    # fan-out, gain sqrt 2; 73,728 draws estimate the deviation to 0.3 % (one sigma).
    assert conv.weight.std().item() == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.02)
    assert (
        abs(conv.weight.mean().item()) < 4 * conv.weight.std().item() / conv.weight.numel() ** 0.5
    )
    assert conv.bias is None
    assert norm.weight.eq(1).all() and norm.bias.eq(0).all()
