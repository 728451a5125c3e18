"""Answers in the forms that learners write, put into the one that properties look at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ..plan.ops import Op, parse

LIST = 'a text of operations, such as "F0 B0 U0"'


def as_text(answer: Any) -> str:
    """A list of operations as text, from a text, a list of texts, or operations."""
    if isinstance(answer, list | tuple) and all(isinstance(word, str | Op) for word in answer):
        answer = " ".join(map(str, answer))
    if not isinstance(answer, str):
        raise ValueError(f"An answer is {LIST}, and this one is {answer!r}.")
    text = re.sub(r"[fbuer]\d+", lambda op: op[0].upper(), answer.replace(",", " "))
    try:
        return str(parse(text))
    except ValueError as error:
        raise ValueError(f"An answer is {LIST}, but {error}.") from None


def number(expects: str, such: str) -> Callable[[Any], float]:
    """A reader of finite numbers, of whatever type.

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
