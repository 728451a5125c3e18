"""One direction of a network whose stages have delays of their own.

A network's weights move along one unit vector v, of which stage i holds the part m_i (its squared
length, sum 1).  With curvature L along v and no other direction involved, each part is read at its
own stage's delay:

    w[t+1] = w[t] - a L sum_i m_i w[t - tau_i]

With one delay for all this is Lemma 1's case.  Not in the paper: this course's own extension.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .theory import Quadratic


@dataclass(frozen=True)
class PerStage(Quadratic):
    """The case above, for theory.threshold, spectral radii and iterates; made by `per_stage`."""

    shares: tuple[float, ...] = ()
    taus: tuple[int, ...] = ()

    def reads(self) -> Iterator[tuple[float, int]]:
        """(part of the curvature, delay) of each stage."""
        for share, tau in zip(self.shares, self.taus, strict=True):
            yield self.curvature * share, tau


def per_stage(shares: Sequence[float], taus: Sequence[int], curvature: float = 1.0) -> PerStage:
    """The case with these shares (not negative, sum 1) and delays (whole steps).

    Raises ValueError for shares that are none, or another number of delays.
    """
    if len(shares) != len(taus) or min(shares, default=-1) < 0:
        raise ValueError(f"need a share >= 0 for each of {len(taus)} stages, got {list(shares)}")
    if not math.isclose(sum(shares), 1.0, rel_tol=1e-6):
        raise ValueError(f"the shares of one vector add up to 1, these to {sum(shares)}")
    return PerStage(
        max(taus), curvature=curvature, shares=tuple(map(float, shares)), taus=tuple(taus)
    )


def weighted_delay(shares: Sequence[float], taus: Sequence[float]) -> float:
    """The mean delay along the vector: sum_i m_i tau_i."""
    return sum(share * tau for share, tau in zip(shares, taus, strict=True))
