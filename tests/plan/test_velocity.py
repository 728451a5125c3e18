"""T2's estimate: its two forms, and how far it misses."""

import numpy as np
import pytest

from pipemare_edu.plan import theory
from pipemare_edu.plan.velocity import averages, delayed, deltas, missed

COURSE = np.random.default_rng(0).normal(size=(60, 5)).cumsum(axis=0)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.92])
def test_delta_is_the_distance_from_the_average(gamma):
    expected = (1 - gamma) * (COURSE - averages(COURSE, gamma))
    assert np.allclose(deltas(COURSE, gamma), expected, atol=1e-12)


def test_delta_by_hand():
    course = np.array([[1.0], [3.0], [2.0]])
    assert deltas(course, 0.5)[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert averages(course, 0.5)[:, 0].tolist() == [1.0, 1.0, 2.0]
    assert delayed(course, 2)[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_it_misses_nothing_of_a_gap_of_one_or_of_a_steady_move():
    assert missed(COURSE, 1, theory.gamma_star(1)) == pytest.approx(0, abs=1e-12)
    steady = np.arange(400.0)[:, None] * [[1.0, -2.0]]
    assert missed(steady, 5, theory.gamma(0.1, 5)) < 1e-3


def test_on_a_random_walk_the_theory_s_gamma_misses_less_than_both_extremes():
    walk = np.random.default_rng(1).normal(size=(600, 50)).cumsum(axis=0)
    tau = 11
    early, best, late = (missed(walk, tau, g) for g in (0.1, theory.gamma_star(tau), 0.99))
    assert best < 0.6 < early and best < late


def test_where_nothing_is_known_it_is_nan():
    assert np.isnan(missed(COURSE[:4], 5, 0.5))
    assert np.isnan(missed(np.ones((30, 2)), 5, 0.5))
