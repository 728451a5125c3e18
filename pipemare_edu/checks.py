"""Plain words for numbers that cannot be."""

from __future__ import annotations

import math
from typing import Any


def whole(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """`value` if it is a whole number of at least `least`; else ValueError, naming it."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}: give a whole number, {least} or more")
    return value


def positive(name: str, value: Any) -> float:
    """`value` if it is a number above 0 (infinity counts); else ValueError, naming it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or math.isnan(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}: give a number above 0")
    return value
