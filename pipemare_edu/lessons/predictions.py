"""Predictions: said before a run, shown beside what it measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .notes import Note
from .progress import PROGRESS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def predict(name: str, value: Any) -> Note:
    """Record what you expect, under `name`; `...` takes a prediction back."""
    if value is ...:
        PROGRESS.predictions.pop(name, None)
        return Note(f"No prediction of {name} yet: put your guess in place of the ... above.")
    PROGRESS.predictions[name] = value
    return Note(f"Noted: you predict {value} for {name}.")


def prediction(name: str) -> Any:
    """What was predicted under `name`, or None."""
    return PROGRESS.predictions.get(name)


def compare(name: str, measured: float, unit: str = "", digits: int = 0) -> Note:
    """A prediction beside the number that came out.

    The number follows the word "measured", which is how tests know that it varies.
    """
    result = f"{name}: measured {measured:.{digits}f}{unit and ' ' + unit}"
    value = prediction(name)
    said = "you made no prediction" if value is None else f"you predicted {value}"
    return Note(f"{result}; {said}{unit and value is not None and ' ' + unit or ''}.")


def draw(figure: Figure, name: str, axis: str = "y", row: int | None = None) -> Figure:
    """Draw a prediction over a figure as a dashed line at that value of an axis, and return the
    figure.  A prediction that is missing, or not a number, draws nothing.

    axis  "x" or "y"; row is the subplot's, in a figure that has several
    """
    value = prediction(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        line = figure.add_vline if axis == "x" else figure.add_hline
        where = {} if row is None else {"row": row, "col": 1}
        line(value, line_dash="dash", line_color="#CC79A7", annotation_text="predicted", **where)
    return figure
