"""Bytes by formula: what a method must hold, stage by stage.

Everything follows from the depths D_i, the microbatches N a minibatch, and the bytes of a stage's
weights and activations; the trainer counts the same bytes in a live run (trainer.memory).
"""

from __future__ import annotations

from collections.abc import Sequence

from .held import Held, peaks


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
    inputs: Sequence[int] | None = None,
    recompute: int | str = 0,
    held: Sequence[Held] | None = None,
    versions: Sequence[int] | None = None,
) -> list[dict[str, int]]:
    """Peak bytes per stage by kind.

    weights           bytes of each stage's weights, all trainable
    optimizer_copies  0 for plain SGD, 1 with momentum, 2 for Adam
    activations       bytes that one microbatch saves at each stage
    inputs            bytes of one microbatch's input to each stage
    recompute         stages of a segment (plan.segments)
    held, versions    what each stage holds at its peak, counted from lists (plan.held); if not
                      given, that of a full asynchronous pipe of these depths

    The working buffer is one for the whole process: the largest stage's weights, entered at every
    stage that uses it.
    """
    held = peaks(depths, recompute) if held is None else held
    versions = versions or [old_versions(d, microbatches) for d in depths]
    nothing = (0,) * len(weights)
    rows = []
    for w, d, a, x, most, old in zip(
        weights, depths, activations or nothing, inputs or nothing, held, versions, strict=True
    ):
        stash = w * old if stashes else 0
        correction = w if corrects and d else 0
        rows.append(
            {
                "weights": w,
                "gradients": w,
                "optimizer": w * optimizer_copies,
                "stash": stash,
                "correction": correction,
                "working": w if stash or correction else 0,
                "activations": most.graphs * a,
                "inputs": most.inputs * x,
            }
        )
    return rows
