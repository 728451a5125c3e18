"""Greedy and beam search: from a network that rates the next word to whole sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from .transformer import Target

Rating = Callable[[Tensor], Tensor]  # ids (hypotheses, t) -> logits of the next word


def search(
    rate: Rating, rows: int, start: int, end: int, longest: int,
    beam: int = 1, penalty: float = 0.6, pad: int = 0, device: torch.device | None = None,
) -> Tensor:  # fmt: skip
    """The likeliest sentence of each row that a beam finds; beam 1 is greedy search.

    rate     (rows * beam, t) ids of all hypotheses, those of row r from r * beam on -> logits of
             their next words, (rows * beam, words)
    longest  words after `start`, `end` included
    penalty  of the length, when the last hypotheses are compared: log-probability over
             ((5 + length) / 6)^penalty (Wu et al. 2016)

    (rows, at most longest) ids after `start`, up to and with `end`, then `pad`
    """
    ids = torch.full((rows * beam, 1), start, device=device)
    scores = torch.full((rows, beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses of a row begin alike, so only one of them counts
    ended = torch.zeros(rows, beam, dtype=torch.bool, device=device)
    for _ in range(longest):
        steps = rate(ids).log_softmax(-1).unflatten(0, (rows, beam))  # (rows, beam, V)
        steps[ended] = -torch.inf  # what has ended goes on as padding, at no cost
        steps[..., pad] = torch.where(ended, 0.0, -torch.inf)
        scores, chosen = (scores[..., None] + steps).flatten(1).topk(beam)  # (rows, beam)
        parent, word = chosen // steps.shape[-1], chosen % steps.shape[-1]
        grown = ids.unflatten(0, (rows, beam)).take_along_dim(parent[..., None], 1)
        ids = torch.cat([grown, word[..., None]], -1).flatten(0, 1)
        ended = ended.gather(1, parent) | (word == end)
        if ended.all():
            break
    sentences = ids[:, 1:].unflatten(0, (rows, beam))
    lengths = (sentences != pad).sum(-1)
    best = (scores / ((5 + lengths) / 6) ** penalty).argmax(1)
    return sentences[torch.arange(rows, device=device), best]


def translate(
    layers: Sequence[nn.Module], source: Tensor, start: int, end: int, longest: int, beam: int = 1
) -> Tensor:
    """What a `transformer`'s layers make of source ids (rows, S): `search`'s ids.

    The encoder runs once.  Layers compute as in evaluation and are left as they were.
    ValueError for layers without a decoder.
    """
    first = next((j for j, layer in enumerate(layers) if isinstance(layer, Target)), None)
    if first is None:
        raise ValueError("these layers have no decoder that translates: give a transformer's")
    device = next(layers[0].parameters()).device
    source = source.to(device)
    with torch.no_grad(), evaluating(layers):
        memory, _, mask = through(layers[:first], (source, source))
        memory, mask = memory.repeat_interleave(beam, 0), mask.repeat_interleave(beam, 0)

        def rate(ids: Tensor) -> Tensor:
            y, *rest = through(layers[first:-1], (memory, ids, mask))
            return layers[-1]((y[:, -1:], *rest))[:, -1]  # the head, at the last place alone

        return search(rate, len(source), start, end, longest, beam, device=device)


def through(layers: Sequence[nn.Module], value: Any) -> Any:
    """`value` after all layers."""
    return reduce(lambda x, layer: layer(x), layers, value)


@contextmanager
def evaluating(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Layers in evaluation mode (no dropout, BatchNorm's running statistics) for a while."""
    modes = [(m, m.training) for layer in layers for m in layer.modules()]
    for module, _ in modes:
        module.training = False
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
