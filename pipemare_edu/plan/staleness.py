"""Staleness from version stamps: how old the weights were that a microbatch read.

The same stamps give the staleness that operation lists imply (versions counted on paper) and the
one that a run measured (versions stamped on its events).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .ops import Op


class Delay(NamedTuple):
    """Staleness of one microbatch at one stage, in updates: the version when its gradient is
    applied minus the version that its forward (backward, re-run) read; None: not re-run."""

    microbatch: int
    step: int
    forward: int
    backward: int
    recompute: int | None = None


_NOTHING: list[Delay] = []


class Stamps:
    """One stage's version stamps.  A gradient is applied by the first update after its B."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}
        self._reread: dict[int, int] = {}
        self._waiting: list[tuple[int, int, int, int | None]] = []

    def add(self, kind: str, index: int, version: int) -> list[Delay]:
        """Take the stage's next operation and the version it read; delays come out at updates."""
        if kind == "F":
            self._read[index] = version
        elif kind == "R":
            self._reread[index] = version
        elif kind == "B" and index in self._read:
            again = self._reread.pop(index, None)
            self._waiting.append((index, self._read.pop(index), version, again))
        elif kind == "U":
            out = [
                Delay(m, index, version - f, version - b, None if r is None else version - r)
                for m, f, b, r in self._waiting
            ]
            self._waiting.clear()
            return out
        return _NOTHING


def staleness(ops: Iterable[Op]) -> tuple[Delay, ...]:
    """The delay of every microbatch at a stage that runs `ops`, in the order of their backwards."""
    stamps, version, out = Stamps(), 0, list[Delay]()
    for op in ops:
        out += stamps.add(op.kind, op.index, version)
        version += op.kind == "U"
    return tuple(out)
