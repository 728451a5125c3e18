"""Lesson 07, bytes: a method's bill, and which methods fit a device."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...figures.ledger import size
from ...plan.copies import BASE, EXTRA
from ...plan.held import Held
from ...plan.ledger import ledger
from ...plan.schedules import depths as depths_of
from ..exercise import Exercise, Property
from ..reading import numbers

BILL = "a function of (method, weights, depths, microbatches, copies) that returns a dict"
METHODS = ("gpipe", "pipedream", "pipemare", "pipemare-t2")
KINDS = (*BASE, *EXTRA)


# 7.1 bytes of a table


class Table(NamedTuple):
    """What the learner's function is called with, and the bill of plan.ledger for it."""

    method: str
    weights: list[int]
    depths: list[int]
    microbatches: int
    copies: int

    @property
    def true(self) -> dict[str, int]:
        rows = ledger(
            *self[1:],
            stashes=self.method == "pipedream",
            corrects=self.method == "pipemare-t2",
        )
        return {kind: sum(row[kind] for row in rows) for kind in KINDS}

    def __str__(self) -> str:
        return f"for {self[0]} with {', '.join(map(str, self[1:]))}"


def tables() -> Iterator[Table]:
    """Random small tables for every method; the first has one stage of depth 0 (1F1B's last)."""
    draw = random.Random(7)
    for n in range(5):
        for method in METHODS:
            stages = 1 + n
            weights = [4 * draw.randint(1, 99) for _ in range(stages)]
            kind = "async-1f1b" if n % 2 == 0 else "lockstep"
            depths = list(depths_of("gpipe" if method == "gpipe" else kind, stages))
            yield Table(method, weights, depths, draw.randint(1, 4), draw.randint(0, 2))


def has_five_numbers(bill: Callable[..., Any]) -> str:
    """What is not a dict of the five kinds."""
    for table in tables():
        found = bill(*table)
        if not isinstance(found, dict):
            return f"{table} it returns {found!r}"
        if missing := [kind for kind in KINDS if kind not in found]:
            return f"{table} there is no {missing[0]!r}"
        if odd := [kind for kind in KINDS if not numbers([found[kind]])]:
            return f"{table} {odd[0]!r} is {found[odd[0]]!r}"
    return ""


def wrong(
    kinds: Sequence[str],
    why: Callable[[Table, float], str] = lambda table, found: "",
) -> Callable[[Callable[..., Any]], str]:
    """The first table in which one of these kinds is not the ledger's; why: what it may be."""

    def fault(bill: Callable[..., Any]) -> str:
        for table in tables():
            found, true = bill(*table), table.true
            for kind in kinds:
                if abs(found[kind] - true[kind]) > 0.5:
                    return f"{table} you get {found[kind]} as {kind}{why(table, found[kind])}"
        return ""

    return fault


