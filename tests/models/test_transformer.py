"""The Transformers: their sizes, their numbers against torch's own layers, and their masks."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from pipemare_edu.models.transformer import (
    CrossAttention,
    Residual,
    Text,
    attend,
    decoder_layer,
    encoder_layer,
    language_model,
    positions,
    transformer,
)

WIDTH, HEADS, HIDDEN = 8, 2, 12
SIZES = dict(d_model=WIDTH, nhead=HEADS, dim_feedforward=HIDDEN, dropout=0.0, batch_first=True)
KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()  # 3 sources of 5


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def bearers(layer):
    return [m for m in layer.modules() if next(m.parameters(recurse=False), None) is not None]


def parameters(layers):
    return sum(p.numel() for layer in layers for p in layer.parameters())


def randomized(layers):
    """In float64, with biases and LayerNorms that are neither zero nor one."""
    for layer in layers:
        for p in layer.double().parameters():
            nn.init.normal_(p, std=0.5)
    return nn.Sequential(*layers)


def copied(layers, reference):
    """torch's layer with our weights."""
    ours = [m for layer in layers for m in bearers(layer)]
    names = ["self_attn.in_proj_", "self_attn.out_proj.", "norm1."]
    if hasattr(reference, "multihead_attn"):
        names += ["multihead_attn.in_proj_", "multihead_attn.out_proj.", "norm2."]
    names += ["linear1.", "linear2.", "norm3." if len(names) > 3 else "norm2."]
    if getattr(reference, "norm_first", False):
        names = [names[j] for j in (2, 0, 1, 5, 3, 4)]
    assert len(names) == len(ours)
    state = {n + kind: getattr(m, kind) for n, m in zip(names, ours, strict=True)
             for kind in ("weight", "bias")}  # fmt: skip
    reference.double().load_state_dict(state)
    return reference.train()  # eval takes a fast path that has no gradients


def later(length):
    """torch's causal mask: True where attention is forbidden."""
    return torch.ones(length, length).triu(1).bool()


