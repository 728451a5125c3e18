"""How far a weight wanders under noise: against long simulated recurrences."""

from __future__ import annotations

import numpy as np
import pytest

from pipemare_edu.plan.noise import spread_map
from pipemare_edu.plan.theory import Quadratic, iterates, lemma1, threshold


@pytest.mark.parametrize(("tau", "momentum"), [(0, 0.0), (1, 0.0), (6, 0.0), (3, 0.9)])
def test_spread_of_a_long_simulation(tau, momentum):
    case = Quadratic(tau, momentum=momentum)
    rate = 0.7 * threshold(case)
    w = iterates(case, rate, 100_000, noise=0.3, seed=1)
    spread = spread_map(Quadratic(1, momentum=momentum), [rate], [tau], noise=0.3)
    assert spread[0, 0] == pytest.approx(w[1000:].std(), rel=0.05)


def test_without_delay_it_is_the_textbook_value():
    """w[t+1] = (1 - a) w[t] - a shock has variance a^2 / (1 - (1 - a)^2)."""
    a = np.array([0.1, 0.5, 1.5])
    assert spread_map(Quadratic(), a, [0])[0] == pytest.approx(np.sqrt(a / (2 - a)))


def test_nothing_beyond_the_edge_and_further_close_to_it():
    edge = lemma1(5)
    below, near, above = spread_map(Quadratic(), [0.5 * edge, 0.98 * edge, 1.02 * edge], [5])[0]
    assert near > 3 * below and np.isnan(above)


def test_t2_is_refused():
    with pytest.raises(ValueError, match="T2"):
        spread_map(Quadratic(3, gamma=0.5), [0.1], [3])
