"""Operations, and the one rule that ties a stage's operation to its neighbours.

A stage runs a fixed list of operations.  In text, one stage's list reads "F0 F1 B0 U0 F2 B1 U1":

    F<m>  forward of microbatch m          B<m>  backward of microbatch m
    R<m>  recompute: forward of m again    U<k>  optimizer step k, after the minibatch's last B
    E<k>  evaluation with the weights that U<k> left

The virtual clock, the interpreter and the figures all read these lists (DESIGN.md section 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

KINDS = "FBUER"
_TOKEN = re.compile(rf"([{KINDS}])(\d+)")


class Op(NamedTuple):
    """One operation of one stage.  `index` is a microbatch for F, B, R and a step for U, E."""

    kind: str
    index: int  # type: ignore[assignment]  # shadows tuple.index, which nobody needs here

    def __str__(self) -> str:
        return f"{self.kind}{self.index}"

    def step(self, microbatches: int) -> int:
        """The minibatch this operation belongs to, with `microbatches` per minibatch."""
        return self.index if self.kind in "UE" else self.index // microbatches


class Operations(tuple[Op, ...]):
    """One stage's list of operations; `str()` is its text form and `parse` its inverse.

    inside  the stage lies inside a recompute segment, behind its first stage: an R waits for the
            stage before.  Otherwise an R works on the input that its stage kept.
    """

    inside: bool

    def __new__(cls, ops: Iterable[Op] = (), inside: bool = False) -> Operations:
        self = super().__new__(cls, ops)
        self.inside = inside
        return self

    def __str__(self) -> str:
        return " ".join(map(str, self))

    __repr__ = __str__


def parse(text: str) -> Operations:
    """One stage's operations from their text form.

    Raises ValueError naming the position and the word that is not an operation.
    """
    if not isinstance(text, str):
        raise ValueError(f'operations are {text!r}: give them as text, as in "F0 F1 B0 U0"')
    ops = []
    for position, word in enumerate(text.split(), start=1):
        match = _TOKEN.fullmatch(word)
        if match is None:
            raise ValueError(
                f"operation {position} is {word!r}; write a kind out of {', '.join(KINDS)} and "
                'a number, as in "F0 F1 B0 U0"'
            )
        ops.append(Op(match[1], int(match[2])))
    return Operations(ops)


def sender(op: Op, stage: int, stages: int, inside: bool = False) -> int | None:
    """The stage whose message `op` waits for, or None: F and E wait for the stage before, B for
    the stage after, R for the stage before if its own is `inside` a segment (else it works on the
    input its stage kept), U for no stage.
    """
    if op.kind == "U" or (op.kind == "R" and not inside):
        return None
    neighbour = stage + 1 if op.kind == "B" else stage - 1
    return neighbour if 0 <= neighbour < stages else None


def receiver(op: Op, stage: int, stages: int, inside: bool = False) -> int | None:
    """The stage that waits for the message `op` sends, or None; the mirror of `sender`.

    inside  is the stage after this one inside a segment, so that it waits for an R?
    """
    if op.kind == "U" or (op.kind == "R" and not inside):
        return None
    neighbour = stage - 1 if op.kind == "B" else stage + 1
    return neighbour if 0 <= neighbour < stages else None
