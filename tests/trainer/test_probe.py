"""What newest-weight semantics cannot reach is seen in a stage's first forward, where it can be."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import pipemare_edu as pm


class Fn(nn.Module):
    """x -> f(weight, x) with a 3x3 weight."""

    def __init__(self, f):
        super().__init__()
        self.weight, self.f = nn.Parameter(torch.eye(3)), f
        self.register_buffer("mask", torch.ones(3, 3))

    def forward(self, x):
        return self.f(self.weight, x, self.mask)


class Positions(nn.Module):
    """Token and learned position embeddings, the second looked up with a constant."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(5, 3), nn.Embedding(4, 3)

    def forward(self, x):
        return self.words(x) + self.places(torch.arange(x.shape[1]))


REACHED = {
    "linear": nn.Linear(3, 3),
    "transposed by hand": Fn(lambda w, x, m: x @ w.T),
    "one at a time": Fn(lambda w, x, m: w.sum(0) * 0 + x @ w),
    "batch norm": nn.BatchNorm1d(3),
    "gru": nn.GRU(3, 3),
    "a loss that adds": Fn(lambda w, x, m: x + w[0]),
}
NOT_REACHED = {
    "square": Fn(lambda w, x, m: x @ w**2),
    "mask": Fn(lambda w, x, m: x @ (w * m)),
    "cast": Fn(lambda w, x, m: (x.double() @ w.double()).float()),
    "product": Fn(lambda w, x, m: (w[0] * w[1]) * x),
    "softmax": Fn(lambda w, x, m: x * w[0].softmax(0)),
    "weight norm": parametrizations.weight_norm(nn.Linear(3, 3)),
}


class First(nn.Module):
    """The first of a tuple: what a recurrent layer returns."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        return y[0] if isinstance(y, tuple) else y


def fit(layer, method, x=None):
    x = torch.randn(4, 3) if x is None else x
    trainer = pm.Trainer(
        [nn.Linear(3, 3) if x.is_floating_point() else nn.Identity(), First(layer)],
        lambda output, target: output.square().mean(),
        lambda named: torch.optim.SGD(named, lr=0.01),
        method,
        stages=2,
    )
    return trainer.fit([(x, x)], steps=2)


@pytest.mark.parametrize("name", REACHED)
def test_no_warning_where_the_swap_reaches(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pm.WeightSemanticsWarning)
        fit(REACHED[name], pm.PipeMare())


@pytest.mark.parametrize("name", NOT_REACHED)
def test_a_warning_names_stage_and_parameter(name):
    with pytest.warns(pm.WeightSemanticsWarning, match=r"stage 2: .*parameter '1\.inner\.") as seen:
        fit(NOT_REACHED[name], pm.PipeMare(t2=0.1))
    assert len(seen) <= 2  # once per parameter, not once per step


@pytest.mark.parametrize("method", [pm.GPipe(), pm.PipeDream()])
def test_no_warning_where_forward_weights_are_wanted(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pm.WeightSemanticsWarning)
        fit(NOT_REACHED["square"], method)


def test_embeddings_of_constants_are_no_trouble():
    with warnings.catch_warnings():
        warnings.simplefilter("error", pm.WeightSemanticsWarning)
        fit(Positions(), pm.PipeMare(), torch.randint(0, 5, (4, 4)))


def test_autocast_is_refused_in_asynchronous_methods():
    class Cast(nn.Linear):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x).float()

    for method in (pm.PipeMare(), pm.PipeDream()):
        with pytest.raises(pm.StageError, match="autocast") as caught:
            fit(Cast(3, 3), method)
        assert (caught.value.stage, caught.value.operation) == (1, "F")
        with (
            torch.autocast("cpu", dtype=torch.bfloat16),
            pytest.raises(pm.StageError, match="autoc"),
        ):
            fit(nn.Linear(3, 3), method)
    assert fit(Cast(3, 3), pm.GPipe()).status == "done"


def test_the_probe_changes_no_bits():
    torch.manual_seed(0)
    x, layer = torch.randn(4, 3), nn.Linear(3, 3)
    y = layer(x).square().mean()
    y.backward()
    with torch.no_grad():
        expected = layer.weight - 0.01 * layer.weight.grad
    layer.zero_grad()
    trainer = pm.Trainer(
        [layer],
        lambda o, t: o.square().mean(),
        lambda n: torch.optim.SGD(n, lr=0.01),
        pm.PipeMare(),
    )
    trainer.fit([(x, x)])
    assert torch.equal(layer.weight, expected)
