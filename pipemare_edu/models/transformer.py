"""Transformers as lists of layers, each with exactly one weight-bearing module.

A layer takes and returns a tuple.  What it works on comes first, what it only passes on comes
after; the padding mask is always last:

    (source ids, target ids)        into `transformer`
    (x, target ids, mask)           in the encoder
    (y, memory, mask)               in the decoder: the encoder's last x travels beside its stream
    (x,)                            in `language_model`

A residual branch puts its own tensor in front, (h, x, ...), until Residual adds the two.

The paper's 93 stages, counted here for 6 + 6 layers:

    encoder layer    qkv, out, LayerNorm, ff1, ff2, LayerNorm                           6 x  6
    decoder layer    the same six, and cross-attention: projections, out, LayerNorm     6 x  9
    two embeddings and the output projection                                                 3

so the three projections of cross-attention count once, as those of self-attention do: one packed
weight of (3 width, width), its first third for the queries of the decoder's stream, the rest for
keys and values of the memory.  (That is torch.nn.MultiheadAttention's in_proj_weight.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..checks import whole

Tensors = tuple[Tensor, ...]


def linear(inputs: int, outputs: int) -> nn.Linear:
    """(..., inputs) -> (..., outputs); Xavier initialization, biases zero."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def positions(length: int, like: Tensor) -> Tensor:
    """Sinusoidal absolute positions, (length, width): sin and cos of t / 10000^(2i / width),
    with the width, device and dtype of `like`, (..., width)."""
    width = like.shape[-1]
    rates = 10000 ** (-torch.arange(0, width, 2, device=like.device) / width)
    angles = torch.arange(length, device=like.device)[:, None] * rates  # (length, width / 2)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(like.dtype)


def attend(heads: int, mask: Tensor | None, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(width / heads)) v, per head.

    q (batch, T, width), k and v (batch, S, width) -> (batch, T, width)
    mask  (batch, 1, 1, S), False at keys to leave out; None is causal: no later keys
    """
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
    return mixed.transpose(1, 2).flatten(2)


class Embed(nn.Module):
    """The base of the three embeddings.  pad: the id of padding"""

    def __init__(self, words: int, width: int, dropout: float, pad: int = 0) -> None:
        super().__init__()
        self.words, self.dropout, self.pad = nn.Embedding(words, width), nn.Dropout(dropout), pad
        nn.init.normal_(self.words.weight, std=width**-0.5)

    def vectors(self, ids: Tensor) -> Tensor:
        """Embedding times sqrt(width), plus positions: (batch, T) -> (batch, T, width)."""
        x = self.words(ids)
        return self.dropout(x * x.shape[-1] ** 0.5 + positions(ids.shape[1], x))


class Source(Embed):
    """(source ids, target ids) -> (x, target ids, mask): the mask is False at padding."""

    def forward(self, value: Tensors) -> Tensors:
        source, target = value
        return self.vectors(source), target, (source != self.pad)[:, None, None, :]


class Target(Embed):
    """(memory, target ids, mask) -> (y, memory, mask): the decoder's stream starts."""

    def forward(self, value: Tensors) -> Tensors:
        memory, target, mask = value
        return self.vectors(target), memory, mask


class Text(Embed):
    """ids -> (x,): a language model's stream starts."""

    def forward(self, ids: Tensor) -> Tensors:
        return (self.vectors(ids),)


class Attention(nn.Module):
    """The base of the three attentions, before their output projection: one packed weight."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.heads = linear(width, 3 * width), heads


class SelfAttention(Attention):
    """(x, ..., mask) -> (a, ..., mask): x looks at all of itself but padding."""

    def forward(self, value: Tensors) -> Tensors:
        x, *rest = value
        return attend(self.heads, rest[-1], *self.qkv(x).chunk(3, -1)), *rest


class CausalAttention(Attention):
    """(x, ...) -> (a, ...): x looks at no later position, so at no padding behind its words."""

    def forward(self, value: Tensors) -> Tensors:
        x, *rest = value
        return attend(self.heads, None, *self.qkv(x).chunk(3, -1)), *rest


class CrossAttention(Attention):
    """(y, ..., memory, mask) -> (a, ..., memory, mask): y looks at the memory but its padding."""

    def forward(self, value: Tensors) -> Tensors:
        y, *rest = value
        memory, mask = rest[-2:]
        parts = [y.shape[-1], 2 * y.shape[-1]]  # queries of y, keys and values of memory
        (w_q, w_kv), (b_q, b_kv) = self.qkv.weight.split(parts), self.qkv.bias.split(parts)
        k, v = F.linear(memory, w_kv, b_kv).chunk(2, -1)
        return attend(self.heads, mask, F.linear(y, w_q, b_q), k, v), *rest


class First(nn.Sequential):
    """(x, ...) -> (body(x), ...)."""

    def forward(self, value: Tensors) -> Tensors:
        return super().forward(value[0]), *value[1:]


class Branch(nn.Sequential):
    """(x, ...) -> (h, x, ...): a layer's result in front of what it was given."""

    def forward(self, value: Tensors) -> Tensors:
        return super().forward(value)[0], *value


