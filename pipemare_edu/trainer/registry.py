"""Methods by name: what `method="pipemare-t1"` means, and how to add a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..checks import unknown
from .methods import GPipe, Method, OneFOneB, PipeDream, PipeMare, Sequential


@dataclass(frozen=True)
class Fixes:
    """Settings of the paper's three fixes at which a task trains well.

    t1 annealing steps; t2 decay D; t3 synchronous warm-up steps."""

    t1: int = 0
    t2: float = math.exp(-2)
    t3: int = 0


_UNKNOWN = 2**62  # the annealing steps when no task gives them
Maker = Callable[[Fixes], Method]

_METHODS: dict[str, Maker | Method] = {
    "sequential": lambda fixes: Sequential(),
    "gpipe": lambda fixes: GPipe(),
    "1f1b": lambda fixes: OneFOneB(),
    "pipedream": lambda fixes: PipeDream(),
    "pipemare-naive": lambda fixes: PipeMare(),
    "pipemare-t1": lambda fixes: PipeMare(t1=fixes.t1),
    "pipemare-t2": lambda fixes: PipeMare(t2=fixes.t2),
    "pipemare-t1t2": lambda fixes: PipeMare(t1=fixes.t1, t2=fixes.t2),
    "pipemare": lambda fixes: PipeMare(t1=fixes.t1, t2=fixes.t2, t3=fixes.t3),
}


def register(name: str, method: Method | Maker) -> None:
    """Make `name` a method for train, compare, panels and figures.

    method: a method, or a function of a task's Fixes that makes one.  A name that is taken is
    replaced.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a method's name is text, not {name!r}")
    if not isinstance(method, Method) and (isinstance(method, type) or not callable(method)):
        raise ValueError(f"{method!r} is neither a Method nor a function of Fixes that makes one")
    _METHODS[name] = method


def method_names() -> list[str]:
    """All registered names, in the order of a comparison."""
    return list(_METHODS)


def named(name: str, fixes: Fixes | None = None) -> Method:
    """The method called `name`, with a task's `fixes`.

    Raises ValueError for an unknown name (with the closest one), and for a name whose annealing or
    warm-up would have to be guessed when no task gives it.
    """
    if name not in _METHODS:
        raise ValueError(unknown("method", name, _METHODS))
    method = _METHODS[name]
    if isinstance(method, Method):
        return method
    made = method(fixes or Fixes(t1=_UNKNOWN))
    if getattr(made, "t1", 0) == _UNKNOWN:
        raise ValueError(
            f"{name!r} needs a number of annealing steps, which a task has and a Trainer has not: "
            "give the method as a value, such as pm.PipeMare(t1=..., t2=..., t3=...)"
        )
    return made
