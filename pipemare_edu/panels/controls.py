"""Controls of a panel: labelled, and each reachable and movable with the keyboard.

A widget takes a number beyond its limits for the limit.  Whoever asked for that number gets a
ValueError instead, here and from `taken`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import ipywidgets as w

from ..checks import unknown

_WIDE = {"description_width": "92px"}
W = TypeVar("W", bound=w.Widget)


def choice(
    label: str, options: Sequence[str] | Sequence[tuple[str, Any]], value: Any
) -> w.Dropdown:
    """One of `options`, which are texts or (text, value) pairs."""
    return _set(w.Dropdown(options=options, description=label, **_look()), value)


def count(label: str, value: int, most: int, least: int = 1, follow: bool = False) -> w.IntSlider:
    """A small whole number; the keys step it by one.  follow: it counts while it is dragged."""
    most = max(most, value)
    slider = w.IntSlider(least, least, most, description=label, continuous_update=follow, **_look())
    return _set(slider, value)


def decimal(
    label: str, value: float, least: float, most: float, step: float, follow: bool = False
) -> w.FloatSlider:
    """A number, shown to the digits of `step`, by which the keys move it.  follow: it counts while
    it is dragged."""
    least, most = min(least, value), max(most, value)
    return w.FloatSlider(
        value,
        min=least,
        max=most,
        step=step,
        description=label,
        readout_format=".1f" if step >= 0.1 else ".2f",
        continuous_update=follow,
        **_look(),
    )


def several(label: str, options: Sequence[str]) -> w.SelectMultiple:
    """Some of `options`, all of them at first."""
    return w.SelectMultiple(
        options=options, value=tuple(options), rows=len(options), description=label, **_look()
    )


def switch(label: str, value: bool) -> w.Checkbox:
    """On or off; the space bar turns it."""
    layout = {"width": "auto", "margin": "2px 12px"}
    return w.Checkbox(value=value, description=label, indent=False, layout=layout)


def lines(label: str, value: str, rows: int) -> w.Textarea:
    """Text of several lines, taken over when the learner leaves it."""
    look = _look() | {"layout": {"width": "96%"}}
    return w.Textarea(value, rows=rows, description=label, continuous_update=False, **look)


def button(label: str, icon: str) -> w.Button:
    return w.Button(description=label, icon=icon)


def whole(label: str, value: int, least: int = 0) -> w.BoundedIntText:
    """A whole number to be typed."""
    most = max(10**6, value)
    return _set(w.BoundedIntText(least, min=least, max=most, description=label, **_look()), value)


def log_number(
    label: str, value: float, low: float, high: float, step: float = 0.1, follow: bool = False
) -> w.FloatLogSlider:
    """A positive number on a logarithmic slider, ten to the `low` up to ten to the `high`; the
    keys step it by `step` decades.  follow: it counts while it is dragged."""
    if value > 0:
        low, high = min(low, math.log10(value)), max(high, math.log10(value))
    slider = w.FloatLogSlider(
        base=10,
        min=low,
        max=high,
        step=step,
        description=label,
        readout_format=".3g",
        continuous_update=follow,
        **_look(),
    )
    return _set(slider, value)


def one_of(label: str, options: Sequence[float], value: float) -> w.SelectionSlider:
    """One of a few numbers; the keys step through them."""
    named = [(f"{option:g}", option) for option in options]
    slider = w.SelectionSlider(options=named, description=label, continuous_update=False, **_look())
    return _set(slider, value)


def taken(name: str, control: w.Widget, value: Any) -> Any:
    """`value` if a control can stand at it; else ValueError, with what it can stand at."""
    if hasattr(control, "options"):
        known = [o[1] if isinstance(o, tuple) else o for o in control.options]
        for one in value if isinstance(control, w.SelectMultiple) else [value]:
            if one not in known:
                raise ValueError(unknown(name, one, list(map(str, known))))
    elif hasattr(control, "min"):
        least, most = control.min, control.max
        if isinstance(control, w.FloatLogSlider):
            least, most = control.base**least * (1 - 1e-9), control.base**most * (1 + 1e-9)
        counts = isinstance(control, w.IntSlider | w.BoundedIntText)
        right = isinstance(value, Integral if counts else Real) and not isinstance(value, bool)
        if not right or not least <= value <= most:
            limits = f"{least} to {most}" if counts else f"{least:g} to {most:g}"
            what = "a whole number" if counts else "a number"
            raise ValueError(f"{name} is {value!r}: give {what} from {limits}")
    return value


def _set(control: W, value: Any) -> W:
    """The control at its first value."""
    control.value = taken(control.description, control, value)
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