def stream(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def assert_same(ours, expected, inputs):
    assert_close(ours, expected)
    direction = torch.randn_like(expected)
    assert_close(
        torch.autograd.grad(ours, inputs, direction),
        torch.autograd.grad(expected, inputs, direction),
    )


def test_six_and_six_layers_are_93_modules_of_one_weight_bearer_each():
    layers = transformer(11, 13, WIDTH, HEADS, HIDDEN)
    assert len(layers) == 93 == 6 * 6 + 6 * 9 + 3
    assert [len(bearers(layer)) for layer in layers] == [1] * 93


def test_parameters_are_torch_s_without_its_final_norms():
    reference = nn.Transformer(WIDTH, HEADS, 6, 6, HIDDEN, batch_first=True)
    expected = sum(p.numel() for p in reference.parameters()) - 2 * 2 * WIDTH
    words = 11 * WIDTH + 13 * WIDTH + (13 * WIDTH + 13)
    assert parameters(transformer(11, 13, WIDTH, HEADS, HIDDEN)) == expected + words


def test_default_size_is_the_base_model_s():
    with torch.device("meta"):
        layers = transformer(37000, 37000)
        blocks = nn.Transformer(batch_first=True)  # 512 wide, 8 heads, 2048 in the feed-forward
    expected = sum(p.numel() for p in blocks.parameters()) - 2 * 2 * 512
    assert parameters(layers) == expected + 3 * 37000 * 512 + 37000


def test_encoder_layer_is_torch_s():
    ours = randomized(encoder_layer(WIDTH, HEADS, HIDDEN, dropout=0.0))
    reference = copied(ours, nn.TransformerEncoderLayer(**SIZES))
    x = stream(3, 5, WIDTH)
    y, target, mask = ours((x, "target", KEEP[:, None, None]))
    assert target == "target" and mask.shape == (3, 1, 1, 5)
    assert_same(y, reference(x, src_key_padding_mask=~KEEP), [x])


def test_decoder_layer_is_torch_s():
    ours = randomized(decoder_layer(WIDTH, HEADS, HIDDEN, dropout=0.0))
    reference = copied(ours, nn.TransformerDecoderLayer(**SIZES))
    y, memory = stream(3, 4, WIDTH), stream(3, 5, WIDTH)
    out, passed, _ = ours((y, memory, KEEP[:, None, None]))
    assert passed is memory
    expected = reference(y, memory, tgt_mask=later(4), memory_key_padding_mask=~KEEP)
    assert_same(out, expected, [y, memory])


def test_pre_norm_layer_is_torch_s():
    layers = randomized(language_model(7, WIDTH, HEADS, HIDDEN, depth=1, dropout=0.0))[1:7]
    sizes = SIZES | {"norm_first": True}
    reference = copied(layers, nn.TransformerEncoderLayer(**sizes))
    x = stream(3, 5, WIDTH)
    assert_same(layers((x,))[0], reference(x, src_mask=later(5)), [x])


def test_whole_network_is_torch_s_stack_between_embeddings_and_projection():
    net = randomized(transformer(11, 13, WIDTH, HEADS, HIDDEN, 2, 3, dropout=0.0))
    source, target = torch.randint(1, 11, (3, 5)) * KEEP, torch.randint(1, 13, (3, 4))

    def embedded(weight, ids):
        return weight[ids] * math.sqrt(WIDTH) + positions(ids.shape[1], weight)

    memory = embedded(net[0].words.weight, source)
    for j in range(2):
        layer = nn.TransformerEncoderLayer(**SIZES)
        memory = copied(net[1 + 6 * j : 7 + 6 * j], layer)(memory, src_key_padding_mask=~KEEP)
    y = embedded(net[13].words.weight, target)
    for j in range(3):
        layer = nn.TransformerDecoderLayer(**SIZES)
        layer = copied(net[14 + 9 * j : 23 + 9 * j], layer)
        y = layer(y, memory, tgt_mask=later(4), memory_key_padding_mask=~KEEP)
    assert_close(net((source, target)), y @ net[-1][0].weight.T + net[-1][0].bias)


def test_positions_are_sines_and_cosines_of_geometric_wavelengths():
    table = positions(50, torch.empty(1, 6, dtype=torch.float64))
    assert table.shape == (50, 6) and table.dtype == torch.float64
    for t, i in ((0, 0), (1, 0), (7, 1), (49, 2)):
        angle = t / 10000 ** (2 * i / 6)
        assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert table[t, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_padding_changes_nothing_and_later_words_change_nothing_earlier():
    net = nn.Sequential(*transformer(11, 13, WIDTH, HEADS, HIDDEN, 2, 2, dropout=0.0)).double()
    source, target = torch.randint(1, 11, (3, 5)), torch.randint(1, 13, (3, 4))
    out = net((source, target))
    assert out.shape == (3, 4, 13)
    padded = nn.functional.pad(source, (0, 2)), nn.functional.pad(target, (0, 3))
    assert_close(net(padded)[:, :4], out)
    other = target.clone()
    other[:, 2] = other[:, 2] % 12 + 1
    changed = net((source, other))
    assert_close(changed[:, :2], out[:, :2])
    assert not torch.isclose(changed[:, 2:], out[:, 2:]).all(-1).any()


def test_padding_has_an_id_of_its_own():
    value = torch.tensor([[3, 0, 2]]), torch.tensor([[1]])
    layer = transformer(4, 4, WIDTH, HEADS, HIDDEN, 1, 1, pad=2)[0]
    assert layer(value)[2].tolist() == [[[[True, True, False]]]]


def test_dropout_stands_on_embeddings_and_at_the_end_of_every_branch():
    net = nn.Sequential(*transformer(11, 13, WIDTH, HEADS, HIDDEN, dropout=0.3))
    drops = [m.p for m in net.modules() if isinstance(m, nn.Dropout)]
    assert drops == [0.3] * (2 + 6 * 2 + 6 * 3)
    value = torch.randint(1, 11, (2, 5)), torch.randint(1, 13, (2, 4))
    assert not torch.equal(net(value), net(value))
    net.eval()
    assert torch.equal(net(value), net(value))
    h, x = torch.randn(2, 3, WIDTH)
    assert torch.equal(Residual(nn.Linear(WIDTH, WIDTH), dropout=1.0)((h, x))[0], x)
    assert Text(11, WIDTH, dropout=1.0)(value[0])[0].eq(0).all()


def test_language_model_is_causal_and_of_the_expected_size():
    layers = language_model(7, WIDTH, HEADS, HIDDEN, depth=3, dropout=0.0)
    assert len(layers) == 6 * 3 + 3
    assert [len(bearers(layer)) for layer in layers] == [1] * len(layers)
    block = nn.TransformerEncoderLayer(**SIZES)
    inner = 3 * sum(p.numel() for p in block.parameters()) + 2 * WIDTH
    assert parameters(layers) == inner + 7 * WIDTH + (7 * WIDTH + 7)
    net, ids = nn.Sequential(*layers), torch.randint(0, 7, (2, 5))
    out = net(ids)
    assert out.shape == (2, 5, 7)
    other = ids.clone()
    other[:, 3] = (ids[:, 3] + 1) % 7
    assert_close(net(other)[:, :3], out[:, :3])
    assert not torch.isclose(net(other)[:, 3:], out[:, 3:]).all(-1).any()


def test_cross_attention_s_backward_reads_weights_written_after_its_forward():
    """Its projections are views of one packed weight: the trainer writes that in place."""
    layer = CrossAttention(WIDTH, HEADS).double()
    y, memory, mask = stream(3, 4, WIDTH), stream(3, 5, WIDTH), KEEP[:, None, None]
    out = layer((y, memory, mask))[0]
    w, b = layer.qkv.weight.detach().clone(), layer.qkv.bias.detach()
    projected = [y @ w[:WIDTH].T + b[:WIDTH]]
    projected += (memory @ w[WIDTH:].T + b[WIDTH:]).chunk(2, -1)
    leaves = [t.detach().requires_grad_() for t in projected]
    direction = torch.randn_like(out)
    dq, dk, dv = torch.autograd.grad(attend(HEADS, mask, *leaves), leaves, direction)
    layer.qkv.weight.data.normal_()
    grads = torch.autograd.grad(out, [y, memory], direction)
    new = layer.qkv.weight.detach()
    assert_close(grads, (dq @ new[:WIDTH], torch.cat([dk, dv], -1) @ new[WIDTH:]))


@pytest.mark.parametrize("width, heads", [(9, 3), (8, 3), (8, 0), (0, 1)])
def test_widths_that_cannot_work_are_refused(width, heads):
    for network in (
        lambda: transformer(5, 5, width, heads),
        lambda: language_model(5, width, heads),
    ):
        with pytest.raises(ValueError, match="width|heads"):
            network()
