"""A character language model: small English sentences from a seeded grammar.

What comes next follows from agreement ("the cats see"), from names said before ("and Ida took the
ship") and from sums, so that the model must look back to be sure.

Accuracy of the next character in per cent and, in brackets, bits per character, on text that was
not trained on.  Rate, steps and depth were guessed, not tuned; one run each, no run diverged.

    seed         5
    synchronous  86.8 (0.5)
    PipeDream    76.4 (1.1)
    naive        71.3 (1.3)
    T1           82.0 (0.8)
    T1+T2        82.6 (0.8)
    T1+T2+T3     82.7 (0.8)

The order is the paper's, the gap to synchronous training stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from ..models.transformer import language_model
from ..trainer.registry import Fixes
from .task import Setting, Task, adam
from .text import Symbols, TokenLoss, token_accuracy

NAMES = "Anna Bela Carl Dora Emil Greta Hugo Ida Jonas Karla Ludwig Mara".split()
NOUNS = "cat dog bird horse ship tower garden river".split()
ADJECTIVES = "old small red quiet happy long".split()
VERBS = "see like follow find".split()

WINDOW = 64  # characters that the model reads at once


def text(sentences: int = 6000) -> str:
    """The sentences, one a line."""
    random = np.random.RandomState(1)

    def pick(words: list[str]) -> str:
        return words[random.randint(len(words))]

    def total() -> str:
        a, b = random.randint(50, size=2)
        return f"{a} and {b} make {a + b}."

    def owner() -> str:
        name = pick(NAMES)
        return f"{name} has a {pick(ADJECTIVES)} {pick(NOUNS)}, so {name} is happy."

    def agreement() -> str:
        noun, verb = pick(NOUNS), pick(VERBS)
        subject = (f"{noun} {verb}s", f"{noun}s {verb}")[random.randint(2)]
        return f"the {pick(ADJECTIVES)} {subject} the {pick(NOUNS)}."

    def gift() -> str:
        giver, noun = pick(NAMES), pick(NOUNS)
        taker = pick([name for name in NAMES if name != giver])
        return f"{giver} gave {taker} the {noun}, and {taker} took the {noun}."

    kinds: list[Callable[[], str]] = [total, owner, agreement, gift]
    return "".join(kinds[random.randint(4)]() + "\n" for _ in range(sentences))


CODEC = Symbols(sorted(set(text(200))))


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """(characters, the ones that follow): windows of the text without overlap, (n, WINDOW)."""
    ids = torch.tensor(CODEC.encode(text()))
    rows = ids[: (len(ids) - 1) // WINDOW * WINDOW]
    return rows.view(-1, WINDOW), ids[1 : len(rows) + 1].view(-1, WINDOW)


def bits(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Bits per character: how many yes-or-no questions are left open (less is better)."""
    return TokenLoss()(output, target) / np.log(2)


def task() -> Task:
    characters, following = load()
    held = len(characters) // 10
    network = partial(language_model, len(CODEC), 48, 4, 128, depth=2, dropout=0.0)
    return Task(
        name="characters",
        title="the next character of small sentences",
        train=(characters[:-held], following[:-held]),
        test=(characters[-held:], following[-held:]),
        loss=TokenLoss(),
        metrics={"token_accuracy": token_accuracy, "bits": bits},
        score="token_accuracy",
        settings={
            "transformer": Setting(
                network, adam(1 / 16),
                stages=8, microbatches=2, batch=16, steps=1000, rate=5e-3,
                fixes=Fixes(t1=500, t3=100), about="2 layer pre-LN Transformer, width 48",
            ),
        },
    )  # fmt: skip
