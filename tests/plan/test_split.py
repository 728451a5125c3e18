"""The splitter against brute force over every way to cut (CASES.md, case 23)."""

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from pipemare_edu.plan.split import check_split, split


def every_split(layers, stages):
    for inner in combinations(range(1, layers), stages - 1):
        cuts = (0, *inner, layers)
        yield tuple(end - start for start, end in zip(cuts, cuts[1:], strict=False))


def stage_costs(costs, counts):
    """Exact sums: a float is a fraction."""
    rest = [Fraction(float(cost)) for cost in costs]
    sums = []
    for count in counts:
        sums.append(sum(rest[:count]))
        rest = rest[count:]
    assert not rest
    return sums


def rank(costs, counts):
    sums = stage_costs(costs, counts)
    return (
        max(sums),
        sum(s * s for s in sums),
        sum(n * n for n in counts),
        [sum(counts[:i]) for i in reversed(range(len(counts)))],
    )


POOLS = {
    "equal": [3],
    "all zero": [0],
    "mostly zero": [0, 0, 0, 1, 5],
    "small": [1, 2, 3],
    "one giant": [1, 1, 1, 1000],
    "tenths": [0.1, 0.2, 0.3],
    "measured": [0.013 * 1.37**i for i in range(12)],
    "counted": [10**15, 10**15 + 1, 3],
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS.keys())
def test_best_of_all_splits(pool):
    rng = random.Random(len(pool))
    for _ in range(60):
        costs = rng.choices(pool, k=rng.randint(1, 9))
        stages = rng.randint(1, len(costs))
        best = min(every_split(len(costs), stages), key=lambda counts: rank(costs, counts))
        assert split(costs, stages) == best, (costs, stages)


@pytest.mark.parametrize("cost", [1, 0, 0.1, 1e-300, 1e300, 5e-324])
def test_equal_layers_come_out_balanced(cost):
    """In float sums three layers of 0.1 cost more at one place than at another."""
    assert split([cost] * 12, 5) == (2, 2, 2, 3, 3)
    assert split([cost] * 107, 53) == (2,) * 52 + (3,)


def test_sum_of_squares_decides_among_equal_maxima():
    assert split([9, 1, 1, 1, 1], 3) == (1, 2, 2)
    assert split([0, 0, 1, 1, 2], 3) == (3, 1, 1)  # 1, 1, 2; the more even counts give 0, 2, 2


def test_zero_costs_are_spread_over_the_stages():
    assert split([5, 0, 5, 0, 5, 0], 3) == (2, 2, 2)


def test_ends():
    assert split([3, 1, 2], 1) == (3,)
    assert split([3, 1, 2], 3) == (1, 1, 1)
    assert split([0.5], 1) == (1,)


def test_costs_of_any_number_type():
    for kind in ("int64", "int8", "uint64", "float32", "float64"):
        costs = np.array([1, 2, 3, 4], dtype=kind)
        assert split(costs, 2) == split(list(costs), 2) == split(costs.tolist(), 2) == (3, 1)


def test_large_integers_do_not_overflow():
    assert split(np.array([2**62, 2**62, 2**62, 2**62 + 1]), 2) == (2, 2)
    assert split([2**62 + 1, 2**62, 2**62, 2**62], 3) == (1, 1, 2)


def test_many_layers_reach_the_lower_bound():
    """Whole stages of ten, each of cost 55, in an order that hides them from a greedy cut."""
    rng = random.Random(0)
    costs = []
    for _ in range(40):
        costs += rng.sample(range(1, 11), 10)
    assert split(costs, 40) == (10,) * 40
    assert split(costs, 400) == (1,) * 400


@pytest.mark.parametrize(
    "costs, stages, message",
    [
        ([1, 2], 0, "stages must be a whole number >= 1, got 0"),
        ([1, 2], -1, "stages must be a whole number >= 1"),
        ([1, 2], 1.5, "stages must be a whole number >= 1"),
        ([1, 2], 3, "2 layers cannot fill 3 stages: use at most one stage per layer"),
        ([], 1, "0 layers cannot fill 1 stages"),
        ([1, -2], 1, r"costs\[1\] is -2: a cost must be finite and >= 0"),
        ([math.nan, 1], 1, r"costs\[0\] is nan"),
        ([1, 1, math.inf], 2, r"costs\[2\] is inf"),
    ],
)
def test_refusals(costs, stages, message):
    with pytest.raises(ValueError, match=message):
        split(costs, stages)


def test_check_split_passes_a_right_list_on():
    assert check_split([1, 3, 2], 6) == (1, 3, 2)
    assert check_split(np.array([2, 2]), 4) == (2, 2)
    assert all(type(count) is int for count in check_split(np.array([2, 2]), 4))


@pytest.mark.parametrize(
    "counts, message",
    [
        ([1, 2], r"\[1, 2\] sum to 3, but the model has 6 layers"),
        ([4, 4], r"\[4, 4\] sum to 8, but the model has 6 layers"),
        ([], r"\[\] sum to 0"),
        ([6, 0], "stage 2 has 0 layers"),
        ([7, -1], "stage 2 has -1 layers"),
        ([2.0, 4], "stage 1 has 2.0 layers"),
    ],
)
def test_check_split_refuses(counts, message):
    with pytest.raises(ValueError, match=message):
        check_split(counts, 6)
