"""The exercises, one file a lesson or two; each has EXERCISES, a sequence of Exercise values."""

from __future__ import annotations

import importlib
import pkgutil

from ...checks import unknown
from ..exercise import Exercise


def find(id: str) -> Exercise:
    """The exercise called "<lesson>.<number>"; ValueError naming the closest if there is none."""
    known = {exercise.id: exercise for exercise in every()}
    if id not in known:
        raise ValueError(unknown("exercise", id, known))
    return known[id]


def every() -> list[Exercise]:
    """All exercises, in the order of the lessons."""
    files = sorted(module.name for module in pkgutil.iter_modules(__path__))
    homes = [importlib.import_module(f"{__name__}.{name}") for name in files]
    return [exercise for home in homes for exercise in home.EXERCISES]
