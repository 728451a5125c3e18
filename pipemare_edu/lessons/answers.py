"""Reading numbers out of whatever a learner gives as an answer."""

from __future__ import annotations

import math
from typing import Any


def number(answer: Any) -> float | None:
    """The finite number that an answer is, of whatever type; None for anything else, and for text
    or a truth value."""
    try:
        value = math.nan if isinstance(answer, str | bool) else float(answer)
    except Exception:
        return None
    return value if math.isfinite(value) else None


def numbers(answer: Any) -> list[float]:
    """The numbers of a sequence; none if it is not one, or if something else is in it."""
    try:
        values = [number(value) for value in answer]
    except Exception:
        return []
    return [] if None in values else [value for value in values if value is not None]
