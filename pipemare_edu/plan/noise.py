"""How far a weight wanders when every gradient carries noise: the recurrences of plan.theory.

The noise does not enter the characteristic polynomial p, so it does not move the edge of stability.
Below it, white noise of standard deviation sigma in the gradient makes w wander with

    spread^2 = (a sigma)^2 * mean over the unit circle of 1 / |p(z)|^2

since w answers a shock by -a z^k / p(z), and |z^k| = 1 there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .theory import Quadratic, threshold

POINTS = 4096  # on the circle: enough down to a hundredth below the edge


def spread_map(
    case: Quadratic, step_sizes: ArrayLike, delays: ArrayLike, noise: float = 1.0
) -> NDArray[np.float64]:
    """Standard deviation of w in the long run, shape (len(delays), len(step_sizes)); nan where
    the case is not stable.  ValueError with T2, which is not covered."""
    if case.gamma is not None:
        raise ValueError("the spread under noise is worked out without T2: leave gamma out")
    steps = np.asarray(step_sizes, dtype=float)
    rows = []
    for delay in np.asarray(delays).tolist():
        here = replace(case, tau_fwd=delay)
        q, r = here.parts()
        on_circle = np.fft.fft(q + steps[:, None] * r, POINTS, axis=1)
        spread = noise * steps * np.sqrt((1 / np.abs(on_circle) ** 2).mean(axis=1))
        rows.append(np.where(steps < threshold(here), spread, np.nan))
    return np.array(rows)
