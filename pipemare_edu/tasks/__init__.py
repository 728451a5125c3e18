"""Tasks: data, networks, loss, metrics and settings at which every method can be compared.

Every task works offline.  `get("digits")` gives one, `names()` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..trainer.registry import unknown
from . import digits, regression
from .task import Setting, Task

_TASKS: dict[str, Callable[[], Task]] = {"digits": digits.task, "regression": regression.task}

__all__ = ["Setting", "Task", "get", "names"]


def names() -> list[str]:
    return list(_TASKS)


@cache
def get(name: str) -> Task:
    """The task called `name`; ValueError with the closest name if there is none."""
    if name not in _TASKS:
        raise ValueError(unknown("task", name, _TASKS))
    return _TASKS[name]()
