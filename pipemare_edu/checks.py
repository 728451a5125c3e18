"""Plain words for numbers that cannot be."""

from __future__ import annotations

import math
from typing import Any

MOST = 2**63 - 1  # what fits a torch seed, and more than anyone counts to


def whole(name: str, value: Any, least: int, most: int = MOST) -> int:
    """`value` if it is a whole number from `least` to `most`; else ValueError, naming it."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limit = f"from {least} to {most}" if most < MOST else f"{least} or more"
        raise ValueError(f"{name} is {value!r}: give a whole number, {limit}")
    return value


def positive(name: str, value: Any, most: float = math.inf) -> float:
    """`value` if it is a number above 0, up to `most`; else ValueError, naming it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= most:
        limit = "" if most == math.inf else f", {most:g} at most"
        raise ValueError(f"{name} is {value!r}: give a number above 0{limit}")
    return value