def about_stash(table: Table, found: float) -> str:
    """What another number of old versions is."""
    w, d, n = table.weights, table.depths, table.microbatches
    if table.method != "pipedream":
        return ", and only pipedream keeps old versions"
    others: dict[str, Sequence[float]] = {
        "the mean age, and no stage holds a part of a version": [x / n for x in d],
        "rounded down: the oldest version that is still wanted counts": [x // n for x in d],
        "one a microbatch: a version is made every N microbatches": d,
        "with the newest, which stands under weights already": [-(-x // n) + 1 for x in d],
    }
    for says, versions in others.items():
        if abs(found - sum(a * v for a, v in zip(w, versions, strict=True))) < 0.5:
            return f", which is {says}"
    return ""


def about_correction(table: Table, found: float) -> str:
    if table.method != "pipemare-t2":
        return ", and only pipemare-t2 corrects"
    whole = found == sum(table.weights)
    return ", but a stage of depth 0 has no delay to correct" if whole else ""


def bill(
    method: str, weights: list[int], depths: list[int], microbatches: int, copies: int
) -> dict[str, int]:
    W, stash, correction = sum(weights), 0, 0
    for w, depth in zip(weights, depths, strict=True):
        if method == "pipedream":
            stash += w * -(-depth // microbatches)  # rounded up
        if method == "pipemare-t2" and depth > 0:
            correction += w
    return {
        "weights": W,
        "gradients": W,
        "optimizer": copies * W,
        "stash": stash,
        "correction": correction,
    }


# 7.3 which fit

FITS = 'a set of names, such as {"gpipe", "pipedream"}'
GIGABYTE = 10**9
STAGES, MICROBATCHES, SEGMENT = 8, 8, 3
WEIGHTS, ACTIVATIONS, INPUT = 76_000_000, 36_000_000, 9_000_000  # bytes of every stage
CANDIDATES = (
    "gpipe",
    "pipedream",
    "pipemare",
    "pipemare-t2",
    "pipedream, recompute",
    "pipemare-t2, recompute",
)


def needs(name: str) -> int:
    """Bytes of the stage that needs the most."""
    method, _, again = name.partition(", ")
    flushes = method == "gpipe"
    rows = ledger(
        [WEIGHTS] * STAGES,
        depths_of("gpipe" if flushes else "lockstep", STAGES),
        MICROBATCHES,
        2,
        method == "pipedream",
        method == "pipemare-t2",
        [ACTIVATIONS] * STAGES,
        [INPUT] * STAGES,
        SEGMENT if again else 0,
        held=[Held(MICROBATCHES, 0, MICROBATCHES)] * STAGES if flushes else None,
    )
    return max(sum(row.values()) for row in rows)


def as_names(answer: Any) -> set[str]:
    """A set of candidates; ValueError for anything else."""
    known = isinstance(answer, set | frozenset | list | tuple)
    names = [_tidy(name) for name in answer] if known else []
    strange = [name for name in names if name not in CANDIDATES]
    if not known or strange:
        listed = ", ".join(f'"{name}"' for name in CANDIDATES)
        wrong = f", and {strange[0]!r} is none of these" if strange else ""
        raise ValueError(f"An answer is {FITS}, of {listed}; this one is {answer!r}{wrong}.")
    return set(names)


def _tidy(name: Any) -> Any:
    """The name as the list has it, however it is spaced and capitalized."""
    return ", ".join(re.split(r"\s*,\s*", name.strip().lower())) if isinstance(name, str) else name


def none_too_large(names: set[str]) -> str:
    """The first in the answer that does not fit."""
    large = [name for name in CANDIDATES if name in names and needs(name) > GIGABYTE]
    return f"a device of {large[0]!r} needs {size(needs(large[0]))}" if large else ""


def none_forgotten(names: set[str]) -> str:
    """The first that fits and is not in the answer."""
    left = [name for name in CANDIDATES if name not in names and needs(name) <= GIGABYTE]
    return f"the largest stage of {left[0]!r} needs {size(needs(left[0]))}" if left else ""


def all_that_fit() -> set[str]:
    base = 4 * 76  # megabytes: weights, gradients, and two tensors of Adam
    stage_1 = {
        "gpipe": base + 8 * 36,
        "pipedream": base + 2 * 76 + 76 + 16 * 36,
        "pipemare": base + 16 * 36,
        "pipemare-t2": base + 76 + 76 + 16 * 36,
        "pipedream, recompute": base + 2 * 76 + 76 + 6 * 36 + 11 * 9,
        "pipemare-t2, recompute": base + 76 + 76 + 6 * 36 + 11 * 9,
    }
    return {name for name, megabytes in stage_1.items() if megabytes <= 1000}


EXERCISES = (
    Exercise(
        "7.1",
        BILL,
        (
            Property(f"the dict has a number for each of {', '.join(KINDS)}", has_five_numbers),
            Property(
                "every method holds the weights, as many gradients, and the optimizer's copies",
                wrong(BASE),
            ),
            Property(
                "PipeDream's stash has, at every stage, the old versions that its oldest "
                "microbatch in flight still wants",
                wrong(["stash"], about_stash),
            ),
            Property(
                "T2 keeps one more weight-sized average at every stage that has a delay",
                wrong(["correction"], about_correction),
            ),
        ),
        (
            "Weights and gradients are sum(weights) each, and the optimizer copies times that, "
            "whatever the method. Begin with stash and correction zero.",
            "Only pipedream stashes: at each stage ceil(D / N) old versions, w bytes each. Only "
            "pipemare-t2 corrects: w bytes at each stage whose D is not 0.",
            "-(-D // N) rounds up. Loop over zip(weights, depths), add w * -(-D // N) to stash, or "
            "w to correction, and return the five numbers in a dict.",
        ),
        bill,
        function=True,
    ),
    Exercise(
        "7.3",
        FITS,
        (
            Property("none of them needs more than 1 GB at any stage", none_too_large),
            Property("none that fits is left out", none_forgotten),
        ),
        (
            "Stage 1 has the greatest depth, D = 15, so it needs the most. Four weight-sized "
            "tensors stand there for every method: weights, gradients, two of Adam.",
            "Add to 4 x 76 MB: the activations in flight (8 with GPipe, D + 1 = 16 otherwise) of "
            "36 MB; for PipeDream ceil(15/8) old versions, for T2 one average; and for both the "
            "working buffer, 76 MB once more.",
            "With recompute in segments of 3, stage 1 holds 6 activations and 11 inputs of 9 MB. "
            "So for T2: 304 + 76 + 76 + 6 x 36 + 11 x 9 MB. Do the same sum for the others.",
        ),
        all_that_fit,
        read=as_names,
    ),
)
