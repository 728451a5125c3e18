"""Predictions: said before a run, shown beside what it measured."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import TYPE_CHECKING, Any

from .notes import Note
from .progress import PROGRESS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def predict(name: str, value: Any) -> Note:
    """Record the number that you expect, under `name`; `...` takes a prediction back.

    A text that starts with a number, such as "40 %", counts as that number.
    """
    PROGRESS.predictions.pop(name, None)
    if value is ...:
        return Note(f"No prediction of {name} yet: put your guess in place of the ... above.")
    number = _number(value)
    if number is None:
        return Note(f"A prediction is a number, such as 40, so {value!r} is not noted.")
    PROGRESS.predictions[name] = number
    return Note(f"Noted: you predict {number} for {name}.")


def _number(value: Any) -> Any:
    """The number that `value` is, or that it begins with and that is the only one in it."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([-+]?\d+(?:\.\d+)?)\D*", value)
        return None if found is None else float(found[1]) if "." in found[1] else int(found[1])
    known = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None


def prediction(name: str) -> Any:
    """The number that was predicted under `name`, or None."""
    return PROGRESS.predictions.get(name)


def compare(
    name: str, found: float, unit: str = "", digits: int = 0, how: str = "measured"
) -> Note:
    """A prediction beside the number that came out.

    how  "measured", which is how tests know that a number varies; "counted" if it does not
    """
    result = f"{name}: {how} {found:.{digits}f}{unit and ' ' + unit}"
    value = prediction(name)
    said = "you made no prediction" if value is None else f"you predicted {value}"
    return Note(f"{result}; {said}{unit and value is not None and ' ' + unit or ''}.")


def draw(figure: Figure, name: str, axis: str = "y", row: int | None = None) -> Figure:
    """Draw a prediction over a figure as a dashed line at that value of an axis, and return the
    figure.  A prediction that is missing draws nothing.

    axis  "x" or "y"; row is the subplot's, in a figure that has several
    """
    value = prediction(name)
    if value is not None:
        line = figure.add_vline if axis == "x" else figure.add_hline
        where = {} if row is None else {"row": row, "col": 1}
        line(value, line_dash="dash", line_color="#CC79A7", annotation_text="predicted", **where)
    return figure
