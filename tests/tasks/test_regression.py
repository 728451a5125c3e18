"""The seeded teacher: the same data on every machine and in every order of calls."""

import pytest
import torch

from pipemare_edu.tasks import regression


def test_data_are_deterministic_and_leave_the_global_state_alone():
    first = regression.load()
    torch.manual_seed(99)
    state = torch.get_rng_state()
    second = regression.load()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_targets_are_standardized():
    x, y = regression.load()
    assert x.shape == (3000, 16) and y.shape == (3000, 4)
    torch.testing.assert_close(y.mean(0), torch.zeros(4), rtol=0, atol=1e-5)
    torch.testing.assert_close(y.std(0), torch.ones(4))


def test_train_and_test_are_disjoint_and_cover_the_data():
    task = regression.task()
    train, test = ({tuple(row) for row in part[0].tolist()} for part in (task.train, task.test))
    assert (len(train), len(test)) == (2400, 600)
    assert not train & test


def test_explained_is_100_for_the_target_and_about_0_for_its_mean():
    _, y = regression.load()
    assert regression.explained(y, y).item() == 100.0
    assert regression.explained(torch.zeros_like(y), y).item() == pytest.approx(0.0, abs=0.1)


def test_explained_counts_half_the_variance_as_50():
    _, y = regression.load()
    assert regression.explained(y * (1 - 0.5**0.5), y).item() == pytest.approx(50.0, abs=0.1)


def test_explained_has_a_floor_of_0_also_for_an_infinite_output():
    _, y = regression.load()
    assert regression.explained(-y, y).item() == 0.0
    assert regression.explained(torch.full_like(y, torch.inf), y).item() == 0.0
