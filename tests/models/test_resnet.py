"""The residual convolutional network: sizes, initialization, the skip that travels in tuples."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipemare_edu as pm
from pipemare_edu.models.resnet import basic_resnet, bottleneck_resnet, conv_norm, resnet

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


def weighty(layers):
    """Every module with weights of its own, layer by layer."""
    return [
        [m for m in layer.modules() if next(m.parameters(recurse=False), None) is not None]
        for layer in layers
    ]


@pytest.mark.parametrize(
    "depth, outputs, kind, convolutions, parameters",
    [
        (50, 10, "cifar", 53, 23_520_842),
        (50, 1000, "imagenet", 53, 25_557_032),  # torchvision's resnet50, and so on
        (101, 1000, "imagenet", 104, 44_549_160),
        (152, 1000, "imagenet", 155, 60_192_808),
    ],
)
def test_bottleneck_networks_have_one_weighty_module_a_layer(
    depth, outputs, kind, convolutions, parameters
):
    with torch.device("meta"):
        layers = resnet(depth, outputs, kind)
    modules = weighty(layers)
    assert [len(m) for m in modules] == [1] * (2 * convolutions + 1)
    kinds = [type(m) for (m,) in modules]
    assert kinds.count(nn.Conv2d) == kinds.count(nn.BatchNorm2d) == convolutions
    assert kinds[-1] is nn.Linear
    assert sum(p.numel() for layer in layers for p in layer.parameters()) == parameters


def bottleneck_reference(layers, x, kind, blocks):
    """Convolution, BatchNorm and the skips written out, from the weights in their order."""
    modules = iter([m for (m,) in weighty(layers)])

    def step(x, stride=1):
        return convolved(x, (next(modules), next(modules)), stride)

    x = step(x, 1 if kind == "cifar" else 2).relu()
    if kind == "imagenet":
        x = F.max_pool2d(x, 3, 2, 1)
    for j, count in enumerate(blocks):
        for i in range(count):
            stride = 2 if j > 0 and i == 0 else 1
            h = step(step(step(x).relu(), stride).relu())
            x = (h + (step(x, stride) if i == 0 else x)).relu()
    linear = next(modules)
    assert next(modules, None) is None
    return x.mean((2, 3)) @ linear.weight.T + linear.bias


@pytest.mark.parametrize("kind, size", [("cifar", 16), ("imagenet", 64)])
def test_resnet_50_equals_its_functional_composition(kind, size):
    torch.manual_seed(0)
    layers = resnet(50, 10, kind, width=4)
    net = nn.Sequential(*layers).double()
    x = torch.randn(4, 3, size, size, dtype=torch.float64)
    out, expected = net(x), bottleneck_reference(layers, x, kind, (3, 4, 6, 3))
    assert out.shape == (4, 10)
    torch.testing.assert_close(out, expected)
    weights, direction = list(net.parameters()), torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad(out, weights, direction),
        torch.autograd.grad(expected, weights, direction),
    )


def test_groups_halve_the_image_and_may_have_any_widths():
    layers = bottleneck_resnet(1, (2, 1, 1), (4, 6, 6), 5, expansion=2)
    assert len(layers) == 2 + (8 + 6) + 8 + 8 + 1
    x, shapes = torch.randn(2, 1, 12, 12), []
    for layer in layers:
        x = layer(x)
        shapes += [tuple(x.shape[1:])] if isinstance(x, torch.Tensor) else []
    assert shapes == [(4, 12, 12)] * 2 + [(8, 12, 12)] * 2 + [(12, 6, 6), (12, 3, 3), (5,)]


def test_what_no_resnet_has_is_refused():
    with pytest.raises(ValueError, match="depth is 51: give one of 50, 101, 152"):
        resnet(51)
    with pytest.raises(ValueError, match="stem is 'mnist'"):
        resnet(50, kind="mnist")
