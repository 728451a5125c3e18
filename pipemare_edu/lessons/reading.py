"""Numbers in the forms that learners write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def number(expects: str, such: str) -> Callable[[Any], float]:
    """A reader of finite numbers, of whatever type; ValueError for anything else.

    expects, such  what the number is, and one that could be: for the message
    """

    def read(answer: Any) -> float:
        try:
            value = math.nan if isinstance(answer, str | bool) else float(answer)
        except Exception:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"An answer is {expects}, without quotes or a unit, such as {such}; this one is "
                f"{answer!r}."
            )
        return value

    return read
