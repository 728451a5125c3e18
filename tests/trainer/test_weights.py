"""What a backward reads, pinned per layer type against gradients worked out by hand.

A stage runs a forward at weights w0, an update moves them to w1, and the backward must then use
forward-time activations and  w1 (newest), w0 (stashed)  or  w1 - tau delta (corrected).  No
autograd in the references: each is the layer's own backward formula with the weights spelled out.
"""

import pytest
import torch
from torch import nn

from pipemare_edu.trainer.flat import Scratch
from pipemare_edu.trainer.stage import Stage
from pipemare_edu.trainer.weights import Corrected, Newest, Stashed

TAU, GAMMA = 3.0, 0.6


def randn(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def linear(x, f, b, g):
    rows, back = x.flatten(0, -2), g.flatten(0, -2)
    return g @ b["weight"], {"weight": back.T @ rows, "bias": back.sum(0)}


def conv(x, f, b, g):
    """3x3, padding 1: sums over shifted images, no convolution routine."""
    n, _, h, w = x.shape
    pad = nn.functional.pad(x, (1, 1, 1, 1))
    dpad = torch.zeros_like(pad)
    dw = torch.zeros_like(f["weight"])
    for i in range(3):
        for j in range(3):
            window = pad[:, :, i : i + h, j : j + w]
            dw[:, :, i, j] = torch.einsum("nohw,nchw->oc", g, window)
            dpad[:, :, i : i + h, j : j + w] += torch.einsum(
                "nohw,oc->nchw", g, b["weight"][:, :, i, j]
            )
    return dpad[:, :, 1:-1, 1:-1], {"weight": dw, "bias": g.sum((0, 2, 3))}


def normalized(dims, groups=None):
    """Batch, layer and group norm: one formula over the dimensions that are averaged."""

    def backward(x, f, b, g):
        shape = [1] * x.ndim
        shape[1 if dims != (-1,) else -1] = -1
        affine = tuple(d for d in range(x.ndim) if shape[d] == 1)
        fold = (lambda t: t.view(len(t), groups, -1)) if groups else (lambda t: t)
        over = (-1,) if groups else dims
        z = fold(x)
        mean, var = z.mean(over, keepdim=True), z.var(over, unbiased=False, keepdim=True)
        z = (z - mean) / (var + 1e-5).sqrt()
        gz = fold(g * b["weight"].view(shape))
        dz = gz - gz.mean(over, keepdim=True) - z * (gz * z).mean(over, keepdim=True)
        dx = (dz / (var + 1e-5).sqrt()).view(x.shape)
        z = z.view(x.shape)
        return dx, {"weight": (g * z).sum(affine), "bias": g.sum(affine)}

    return backward


def embedding(x, f, b, g):
    dw = torch.zeros_like(f["weight"])
    dw.index_add_(0, x.flatten(), g.flatten(0, -2))
    return None, {"weight": dw}


def attention(x, f, b, g):
    """Two heads over (batch, time, 6): projections, softmax, projection."""
    heads, d = 2, 3

    def split(t):
        return t.view(*t.shape[:2], heads, d).transpose(1, 2)

    def join(t):
        return t.transpose(1, 2).flatten(2)

    q, k, v = (x @ f["in_proj_weight"].T + f["in_proj_bias"]).chunk(3, -1)
    q, k, v = split(q), split(k), split(v)
    a = (q @ k.transpose(-1, -2) / d**0.5).softmax(-1)
    o = join(a @ v)
    do, out = linear(o, {}, {"weight": b["out_proj.weight"]}, g)
    do = split(do)
    dv, da = a.transpose(-1, -2) @ do, do @ v.transpose(-1, -2)
    ds = a * (da - (da * a).sum(-1, keepdim=True)) / d**0.5
    dqkv = torch.cat([join(ds @ k), join(ds.transpose(-1, -2) @ q), join(dv)], -1)
    dx, proj = linear(x, {}, {"weight": b["in_proj_weight"]}, dqkv)
    names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    return dx, dict(zip(names, (*proj.values(), *out.values()), strict=True))


def gru(x, f, b, g):
    """Backpropagation through time of one layer, batch first, hidden size 4."""
    wi, wh, bi, bh = (f[f"{n}_l0"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, tape = torch.zeros(len(x), 4, dtype=x.dtype), []
    for t in range(x.shape[1]):
        i, s = (x[:, t] @ wi.T + bi).chunk(3, -1), (h @ wh.T + bh).chunk(3, -1)
        r, z = (i[0] + s[0]).sigmoid(), (i[1] + s[1]).sigmoid()
        n = (i[2] + r * s[2]).tanh()
        tape.append((h, r, z, n, s[2]))
        h = (1 - z) * n + z * h
    dx, dh = torch.zeros_like(x), torch.zeros_like(h)
    grads = [torch.zeros_like(p) for p in (wi, wh, bi, bh)]
    for t in reversed(range(x.shape[1])):
        before, r, z, n, sn = tape[t]
        dh = dh + g[:, t]
        dn = dh * (1 - z) * (1 - n**2)
        dz = dh * (before - n) * z * (1 - z)
        dr = dn * sn * r * (1 - r)
        di, ds = torch.cat([dr, dz, dn], -1), torch.cat([dr, dz, dn * r], -1)
        for grad, part in zip(
            grads, (di.T @ x[:, t], ds.T @ before, di.sum(0), ds.sum(0)), strict=True
        ):
            grad += part
        dx[:, t] = di @ b["weight_ih_l0"]
        dh = dh * z + ds @ b["weight_hh_l0"]
    return dx, dict(
        zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), grads, strict=True)
    )


class SelfAttention(nn.Module):
    """MultiheadAttention of a sequence over itself, under the parameter names of the layer."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(3, 4, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


LAYERS = {
    "Linear 2-D": (lambda: nn.Linear(4, 5), randn(6, 4), linear),
    "Linear 3-D": (lambda: nn.Linear(4, 5), randn(2, 3, 4), linear),
    "Conv2d": (lambda: nn.Conv2d(2, 3, 3, padding=1), randn(2, 2, 5, 4), conv),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), randn(6, 4), normalized((0,))),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), randn(4, 3, 2, 2), normalized((0, 2, 3))),
    "LayerNorm": (lambda: nn.LayerNorm(5), randn(2, 3, 5), normalized((-1,))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), randn(3, 4, 2, 3), normalized((1, 2, 3), groups=2)),
    "Embedding": (lambda: nn.Embedding(7, 3), torch.tensor([[1, 5, 1], [0, 6, 2]]), embedding),
    "MultiheadAttention": (SelfAttention, randn(2, 3, 6), attention),
    "GRU": (Recurrent, randn(2, 3, 3), gru),
}
POLICIES = {
    "newest": (Newest, lambda w0, w1: w1),
    "stashed": (Stashed, lambda w0, w1: w0),
    "corrected": (
        lambda flat: Corrected(flat, TAU, GAMMA),
        lambda w0, w1: w1 - TAU * (1 - GAMMA) * (w1 - w0),
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_the_hand_computed_ones(name, policy):
    build, x, by_hand = LAYERS[name]
    make, backward_weights = POLICIES[policy]
    layer = build().double()
    own = getattr(layer, "inner", layer)
    stage = Stage(0, [layer], 0, make, Scratch(), seed=0)
    [flat] = stage.flats
    with torch.no_grad():
        flat.weights.copy_(randn(len(flat.weights), seed=1))
    if policy == "corrected":
        flat.policy.average.copy_(flat.weights)
    w0 = {n: p.detach().clone() for n, p in own.named_parameters()}

    source = x.clone().requires_grad_() if x.is_floating_point() else x
    output = stage.forward(0, source, asynchronous=True)
    stage.before_update()
    with torch.no_grad():
        flat.weights.copy_(randn(len(flat.weights), seed=2))
    stage.version += 1
    w1 = {n: p.detach().clone() for n, p in own.named_parameters()}
    g = randn(*output.shape, seed=3)
    [dx] = stage.backward(0, (g,), asynchronous=True)

    read = {n: backward_weights(w0[n], w1[n]) for n in w0}
    want_dx, want = by_hand(x, w0, read, g)
    for n, p in own.named_parameters():
        torch.testing.assert_close(p.grad, want[n], rtol=1e-10, atol=1e-10)
        assert torch.equal(p, w1[n]), "the newest weights must be back, to the bit"
    if want_dx is None:
        assert dx is None
    else:
        torch.testing.assert_close(dx, want_dx, rtol=1e-10, atol=1e-10)
    assert set(want) == set(w0)


def test_stash_keeps_only_versions_in_flight():
    layer = nn.Linear(2, 2)
    stage = Stage(0, [layer], 0, Stashed, Scratch(), seed=0)
    [flat] = stage.flats
    held = []
    for m in range(6):  # depth 2, N = 1
        stage.forward(m, torch.randn(1, 2), asynchronous=True)
        if m < 2:
            continue
        stage.backward(m - 2, (torch.randn(1, 2),), asynchronous=True)
        stage.before_update()
        stage.version += 1
        held.append(sorted(map(int, flat.policy.held())))
    assert held == [[0], [0, 1], [1, 2], [2, 3]]
    assert flat.policy.peak == 2 * flat.weights.nbytes


def test_the_copy_that_a_backward_puts_aside_becomes_the_stash():
    stage = Stage(0, [nn.Linear(2, 2)], 0, Stashed, Scratch(), seed=0)
    policy = stage.flats[0].policy
    for m in range(3):
        stage.forward(m, torch.randn(1, 2), asynchronous=True)
        if m:
            stage.backward(m - 1, (torch.randn(1, 2),), asynchronous=True)
            put_aside = policy.stash.get(stage.version)
            stage.before_update()
            assert m == 1 or policy.stash[stage.version] is put_aside
            stage.flats[0].weights.add_(1.0)
            stage.version += 1
    stage.backward(2, (torch.randn(1, 2),), asynchronous=True)
    stage.before_update()
    assert not policy.stash  # nobody in flight needs a version any more


def test_nothing_put_aside_outlives_a_reset():
    stage = Stage(0, [nn.Linear(2, 2)], 0, Stashed, Scratch(), seed=0)
    [flat] = stage.flats
    for m in range(2):
        stage.forward(m, torch.randn(1, 2), asynchronous=True)
        stage.before_update()
        stage.version += 1
        stage.forward(2 + m, torch.randn(1, 2), asynchronous=True)
        stage.backward(m, (torch.randn(1, 2),), asynchronous=True)  # puts aside `version`
    assert stage.version in flat.policy.stash
    stage.reset(stage.version)
    flat.weights.zero_()  # as load_state_dict would
    assert not flat.policy.stash


def test_a_copy_of_the_weights_is_put_back_when_a_backward_raises():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("bad backward")

    class Layer(nn.Linear):
        def forward(self, x):
            return super().forward(Bad.apply(x))

    stage = Stage(0, [Layer(2, 2)], 0, lambda w: Corrected(w, TAU, GAMMA), Scratch(), seed=0)
    [flat] = stage.flats
    flat.policy.average.zero_()
    before = flat.weights.clone()
    stage.forward(0, torch.randn(1, 2, requires_grad=True), asynchronous=True)
    with pytest.raises(RuntimeError, match="bad backward"):
        stage.backward(0, (torch.randn(1, 2),), asynchronous=True)
    assert torch.equal(flat.weights, before)


def test_delta_is_the_papers_recursion():
    w = randn(5, seed=7)
    policy = Corrected(w, TAU, GAMMA)
    delta = torch.zeros_like(w)
    for k in range(20):
        old = w.clone()
        policy.before_update(k, in_use=lambda: False)
        w += 0.1 * randn(5, seed=10 + k)
        delta = GAMMA * delta + (1 - GAMMA) * (w - old)
    torch.testing.assert_close(policy.delta, delta, rtol=1e-10, atol=1e-12)
    policy.newest = read = w.clone()
    policy.write(w, read=0)
    torch.testing.assert_close(read, w - TAU * delta, rtol=1e-10, atol=1e-12)
