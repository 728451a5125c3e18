"""Translation from the user's own parallel text files, in the layout of IWSLT14 and WMT17.

Read are train.de and train.en, test.de and test.en of a folder: UTF-8, a sentence a line, line i of
one file being the translation of line i of the other.

The settings are the paper's as we recall them (93 stages, 8 microbatches, T1 over five times the
warm-up, D = 0.1) with guesses in between.  They were not run here: that takes days of a GPU.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..models.transformer import transformer
from ..trainer.registry import Fixes
from .bpe import BPE
from .task import Setting, Task, adam
from .translation import Languages, Pairs, translation

LANGUAGES = {"iwslt14": ("de", "en"), "wmt17": ("en", "de")}  # from, to
PIECES = {"iwslt14": 10_000, "wmt17": 32_000}  # of the joint vocabulary
SIZES = {"iwslt14": (512, 4, 1024), "wmt17": (512, 8, 2048)}  # width, heads, feed-forward
LONGEST = 175  # pieces of a sentence; longer ones are left out of training

FILES = {
    name: f"a folder with train.{a}, train.{b}, test.{a} and test.{b}, a sentence a line"
    for name, (a, b) in LANGUAGES.items()
}


def lines(path: Path) -> list[str]:
    """The sentences of one file.  ValueError, naming it, if it is missing, empty or not UTF-8."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; give {FILES['iwslt14']}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}, line {line}: not UTF-8 text") from None
    if not text.strip():
        raise ValueError(f"{path} has no sentences")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read(folder: str | Path, part: str, source: str, target: str) -> Pairs:
    """The pairs of one part ("train", "test"), those with an empty side left out."""
    paths = [Path(folder) / f"{part}.{language}" for language in (source, target)]
    both = [lines(path) for path in paths]
    if len(both[0]) != len(both[1]):
        counts = " and ".join(f"{p} has {len(t)}" for p, t in zip(paths, both, strict=True))
        raise ValueError(f"{counts} lines: line i of one is the translation of line i of the other")
    return [(a, b) for a, b in zip(*both, strict=True) if a.strip() and b.strip()]


def languages(train: Pairs, pieces: int) -> Languages:
    """A joint vocabulary of at most `pieces`, learned from the pairs to train on."""
    bpe = BPE((text for pair in train for text in pair), pieces)
    return Languages(bpe, bpe, LONGEST)


def task(name: str, folder: str) -> Task:
    """The task for a folder of such files; ValueError for one that cannot be used."""
    train, test = (read(folder, part, *LANGUAGES[name]) for part in ("train", "test"))
    both = languages(train, PIECES[name])
    short = [p for p in train if max(len(both.source.encode(text)) for text in p) < LONGEST]
    words = len(both.source)
    one_pass = max(1, len(short) // 128)
    return translation(
        name, f"{'-'.join(LANGUAGES[name])} translation", short, test, both,
        settings={
            "transformer": Setting(
                partial(transformer, words, words, *SIZES[name]), adam(0.05, "inverse sqrt"),
                stages=93, microbatches=8, batch=128, steps=30 * one_pass, rate=5e-4,
                fixes=Fixes(t1=8 * one_pass, t2=0.1, t3=5 * one_pass),
                about="6 + 6 layer post-LN Transformer, 93 stages",
            ),
        },
        at_once=64,
    )  # fmt: skip
