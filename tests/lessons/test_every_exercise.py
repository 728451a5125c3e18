"""What holds for every exercise of every lesson."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from judging import solved

import pipemare_edu as pm
from pipemare_edu.lessons import hint
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import every
from pipemare_edu.plan import theory

TIMELINE = pm.simulate(pm.schedule("gpipe", stages=4, microbatches=2))
STEP = [e for row in TIMELINE.events for e in row]
# What a published solution may find in its lesson.
NAMES = {
    "0": {"step": STEP},
    "2": {"pm": pm},
    "3": {"np": np, "math": math},
    "4": {"torch": torch},
    "5": {"math": math, "theory": theory},
    "6": {"pm": pm},
}
NONSENSE = [None, "?", [1, 2], {}, object(), float("nan"), lambda: 3, lambda *_: 3]
EVERY = pytest.mark.parametrize("exercise", every(), ids=lambda e: e.id)


def given(exercise):
    """What the lesson's cell gives to the check beside the answer."""
    return (STEP,) if exercise.given else ()


@EVERY
def test_three_hints(exercise) -> None:
    shown = [str(hint(exercise.id)) for _ in range(4)]
    assert len(set(shown)) == len(set(exercise.hints)) == 3 and shown[2] == shown[3]
    assert shown[0].startswith("Hint 1 of 3")


@EVERY
def test_a_reference_and_a_published_solution_that_are_right(exercise) -> None:
    about = given(exercise)
    assert judge(exercise, exercise.answer(*about), *about).outcome == "right"
    names = dict(NAMES.get(exercise.id[0], {}))
    assert judge(exercise, solved(exercise, **names), *about).outcome == "right"


@EVERY
def test_a_stub_is_not_attempted(exercise) -> None:
    stubs = [..., lambda *_, **__: ...] if exercise.function else [...]
    for stub in stubs:
        assert judge(exercise, stub, *given(exercise)).outcome == "not attempted"


@EVERY
@pytest.mark.parametrize("answer", NONSENSE)
def test_nonsense_is_wrong_and_never_raised(exercise, answer) -> None:
    assert judge(exercise, answer, *given(exercise)).outcome == "wrong"
