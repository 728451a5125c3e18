"""The short real runs behind lesson 02's panels: trained for their version stamps."""

from __future__ import annotations

from ..plan.schedules import depths
from ..trainer.methods import PipeDream, PipeMare
from ..training import Job, prepare

RATE = 0.01  # low enough that no delay makes the run diverge
READS = ("newest", "stashed")


def job(schedule: str, stages: int, microbatches: int, steps: int, backward: str = "newest") -> Job:
    """Training of the digits network, prepared: `steps` steps under a schedule.

    backward  the weights that backwards read: "newest" (PipeMare) or "stashed" (PipeDream)
    """
    if backward not in READS:
        raise ValueError(f"backward is {backward!r}: give one of {', '.join(READS)}")
    kind = PipeMare if backward == "newest" else PipeDream
    return prepare(
        "digits", kind(depth=schedule), stages, microbatches, steps, rate=RATE, eval_every=steps
    )


def filling(schedule: str, stages: int, microbatches: int) -> int:
    """Steps until the first stage's weights are as old as they ever get."""
    return -(-max(depths(schedule, stages)) // microbatches)
