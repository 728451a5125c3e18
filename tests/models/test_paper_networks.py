"""The paper's two networks at the paper's stage counts: ResNet-50 at 107, the Transformer at 93.

Every method trains them, and a synchronous step is plain PyTorch's, to rounding in float64.
"""

import copy
import functools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipemare_edu as pm
from pipemare_edu.models.resnet import resnet
from pipemare_edu.models.transformer import transformer
from pipemare_edu.trainer.randomness import key
from pipemare_edu.trainer.registry import Fixes, method_names, named

SEED, MICROBATCHES = 5, 2


@pytest.fixture(autouse=True)
def one_thread():
    """As the trainer computes; two threads wait for each other where something else runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Words:
    """Mean cross-entropy over the target words that are not padding (id 0)."""

    def count(self, target):
        return target.ne(0).sum()

    def __call__(self, output, target):
        return F.cross_entropy(output.transpose(1, 2), target, ignore_index=0)


def images():
    torch.manual_seed(0)
    x, classes = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
    return resnet(50), F.cross_entropy, x, classes


def sentences():
    """Four sentences of uneven lengths, so that microbatches count unequally."""
    torch.manual_seed(0)
    layers = transformer(11, 13, width=8, heads=2, hidden=16, dropout=0.1)
    source, target = torch.randint(1, 11, (4, 6)), torch.randint(1, 13, (4, 5))
    for row, length in enumerate((6, 2, 4, 5)):
        source[row, length:] = 0
        target[row, length - 1 :] = 0
    return layers, Words(), (source, F.pad(target, (1, -1), value=1)), target


MAKERS = {107: images, 93: sentences}
both = pytest.mark.parametrize("stages", MAKERS)


@functools.cache
def built(stages):
    return MAKERS[stages]()


def network(stages):
    """(layers, loss, inputs, targets), the layers a copy of their own."""
    return copy.deepcopy(built(stages))


def trained(layers, loss, batch, method, stages, steps, rate):
    trainer = pm.Trainer(
        layers,
        loss,
        lambda pairs: torch.optim.SGD(pairs, lr=rate),
        method=method,
        stages=stages,
        microbatches=MICROBATCHES,
        seed=SEED,
    )
    return trainer.fit([batch], steps=steps)


@both
@pytest.mark.parametrize("name", method_names())
def test_every_method_trains_the_network_at_the_paper_s_stage_count(stages, name):
    layers, loss, inputs, target = network(stages)
    assert len(layers) == stages
    before = [p.detach().clone() for layer in layers for p in layer.parameters()]
    method = named(name, Fixes(t1=4, t2=0.5, t3=1))
    run = trained(layers, loss, (inputs, target), method, stages, steps=2, rate=1e-3)
    assert run.status == "done" and len(run.losses) == 2
    assert all(map(math.isfinite, run.losses))
    after = [p for layer in layers for p in layer.parameters()]
    for w, p in zip(before, after, strict=True):
        assert p.isfinite().all()
        assert not torch.equal(w, p)


def pieces(value):
    if isinstance(value, tuple):
        return list(zip(*(x.tensor_split(MICROBATCHES) for x in value), strict=True))
    return value.tensor_split(MICROBATCHES)


def plain(layers, loss, inputs, target):
    """Gradient accumulation in PyTorch, with the trainer's dropout masks."""
    count = getattr(loss, "count", len)
    for m, (x, t) in enumerate(zip(pieces(inputs), pieces(target), strict=True)):
        for number, layer in enumerate(layers):
            torch.manual_seed(key(SEED, number, m))
            x = layer(x)
        (loss(x, t) * (int(count(t)) / int(count(target)))).backward()


@both
def test_a_synchronous_step_is_plain_pytorch_s(stages):
    layers, loss, inputs, target = network(stages)
    for layer in layers:
        layer.double()
    inputs = inputs.double() if isinstance(inputs, torch.Tensor) else inputs
    expected = copy.deepcopy(layers)
    plain(expected, loss, inputs, target)
    rate = 0.01
    with torch.no_grad():
        for p in nn.Sequential(*expected).parameters():
            p -= rate * p.grad
    expected = nn.Sequential(*expected).state_dict()
    for method, count in (("gpipe", stages), ("1f1b", 8)):
        ours = copy.deepcopy(layers)
        trained(ours, loss, (inputs, target), method, count, steps=1, rate=rate)
        torch.testing.assert_close(
            dict(nn.Sequential(*ours).state_dict()), dict(expected), rtol=1e-12, atol=1e-14
        )
