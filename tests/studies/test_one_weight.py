"""One weight on the real trainer takes the steps of the recurrence."""

from __future__ import annotations

import numpy as np
import pytest

from pipemare_edu.plan.theory import Quadratic, iterates, threshold
from pipemare_edu.studies.one_weight import settled, train, trial_steps


@pytest.mark.parametrize(
    ("rate", "tau", "momentum", "noise"),
    [(0.3, 4, 0.0, 0.0), (0.02, 3, 0.9, 0.5), (0.5, 0, 0.0, 0.1), (2.5, 4, 0.0, 0.0)],
)
def test_the_weights_are_those_of_the_recurrence(rate, tau, momentum, noise):
    weights: list[float] = []
    for run in train(weights, rate, tau, momentum, steps=150, noise=noise, seed=3):
        assert run.status in ("running", "done")
    expected = iterates(Quadratic(tau, momentum=momentum), rate, 150, noise=noise, seed=3)
    assert weights == pytest.approx(expected, rel=1e-9)


def test_a_run_that_is_stopped_is_a_shorter_one():
    weights: list[float] = []
    for run in train(weights, 0.1, 2, steps=10_000):
        run.cancel()
    assert 1 < len(weights) < 10_001
    assert weights == pytest.approx(iterates(Quadratic(2), 0.1, len(weights) - 1))


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("tau", [1, 4, 10, 18])
def test_settled_knows_both_sides_of_the_edge(tau, momentum, noise):
    case = Quadratic(tau, momentum=momentum)
    for multiple, stays in ((0.8, True), (1.25, False)):
        rate, steps = multiple * threshold(case), trial_steps(tau, momentum)
        w = iterates(case, rate, steps, noise=noise)
        assert settled(np.asarray(w).tolist(), noise) == stays