class Residual(nn.Module):
    """(h, x, ...) -> (x + dropout(body(h)), ...): the branch ends."""

    def __init__(self, body: nn.Module, dropout: float) -> None:
        super().__init__()
        self.body, self.dropout = body, nn.Dropout(dropout)

    def forward(self, value: Tensors) -> Tensors:
        h, x, *rest = value
        return x + self.dropout(self.body(h)), *rest


class Head(nn.Sequential):
    """(x, ...) -> body(x): the output; what was only passed on has arrived."""

    def forward(self, value: Tensors) -> Tensor:
        return super().forward(value[0])


def post_norm(start: nn.Module, width: int, end: nn.Module, dropout: float) -> list[nn.Module]:
    """LayerNorm(x + end(start(x))), in three layers: (x, ...) -> (x, ...)."""
    return [Branch(start), Residual(end, dropout), First(nn.LayerNorm(width))]


def pre_norm(start: nn.Module, width: int, end: nn.Module, dropout: float) -> list[nn.Module]:
    """x + end(start(LayerNorm(x))), in three layers: (x, ...) -> (x, ...)."""
    return [Branch(First(nn.LayerNorm(width))), start, Residual(end, dropout)]


def encoder_layer(width: int, heads: int, hidden: int, dropout: float) -> list[nn.Module]:
    """Self-attention and feed-forward, post-LN, in 6 layers: (x, ..., mask) -> (x, ..., mask)."""
    return [
        *post_norm(SelfAttention(width, heads), width, linear(width, width), dropout),
        *post_norm(feed(width, hidden), width, linear(hidden, width), dropout),
    ]


def decoder_layer(width: int, heads: int, hidden: int, dropout: float) -> list[nn.Module]:
    """Causal self-attention, cross-attention and feed-forward, post-LN, in 9 layers.

    (y, memory, mask) -> (y, memory, mask)
    """
    return [
        *post_norm(CausalAttention(width, heads), width, linear(width, width), dropout),
        *post_norm(CrossAttention(width, heads), width, linear(width, width), dropout),
        *post_norm(feed(width, hidden), width, linear(hidden, width), dropout),
    ]


def feed(width: int, hidden: int) -> First:
    """The first half of the position-wise feed-forward: (x, ...) -> (ReLU(linear(x)), ...)."""
    return First(linear(width, hidden), nn.ReLU())


def transformer(
    source_words: int, target_words: int, width: int = 512, heads: int = 8, hidden: int = 2048,
    encoder: int = 6, decoder: int = 6, dropout: float = 0.1, pad: int = 0,
) -> list[nn.Module]:  # fmt: skip
    """Encoder-decoder (Vaswani et al. 2017), post-LN without final norms: 6 + 6 layers have 93.

    hidden   width of the feed-forward          dropout  on embeddings and at each branch's end
    encoder, decoder  how many layers           pad      the id of padding, at the end of a row

    (source ids (batch, S), target ids (batch, T)) -> (batch, T, target_words)
    """
    check_widths(width, heads)
    size = width, heads, hidden, dropout
    return [
        Source(source_words, width, dropout, pad),
        *(part for _ in range(encoder) for part in encoder_layer(*size)),
        Target(target_words, width, dropout, pad),
        *(part for _ in range(decoder) for part in decoder_layer(*size)),
        Head(linear(width, target_words)),
    ]


def language_model(
    words: int, width: int = 128, heads: int = 4, hidden: int = 512, depth: int = 4,
    dropout: float = 0.1,
) -> list[nn.Module]:  # fmt: skip
    """Decoder-only, pre-LN with a final norm (GPT-2's order): 6 depth + 3 layers.

    ids (batch, T) -> (batch, T, words)
    """
    check_widths(width, heads)
    layers: list[nn.Module] = [Text(words, width, dropout)]
    for _ in range(depth):
        attention = CausalAttention(width, heads)
        layers += pre_norm(attention, width, linear(width, width), dropout)
        layers += pre_norm(feed(width, hidden), width, linear(hidden, width), dropout)
    return [*layers, First(nn.LayerNorm(width)), Head(linear(width, words))]


def check_widths(width: int, heads: int) -> None:
    """ValueError unless `heads` divide `width` and positions find their pairs of sin and cos."""
    whole("width", width, 2)
    whole("heads", heads, 1)
    if width % 2 or width % heads:
        raise ValueError(f"width is {width}: give an even multiple of the {heads} heads")
