"""Lists of operations as learners write them, and what can be wrong with one.

Every fault is a sentence's worth of words, or "" if there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..plan.ops import Op, Operations, parse

LIST = 'a text of operations, such as "F0 B0 U0"'


def as_text(answer: Any) -> str:
    """A list of operations as text, from a text, a list of texts, or operations."""
    if isinstance(answer, list | tuple) and all(isinstance(word, str | Op) for word in answer):
        answer = " ".join(map(str, answer))
    if not isinstance(answer, str):
        raise ValueError(f"An answer is {LIST}, and this one is {answer!r}.")
    text = re.sub(r"[fbuer]\d+", lambda op: op[0].upper(), answer.replace(",", " "))
    try:
        return str(parse(text))
    except ValueError as error:
        raise ValueError(f"An answer is {LIST}, but {error}.") from None


def one_step(microbatches: int) -> Operations:
    """What a stage has to run in a step of so many microbatches, in an order that runs."""
    words = [f"{kind}{m}" for kind in "FB" for m in range(microbatches)]
    return parse(" ".join([*words, "U0"]))


def each_once(text: str, asked: Sequence[Op]) -> str:
    """What stands in the list too often, not at all, or without having been asked for."""
    counts = Counter(parse(text))
    wrong = [op for op in {**dict.fromkeys(asked), **counts} if counts[op] != (op in asked)]
    if not wrong:
        return ""
    first = wrong[0]
    if first not in asked:
        return f"{first} does not belong there"
    return f"{first} stands there {counts[first]} times" if counts[first] else f"{first} is missing"


def forward_first(text: str) -> str:
    """The first backward that stands before its forward."""
    place = {op: n for n, op in enumerate(parse(text))}
    backwards = sorted((op for op in place if op.kind == "B"), key=lambda op: op.index)
    late = (b for b in backwards if place[b] < place[Op("F", b.index)])
    return next((f"{b} stands before F{b.index}" for b in late), "")


def ascending(text: str) -> str:
    """The first backward that stands before one of an earlier microbatch."""
    order = [op for op in parse(text) if op.kind == "B"]
    pairs = zip(order, order[1:], strict=False)
    return next((f"{a} stands before {b}" for a, b in pairs if a.index > b.index), "")


def update_last(text: str) -> str:
    """What stands behind the update."""
    last = parse(text)[-1]
    return "" if last.kind == "U" else f"{last} stands behind U0"
