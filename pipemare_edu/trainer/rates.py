"""T1, learning-rate rescheduling (PAPER.md section 2)."""

from __future__ import annotations


def t1_factor(tau: float, step: int, annealing: int) -> float:
    """What a stage of delay `tau` multiplies its learning rate by, `step` steps after it went
    asynchronous:  tau^-p  with  p = 1 - min(step / annealing, 1).

    tau counts as at least 1, since a fractional delay must never raise the rate.  annealing = 0
    switches T1 off.
    """
    if not annealing or tau <= 1:
        return 1.0
    return tau ** -(1.0 - min(step / annealing, 1.0))
