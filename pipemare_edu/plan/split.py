"""Layers -> stages: contiguous, complete, no stage empty, the costliest one as cheap as can be."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate, pairwise
from numbers import Integral


def split(costs: Iterable[float], stages: int) -> tuple[int, ...]:
    """Number of layers of each stage.

    costs: one finite number >= 0 per layer, in any unit. Least is, in this order: the largest stage
    cost, the sum of squared stage costs, the sum of squared layer counts; among equals the first
    stages, which hold the most microbatches in flight, get the fewest layers. All of it exactly, in
    integers, so that twelve layers of cost 0.1 are equal layers. ValueError for other costs, and
    unless 1 <= stages <= layers.
    """
    if not (isinstance(stages, Integral) and stages >= 1):
        raise ValueError(f"stages must be a whole number >= 1, got {stages!r}")
    exact = _as_integers(costs)
    layers = len(exact)
    if stages > layers:
        raise ValueError(
            f"{layers} layers cannot fill {stages} stages: use at most one stage "
            "per layer, or cut the model into more layers"
        )
    # Scaled by layers + 1, the smallest difference in cost outweighs any in layer counts.
    prefix = [0, *accumulate(cost * (layers + 1) for cost in exact)]
    cuts = _most_even_cuts(prefix, stages, _least_maximum(prefix, stages))
    return tuple(end - start for start, end in pairwise(cuts))


def check_split(counts: Iterable[int], layers: int) -> tuple[int, ...]:
    """counts as a tuple, if they are positive whole numbers that sum to layers; else ValueError."""
    counts = tuple(counts)
    for stage, count in enumerate(counts, start=1):
        if not (isinstance(count, Integral) and count >= 1):
            raise ValueError(
                f"stage {stage} has {count!r} layers: every stage needs a whole number >= 1"
            )
    if sum(counts) != layers:
        raise ValueError(
            f"the layer counts {list(counts)} sum to {sum(counts)}, "
            f"but the model has {layers} layers"
        )
    return tuple(int(count) for count in counts)


def _as_integers(costs: Iterable[float]) -> list[int]:
    """The costs times their common denominator: floats are fractions, so nothing is rounded."""
    exact = []
    for layer, cost in enumerate(costs):
        if not 0 <= cost < math.inf:
            raise ValueError(f"costs[{layer}] is {cost}: a cost must be finite and >= 0")
        exact.append(Fraction(int(cost) if isinstance(cost, Integral) else float(cost)))
    scale = math.lcm(*(cost.denominator for cost in exact))
    return [int(cost * scale) for cost in exact]


def _least_maximum(prefix: list[int], stages: int) -> int:
    """The smallest limit at which filling every stage to the brim uses at most these stages.

    Fewer are as good: cutting a stage in two raises no cost.
    """

    def suffices(limit: int) -> bool:
        end = 0
        for _ in range(stages):
            end = bisect_right(prefix, prefix[end] + limit) - 1
        return end == len(prefix) - 1

    low, high = 0, prefix[-1]
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return low


def _most_even_cuts(prefix: list[int], stages: int, limit: int) -> list[int]:
    """Boundaries 0 = c[0] < ... < c[stages] = layers, of least squares with no stage above limit.

    Dynamic programming over the last cut. A stage's price is convex in its cost and length, so the
    best last cut never moves back when a layer or a stage is added (Yao 1980): layers^2 work.
    """
    layers = len(prefix) - 1
    forbidding = prefix[-1] ** 2 + layers**2 + 1  # more than any split within the limit costs

    def price(start: int, end: int) -> int:
        cost = prefix[end] - prefix[start]
        squares = cost * cost + (end - start) ** 2
        return squares if cost <= limit else squares + forbidding * (cost - limit)

    slack = layers - stages  # stage s of 1..stages ends between s and s + slack
    best = {end: price(0, end) for end in range(1, slack + 2)}
    last_cuts = [dict.fromkeys(best, 0)]
    for stage in range(2, stages + 1):
        here: dict[int, int] = {}
        cut: dict[int, int] = {}
        for end in range(stage + slack, stage - 1, -1):
            first = max(stage - 1, last_cuts[-1].get(end, 0))
            last = min(end - 1, cut.get(end + 1, end))
            here[end], cut[end] = min(
                (best[start] + price(start, end), start) for start in range(first, last + 1)
            )
        best = here
        last_cuts.append(cut)
    cuts = [layers]
    for cut in reversed(last_cuts):
        cuts.append(cut[cuts[-1]])
    return cuts[::-1]
