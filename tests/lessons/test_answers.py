"""Numbers out of whatever a learner gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipemare_edu.lessons.answers import number, numbers


@pytest.mark.parametrize("answer", [3, 3.0, np.float32(3), np.int64(3), torch.tensor(3)])
def test_numbers_of_any_type(answer):
    assert number(answer) == 3.0


@pytest.mark.parametrize("answer", [None, "3", True, float("nan"), float("inf"), [3], ...])
def test_no_number(answer):
    assert number(answer) is None


def test_sequences():
    assert numbers((7, np.int64(5))) == numbers(np.array([7, 5])) == [7.0, 5.0]
    assert numbers("75") == numbers(7) == numbers([7, None]) == numbers(None) == []
