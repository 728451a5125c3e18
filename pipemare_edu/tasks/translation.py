"""Translation: pairs of sentences become a task for an encoder-decoder Transformer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from ..models.search import translate
from .task import Data, Setting, Task
from .text import END, START, Codec, Sentences, TokenLoss, exact, token_accuracy

Pairs = Sequence[tuple[str, str]]  # (source, target)


@dataclass(frozen=True)
class Languages:
    """How two languages become ids, and ids become text again.

    longest  tokens of a translation, its end included
    """

    source: Codec
    target: Codec
    longest: int

    def data(self, pairs: Pairs) -> Data:
        """((source with its end, target behind a start), target with its end).

        The decoder reads the target one token late, so that it predicts each from those before.
        """
        source = Sentences([*self.source.encode(a), END] for a, _ in pairs)
        target = Sentences([START, *self.target.encode(b), END] for _, b in pairs)
        return (source, target.without(last=1)), target.without(first=1)

    def translate(
        self, layers: Sequence[nn.Module], texts: Iterable[str], beam: int = 1, at_once: int = 500
    ) -> list[str]:
        """`texts` translated by trained layers, by greedy search (beam 1) or beam search."""
        sources = Sentences([*self.source.encode(text), END] for text in texts)
        out = []
        for first in range(0, len(sources), at_once):
            ids = translate(
                layers, sources[first : first + at_once], START, END, self.longest, beam
            )
            out += [self.target.decode(i for i in row if i > END) for row in ids.tolist()]
        return out


def matches(found: Sequence[str], wanted: Sequence[str]) -> float:
    """Share of sentences that are word for word what was wanted, in per cent."""
    return 100 * sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted)


def translation(
    name: str, title: str, train: Pairs, test: Pairs, languages: Languages,
    settings: Mapping[str, Setting], smoothing: float = 0.1, beam: int = 4, bleu: bool = True,
    at_once: int = 500,
) -> Task:  # fmt: skip
    """A task whose runs end with translations of the test set, by greedy and by beam search.

    Metrics of an evaluation: accuracy of tokens after the target's own beginning, exact match.
    Metrics after the drain: exact match and, with `bleu`, BLEU, each by greedy and by beam search.

    at_once  sentences that are evaluated or translated together
    """
    sources, wanted = [a for a, _ in test], [b for _, b in test]

    def generate(layers: Sequence[nn.Module]) -> dict[str, float]:
        measures = {"exact": matches} | ({"bleu": bleu_score} if bleu else {})
        found = {
            "greedy": languages.translate(layers, sources, at_once=at_once),
            "beam": languages.translate(layers, sources, beam, at_once),
        }
        return {
            f"{kind}_{how}": measure(texts, wanted)
            for kind, measure in measures.items()
            for how, texts in found.items()
        }

    return Task(
        name=name,
        title=title,
        train=languages.data(train),
        test=languages.data(test),
        loss=TokenLoss(smoothing),
        metrics={"token_accuracy": token_accuracy, "exact": exact},
        score="bleu_beam" if bleu else "exact",
        settings=settings,
        generate=generate,
        at_once=at_once,
    )


def bleu_score(found: Sequence[str], wanted: Sequence[str]) -> float:
    """Corpus BLEU by sacrebleu at its defaults, 0 to 100; `signature` says which."""
    from sacrebleu.metrics import BLEU

    return BLEU().corpus_score(found, [wanted]).score


def signature() -> str:
    """sacrebleu's signature of `bleu_score`: what another paper's BLEU must share to compare."""
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())
