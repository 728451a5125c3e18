"""Bytes by formula: what a method must hold, stage by stage.

Everything follows from the depths D_i, the microbatches N a minibatch, and the bytes of a stage's
weights; the trainer counts the same bytes in a live run.
"""

from __future__ import annotations

from collections.abc import Sequence


def old_versions(depth: int, microbatches: int) -> int:
    """Weight versions, besides the newest, that a stashing stage of this depth holds at its peak:
    ceil(D_i / N), the oldest still wanted by the microbatch whose backward comes next."""
    return -(-depth // microbatches)


def ledger(
    weights: Sequence[int],
    depths: Sequence[int],
    microbatches: int,
    optimizer_copies: int = 1,
    stashes: bool = False,
    corrects: bool = False,
    activations: Sequence[int] | None = None,
    in_flight: Sequence[int] | None = None,
) -> list[dict[str, int]]:
    """Peak bytes per stage by kind, for a run long enough to fill the pipe.

    weights           bytes of each stage's weights, all trainable
    optimizer_copies  0 for plain SGD, 1 with momentum, 2 for Adam
    activations       bytes that one microbatch saves at each stage
    in_flight         the most microbatches in flight at each stage (Timeline.in_flight); D_i + 1
                      if not given, which is that of an asynchronous schedule (the paper counts
                      D_i, between slots)

    The working buffer is one for the whole process: the largest stage's weights, entered at every
    stage that uses it.
    """
    rows = []
    for i, (w, d) in enumerate(zip(weights, depths, strict=True)):
        peak = in_flight[i] if in_flight else d + 1
        stash = w * old_versions(d, microbatches) if stashes else 0
        correction = w if corrects and d else 0
        rows.append(
            {
                "weights": w,
                "gradients": w,
                "optimizer": w * optimizer_copies,
                "stash": stash,
                "correction": correction,
                "working": w if stash or correction else 0,
                "activations": peak * (activations[i] if activations else 0),
            }
        )
    return rows
