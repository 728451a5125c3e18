"""Plain words for what cannot be: numbers, kinds of values, names."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

MOST = 2**63 - 1  # what fits a torch seed, and more than anyone counts to
FINITE = sys.float_info.max


def plain(value: Any) -> Any:
    """A number of numpy's, or of another library, as Python's own; anything else as it is."""
    if type(value) in (bool, int, float):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def whole(name: str, value: Any, least: int, most: int = MOST) -> int:
    """`value` if it is a whole number from `least` to `most`; else ValueError, naming it."""
    value = plain(value)
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        open_ended = most == MOST and not (number and value > most)
        limit = f"{least} or more" if open_ended else f"from {least} to {most}"
        raise ValueError(f"{name} is {value!r}: give a whole number, {limit}")
    return value


def positive(name: str, value: Any, most: float = math.inf) -> float:
    """`value` if it is a number above 0, up to `most`; else ValueError, naming it."""
    value = plain(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= most:
        limit = "" if most >= FINITE else f", {most:g} at most"
        kind = "finite number" if most == FINITE else "number"
        raise ValueError(f"{name} is {value!r}: give a {kind} above 0{limit}")
    return value


def iterable(name: str, value: Any, wanted: str) -> Iterable[Any]:
    """`value` if a loop can go over it, and it is no text; else ValueError, naming it and what is
    `wanted`."""
    kind = type(value)  # iter(value) would draw from a loader's random state
    if kind is str or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise ValueError(f"{name} is {value!r}: give {wanted}")
    return value


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that is not known, with the close match."""
    names = list(known)
    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(str(name).lower(), lower, 1)
    hint = f": did you mean {lower[close[0]]!r}?" if close else "."
    return f"unknown {what} {name!r}{hint} There are {', '.join(names)}"
