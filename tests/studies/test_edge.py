"""Points, trials and searches: real runs on small networks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pipemare_edu.plan.theory import lemma1
from pipemare_edu.studies.edge import Found, Trial, edge, find, finding
from pipemare_edu.studies.linear import kernels, linear_edge
from pipemare_edu.studies.minimum import batch, copied, minimum
from pipemare_edu.studies.point import PUSH, point


def tried(multiple, stayed):
    return Trial(multiple, multiple, stayed, (1.0,))


def test_edge_lies_between_what_stayed_and_what_left():
    trials = [tried(1.0, True), tried(1.25, False), tried(4.0, False)]
    assert edge(trials) == pytest.approx(math.sqrt(1.25))
    assert math.isnan(edge(trials[:1])) and math.isnan(edge(trials[1:])) and math.isnan(edge([]))
    assert edge([*trials, tried(1.5, True)]) == pytest.approx(math.sqrt(1.25))  # the first cliff


def test_a_point_weighs_the_delays_by_the_eigenvector():
    at = point("batchnorm", 0)
    assert at.taus == (7, 5, 3, 1)
    assert sum(at.shares) == pytest.approx(1)
    assert at.tau == pytest.approx(float(np.dot(at.shares, at.taus)))
    assert at.predicted == pytest.approx(lemma1(at.tau, at.curvature))
    pushed, layers = at.layers(), minimum("batchnorm", 0)
    moved = torch.cat(
        [
            (a - b).flatten()
            for x, y in zip(pushed, layers, strict=True)
            for a, b in zip(x.parameters(), y.parameters(), strict=True)
        ]
    )
    assert float(moved.detach().norm()) == pytest.approx(PUSH)


@pytest.mark.parametrize(
    ("delays", "multiple", "stays"), [(0, 0.97, 1), (0, 1.03, 0), (2, 0.97, 1)]
)
def test_one_trial(delays, multiple, stays):
    found = find("batchnorm", 0, delays=delays, multiple=multiple)
    assert [t.stayed for t in found.trials] == [bool(stays)] and math.isnan(found.multiple)
    assert len(found.trials[0].losses) == found.at.steps


def test_without_delay_the_edge_is_two_over_the_curvature():
    found = find("tanh", 0, delays=0)
    assert isinstance(found, Found)
    assert found.rate * found.at.curvature == pytest.approx(2, rel=0.01)


def test_with_a_delay_per_stage_the_linear_theory_finds_it():
    found = find("batchnorm", 0)
    assert found.rate == pytest.approx(found.at.by_stage, rel=0.02)
    pieces = kernels(copied(minimum("batchnorm", 0)), batch(0))
    linear = linear_edge(pieces, found.at.taus, found.at.predicted)
    assert found.rate == pytest.approx(linear, rel=0.01)


def test_linear_edge_with_one_delay_is_lemma_1():
    root = np.random.default_rng(0).normal(size=(6, 4))
    whole = root @ root.T
    top = float(np.linalg.eigvalsh(whole)[-1])
    assert linear_edge([0.3 * whole, 0.7 * whole], [3, 3], 0.1) == pytest.approx(
        lemma1(3, top), rel=0.005
    )


def test_a_search_can_be_left():
    steps = finding("batchnorm", 0, "minimum", "lockstep")
    for _ in range(3):
        next(steps)
    steps.close()


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="start is 'top'"):
        point("batchnorm", 0, "top")
    with pytest.raises(ValueError, match="unknown network"):
        find("none", 0)
