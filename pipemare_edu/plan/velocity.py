"""T2's estimate of how far weights move while a microbatch is in the pipe (PAPER.md section 2).

A course is an array of weights over steps, shape (versions, weights), the oldest first; before it
the weights stood still.  tau is the delay in steps, gamma T2's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def deltas(course: Floats, gamma: float) -> Floats:
    """delta at every version: delta <- gamma delta + (1 - gamma)(w[t+1] - w[t]), from 0."""
    out = np.zeros_like(course, dtype=float)
    for t, update in enumerate(np.diff(course, axis=0)):
        out[t + 1] = gamma * out[t] + (1 - gamma) * update
    return out


def averages(course: Floats, gamma: float) -> Floats:
    """m at every version: m <- gamma m + (1 - gamma) w before each update, from the first w."""
    out = np.array(course, dtype=float)
    for t, weights in enumerate(course[:-1]):
        out[t + 1] = gamma * out[t] + (1 - gamma) * weights
    return out


def delayed(course: Floats, tau: int) -> Floats:
    """w[t - tau] at every version."""
    return np.concatenate([np.repeat(course[:1], tau, axis=0), course])[: len(course)]


def missed(course: Floats, tau: int, gamma: float) -> float:
    """How far tau delta lies from w[t] - w[t-tau], as a share of the size of w[t] - w[t-tau]: 0 is
    a perfect estimate, 1 is as bad as none.  The median over the versions since the first 2 tau;
    nan if there are none, or if nothing has moved."""
    true = course - delayed(course, tau)
    wrong = tau * deltas(course, gamma) - true
    far, size = (np.linalg.norm(part[2 * tau :], axis=1) for part in (wrong, true))
    shares = far[size > 0] / size[size > 0]
    return float(np.median(shares)) if len(shares) else float("nan")
