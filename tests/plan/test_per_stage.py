"""One direction with a delay for each stage: the polynomial and edge of its recurrence."""

from __future__ import annotations

import numpy as np
import pytest

from pipemare_edu.plan.per_stage import per_stage, weighted_delay
from pipemare_edu.plan.theory import Quadratic, iterates, lemma1, threshold


def test_one_delay_for_all_is_lemma_1():
    assert threshold(per_stage([0.2, 0.5, 0.3], [5, 5, 5], 2.0)) == pytest.approx(lemma1(5, 2.0))
    assert threshold(per_stage([0.0, 1.0], [9, 3])) == pytest.approx(lemma1(3))


@pytest.mark.parametrize("seed", range(5))
def test_iterates_follow_the_recurrence_and_the_polynomial(seed):
    draw = np.random.default_rng(seed)
    taus = [7, 5, 3, 1]
    shares = draw.dirichlet(np.ones(4))
    case, rate = per_stage(shares, taus, 3.0), float(draw.uniform(0.01, 0.2))
    w = [1.0] * 8
    for _ in range(40):
        w.append(w[-1] - rate * 3.0 * sum(m * w[-1 - t] for m, t in zip(shares, taus, strict=True)))
    assert iterates(case, rate, 40) == pytest.approx(w[7:])
    windows = np.lib.stride_tricks.sliding_window_view(w, 9)[:, ::-1]
    assert np.abs(windows @ case.polynomial(rate)).max() < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_edge_is_where_iterates_begin_to_grow(seed):
    shares = np.random.default_rng(seed).dirichlet([4, 1, 1, 1])
    case = per_stage(shares, [7, 5, 3, 1])
    edge = threshold(case)
    for factor, grows in ((0.97, False), (1.03, True)):
        sizes = np.abs(iterates(case, factor * edge, 4000))
        assert (sizes[-500:].max() > sizes[2000:2500].max()) == grows


def test_several_delays_do_less_harm_than_their_mean():
    shares, taus = [0.25] * 4, [7, 5, 3, 1]
    assert threshold(per_stage(shares, taus)) > 1.1 * lemma1(weighted_delay(shares, taus))


@pytest.mark.parametrize(
    ("shares", "taus"), [([0.5], [1, 2]), ([1.5, -0.5], [1, 2]), ([0.5, 0.4], [1, 2]), ([], [])]
)
def test_shares_that_are_none_are_refused(shares, taus):
    with pytest.raises(ValueError, match="share"):
        per_stage(shares, taus)


def test_it_is_a_quadratic():
    assert isinstance(per_stage([1.0], [2]), Quadratic)
