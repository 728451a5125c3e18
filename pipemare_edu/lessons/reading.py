"""Numbers in the forms that learners write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from typing import Any


def number(expects: str, such: str, above: float = -math.inf) -> Callable[[Any], float]:
    """A reader of finite numbers above a bound, of whatever type; ValueError for anything else.

    expects, such  what the number is, and one that could be: for the message
    """

    def read(answer: Any) -> float:
        value = _finite(answer)
        if value is None or value <= above:
            raise ValueError(
                f"An answer is {expects}, without quotes or a unit, such as {such}; this one is "
                f"{answer!r}."
            )
        return value

    return read


def numbers(answer: Any) -> list[float]:
    """The numbers of a sequence; none if it is not one, or if something else is in it.  Where
    there is no order, as in a set or in the keys of a dictionary, there is no sequence."""
    if isinstance(answer, Mapping | Set):
        return []
    try:
        values = [_finite(value) for value in answer]
    except Exception:
        return []
    return [] if None in values else [value for value in values if value is not None]


def whole(answer: Any) -> int | None:
    """The whole number that an answer is, of whatever type; None for anything else."""
    value = _finite(answer)
    return int(value) if value is not None and value == int(value) else None


def _finite(answer: Any) -> float | None:
    """The finite number that an answer is; None for anything else, and for text or a truth
    value."""
    try:
        value = math.nan if isinstance(answer, str | bool) else float(answer)
    except Exception:
        return None
    return value if math.isfinite(value) else None
