"""Byte-pair encoding: words in pieces that are learned from the text (Sennrich et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class BPE:
    """A vocabulary of at most `size` pieces for `texts`, by the tokenizers library.

    The text comes back as it was, but for characters that `texts` lack: those are <unk>, id 3.
    """

    def __init__(self, texts: Iterable[str], size: int) -> None:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        self._tokenizer: Any = Tokenizer(models.BPE(unk_token="<unk>"))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        self._tokenizer.decoder = decoders.Metaspace()
        special = ["<pad>", "<s>", "</s>", "<unk>"]
        learn = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
        self._tokenizer.train_from_iterator(texts, learn)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def pieces(self, text: str) -> list[str]:
        """`text` as the network sees it."""
        return [self._tokenizer.id_to_token(i) for i in self.encode(text)]
