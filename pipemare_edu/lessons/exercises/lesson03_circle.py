"""Lesson 03: a root on the circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..exercise import Exercise, Property

PAIR = "a root and a number of steps, such as (0.5 + 0.5j, 8)"

# 3.4 a period


def as_pair(answer: Any) -> tuple[complex, int]:
    """(root, steps); ValueError for anything else."""
    try:
        root, steps = answer
        root = complex(root)
        whole = float(steps) == int(steps) and not isinstance(steps, bool)
    except (TypeError, ValueError):
        whole = False
    if not whole or int(steps) < 1:
        raise ValueError(f"An answer is {PAIR}, and this one is {answer!r}.")
    return root, int(steps)


def is_a_root(answer: tuple[complex, int]) -> str:
    """A number that is not a root of z (z - 1) + 1."""
    z = answer[0]
    value = z * (z - 1) + 1
    return "" if abs(value) < 1e-3 else f"yours gives {value:.3g}"


def comes_back(answer: tuple[complex, int]) -> str:
    """A number of steps after which the weights are others than at the beginning."""
    steps, w = answer[1], [1.0, 1.0]
    for _ in range(steps + 2):
        w.append(w[-1] - w[-2])
    first, then = w[1:3], w[1 + steps : 3 + steps]
    said = "it goes {:g}, {:g}, ... from step {}, and {:g}, {:g}, ... from step 0"
    return "" if first == then else said.format(*then, steps, *first)


def is_the_first_time(answer: tuple[complex, int]) -> str:
    """A multiple of the period."""
    return "" if answer[1] <= 6 else f"it has begun again before step {answer[1]}"


def on_the_circle() -> tuple[complex, int]:
    root = complex(0.5, 3**0.5 / 2)  # z^2 - z + 1 = 0: two conjugate roots whose product is 1
    return root, 6  # the angle is 60 degrees, a sixth of a turn


EXERCISES: Sequence[Exercise] = (
    Exercise(
        "3.4",
        PAIR,
        (
            Property("the root solves z (z - 1) + 1 = 0", is_a_root),
            Property("after that many steps the sequence of w begins again", comes_back),
            Property("it is the first time", is_the_first_time),
        ),
        (
            "z^2 - z + 1 = 0 is quadratic: its roots are conjugate, and their product is the last "
            "coefficient, 1. So what is the modulus of each?",
            "z = (1 + sqrt(-3)) / 2: at which angle does it lie? cos(angle) = 1/2.",
            "A step turns by 60 degrees: how many make a full turn? z is complex(0.5, 3**0.5 / 2).",
        ),
        on_the_circle,
        read=as_pair,
    ),
)
