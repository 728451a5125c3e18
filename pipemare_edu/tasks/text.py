"""Text as numbers and back, padded batches, and the loss and metrics that leave padding out."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from copy import copy
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

PAD, START, END = 0, 1, 2


class Codec(Protocol):
    """Text to ids and back; ids 0, 1 and 2 are padding, start and end and stand for no text."""

    def __len__(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: Iterable[int]) -> str: ...


class Symbols:
    """A closed list of symbols, written without gaps: ids follow the list, the longest symbol that
    fits comes first.

    encode raises ValueError for text that is not made of the symbols, naming the place.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = ("", "", "", *symbols)
        self._ids = {s: i for i, s in enumerate(self.symbols) if s}
        longest_first = sorted(self._ids, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.DOTALL)

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        ids, place = [], 0
        while place < len(text):
            found = self._pattern.match(text, place)
            if not found:
                raise ValueError(f"{text!r} from {text[place:]!r} on is not in the vocabulary")
            ids.append(self._ids[found.group()])
            place = found.end()
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.symbols[i] for i in ids)


class Sentences:
    """Rows of ids of different lengths, one after the other in memory.

    Taking rows, by a slice or a tensor of their numbers, pads them to the longest one taken:
    (rows, longest) int64.
    """

    def __init__(self, rows: Iterable[Iterable[int]]) -> None:
        ids, ends = array("i"), array("q", [0])
        for row in rows:
            ids.extend(row)
            ends.append(len(ids))
        self._ids = torch.tensor(ids, dtype=torch.int32)
        limits = torch.tensor(ends, dtype=torch.int64)
        self._starts, self.lengths = limits[:-1], limits.diff()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, part: Any, /) -> Tensor:
        lengths, starts = self.lengths[part][:, None], self._starts[part][:, None]
        column = torch.arange(int(lengths.max()))
        inside = column < lengths
        return torch.where(inside, self._ids[torch.where(inside, starts + column, 0)], PAD).long()

    def without(self, first: int = 0, last: int = 0) -> Sentences:
        """The same rows less their first or last ids, in the same memory."""
        part = copy(self)
        part._starts, part.lengths = self._starts + first, self.lengths - first - last
        return part


class TokenLoss:
    """Cross-entropy, the mean over the tokens that are not padding.

    output (batch, T, words), target ids (batch, T); smoothing: the label's share given to all words
    """

    def __init__(self, smoothing: float = 0.0) -> None:
        self.smoothing = smoothing

    def count(self, target: Tensor) -> Tensor:
        return (target != PAD).sum()

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(
            output.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=self.smoothing
        )


def right(output: Tensor, target: Tensor) -> Tensor:
    """Where the likeliest word is the target, (batch, T); padding counts as right."""
    return (output.argmax(-1) == target) | (target == PAD)


def token_accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Share of tokens whose likeliest word is the target, padding left out, in per cent."""
    words = target != PAD
    return (right(output, target) & words).sum() / words.sum() * 100


def exact(output: Tensor, target: Tensor) -> Tensor:
    """Share of rows with every token right, in per cent.

    Teacher forcing loses nothing here: if every token is right after the target's own beginning,
    greedy search writes that beginning.  So this is greedy search's exact match.
    """
    return right(output, target).all(-1).float().mean() * 100
