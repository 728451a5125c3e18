"""Numbers out of whatever a learner gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipemare_edu.lessons.reading import number, numbers


@pytest.mark.parametrize("answer", [3, 3.0, np.float32(3), np.int64(3), torch.tensor(3)])
def test_numbers_of_any_type(answer):
    assert number("a count", "3")(answer) == 3.0


@pytest.mark.parametrize("answer", [None, "3", True, float("nan"), float("inf"), [3], ...])
def test_no_number(answer):
    with pytest.raises(ValueError, match="An answer is a count, without quotes or a unit, such as"):
        number("a count", "3")(answer)


def test_numbers_above_a_bound():
    read = number("a rate above 0", "0.05", above=0)
    assert read(0.1) == 0.1
    for answer in (0, -0.1):
        with pytest.raises(ValueError, match=f"a rate above 0.* this one is {answer}"):
            read(answer)


def test_sequences():
    assert numbers((7, np.int64(5))) == numbers(np.array([7, 5])) == [7.0, 5.0]
    assert numbers("75") == numbers(7) == numbers([7, None]) == numbers(None) == []
