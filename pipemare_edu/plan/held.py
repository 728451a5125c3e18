"""What a stage holds for its microbatches in flight: counted from its list, and by formula.

A forward leaves a graph for its backward.  Where the list re-runs it, a segment's first stage keeps
only the input until then, its other stages nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .ops import Op, Operations
from .segments import reruns


class Held(NamedTuple):
    """The most activations that a stage holds at any one time, in microbatches.

    graphs    of which it holds what its forward (or its re-run) left for the backward
    inputs    of which it holds the segment's input for the re-run
    slots     both together, at one time: what PAPER.md section 2 counts as stage activations
    """

    graphs: int
    inputs: int
    slots: int


def held(ops: Operations) -> Held:
    """The peaks of one stage, counted operation by operation."""
    again = {op.index for op in ops if op.kind == "R"}
    keeps = not ops.inside
    graphs = inputs = 0
    peak = Held(0, 0, 0)
    for kind, index in ops:
        if kind == "F":
            inputs += index in again and keeps
            graphs += index not in again
        elif kind == "R":
            inputs -= keeps
            graphs += 1
        else:
            graphs -= kind == "B"
            continue
        peak = Held(*map(max, peak, (graphs, inputs, graphs + inputs)))
    return peak


def versions_held(ops: Iterable[Op]) -> int:
    """The most weight versions, besides the newest, that microbatches in flight have read: what a
    stash holds at its peak, which is at an update."""
    read: dict[int, int] = {}  # microbatch in flight -> version that its forward read
    version = most = 0
    for kind, index in ops:
        if kind == "F":
            read[index] = version
        elif kind == "B":
            del read[index]
        elif kind == "U":
            version += 1
            most = max(most, len(set(read.values())))
    return most


def peaks(depths: Sequence[int], recompute: int | str = 0) -> tuple[Held, ...]:
    """`held` by formula, once an asynchronous pipe has been full.

    D_i + 1 graphs (the paper counts D_i, between slots), or with recompute lead + 1 graphs after
    each R and, at a segment's first stage, wait + 1 inputs before it (plan.segments).
    """
    out = []
    for d, rerun in zip(depths, reruns(depths, recompute), strict=True):
        if rerun is None:
            out.append(Held(d + 1, 0, d + 1))
        elif rerun.first:
            out.append(Held(rerun.lead + 1, rerun.wait + 1, d + 1))
        else:
            out.append(Held(rerun.lead + 1, 0, rerun.lead + 1))
    return tuple(out)
