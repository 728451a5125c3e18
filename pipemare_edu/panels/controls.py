"""Controls of a panel: labelled, and each reachable and movable with the keyboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ipywidgets as w

_WIDE = {"description_width": "92px"}


def choice(label: str, options: Sequence[str], value: str) -> w.Dropdown:
    return w.Dropdown(options=options, value=value, description=label, **_look())


def count(label: str, value: int, most: int, least: int = 1) -> w.IntSlider:
    """A small whole number; the keys step it by one."""
    most = max(most, value)
    return w.IntSlider(value, least, most, description=label, continuous_update=False, **_look())


def whole(label: str, value: int, least: int = 0) -> w.BoundedIntText:
    """A whole number to be typed."""
    return w.BoundedIntText(value, min=least, max=10**6, description=label, **_look())


def log_number(
    label: str, value: float, low: float, high: float, step: float = 0.1
) -> w.FloatLogSlider:
    """A positive number on a logarithmic slider, ten to the `low` up to ten to the `high`; the
    keys step it by `step` decades."""
    return w.FloatLogSlider(
        value,
        base=10,
        min=low,
        max=high,
        step=step,
        description=label,
        readout_format=".3g",
        continuous_update=False,
        **_look(),
    )


def number(label: str, value: float, low: float, high: float, step: float) -> w.FloatSlider:
    """A number from `low` to `high`; the keys step it by `step`."""
    return w.FloatSlider(
        value, min=low, max=high, step=step, description=label, continuous_update=False, **_look()
    )


def one_of(label: str, options: Sequence[float], value: float) -> w.SelectionSlider:
    """One of a few numbers; the keys step through them."""
    named = [(f"{option:g}", option) for option in options]
    return w.SelectionSlider(
        options=named, value=value, description=label, continuous_update=False, **_look()
    )


def following(control: w.Widget) -> w.Widget:
    """The same slider, reporting while it is dragged: for figures that draw in milliseconds."""
    control.continuous_update = True
    return control


def _look() -> dict[str, Any]:
    return {"style": dict(_WIDE), "layout": {"width": "300px"}}


def row(children: Iterable[w.Widget]) -> w.HBox:
    """Side by side, on a new line where there is no room."""
    return w.HBox(list(children), layout={"flex_flow": "row wrap", "align_items": "center"})


def close(widget: w.Widget) -> None:
    """Close a widget, what it holds, and the layout and style that came with it."""
    for child in getattr(widget, "children", ()):
        close(child)
    for name in ("layout", "style"):
        if isinstance(part := getattr(widget, name, None), w.Widget):
            part.close()
    widget.close()
