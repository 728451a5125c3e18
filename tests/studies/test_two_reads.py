"""One weight that is read twice, on the real trainer."""

import warnings

import pytest

from pipemare_edu.plan import theory
from pipemare_edu.studies.two_reads import train


@pytest.mark.parametrize("t2", [0.0, 0.3, "theory"])
def test_the_trainer_follows_the_recurrence_without_a_warning(t2):
    tau, steps = 6, 80
    gamma = {0.0: None, 0.3: theory.gamma(0.3, tau), "theory": theory.gamma_star(tau)}[t2]
    weights: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in train(weights, 0.06, tau, 4.0, t2, steps):
            pass
    case = theory.Quadratic(tau, discrepancy=4.0, gamma=gamma)
    assert weights == pytest.approx(theory.iterates(case, 0.06, steps).tolist(), rel=1e-9)
