"""Tasks: data, networks, loss, metrics and settings at which every method can be compared.

`get("digits")` gives a task, `names()` lists those that work offline.  "cifar10:FOLDER" and the
like read the user's own files (`READERS`).  A task's module is loaded when it is first asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..checks import unknown
from .task import Setting, Task

OFFLINE = ("digits", "words", "phrases", "shapes", "characters", "regression")
READERS = {"cifar10": "cifar10", "iwslt14": "parallel", "wmt17": "parallel"}  # name: module

__all__ = ["Setting", "Task", "get", "names"]


def names() -> list[str]:
    """The tasks that need no files, the first one first in a list to choose from."""
    return list(OFFLINE)


@cache
def get(name: str) -> Task:
    """The task called `name`, or NAME:FOLDER for one that reads files.

    Raises ValueError for an unknown name (with the closest one), for a reader without a folder, and
    for a file that is missing or broken (naming it).
    """
    kind, _, folder = str(name).partition(":")
    if kind in READERS:
        module = import_module(f".{READERS[kind]}", __name__)
        if not folder:
            raise ValueError(f"{kind} reads your own copy: {kind}:FOLDER, {module.FILES[kind]}")
        return module.task(kind, folder)
    if name not in OFFLINE:
        raise ValueError(unknown("task", name, (*OFFLINE, *(f"{r}:FOLDER" for r in READERS))))
    return import_module(f".{name}", __name__).task()
