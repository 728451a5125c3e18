"""Activations in flight, counted in microbatches from one stage's list of operations.

A forward leaves a graph for its backward.  Where the list re-runs it, a segment's first stage keeps
only the input until then, its other stages nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from .ops import Operations


class Held(NamedTuple):
    """The most that a stage holds at any one time.

    graphs  microbatches whose activations it holds for their backward
    inputs  microbatches of which it holds the segment's input for the re-run
    slots   both together, at one time: what PAPER.md section 2 counts as stage activations
    """

    graphs: int
    inputs: int
    slots: int


def held(ops: Operations) -> Held:
    """The peaks of one stage.  Without recompute `graphs` is D_i + 1 in an asynchronous list."""
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
        elif kind == "B":
            graphs -= 1
        peak = Held(*map(max, peak, (graphs, inputs, graphs + inputs)))
    return peak
