"""How every figure looks, and the words that go with it.

Colours are Okabe and Ito's, told apart with any colour vision; a hatch or a dash beside each says
the same without colour.  The background is transparent and text is a grey that reads on white and
on black alike.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

GREY = "#777777"  # contrast 4.5 on white, 4.2 on JupyterLab's black
FAINT = "rgba(128,128,128,0.28)"
HATCH = "rgba(128,128,128,0.45)"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LINE = 56  # characters of a title that fit beside each other in 460 pixels
LEFT, RIGHT = (0.0, 0.54), (0.68, 1.0)  # of two plots; 460 pixels leave room for labels between


class Look(NamedTuple):
    """One kind of operation: its name, fill, hatch, and the colour of text upon it."""

    name: str
    colour: str
    hatch: str
    ink: str


KINDS = {
    "F": Look("forward", "#0072B2", "", "white"),
    "B": Look("backward", "#E69F00", "/", "black"),
    "R": Look("recompute", "#56B4E9", "\\", "black"),
    "U": Look("update", "#009E73", "x", "white"),
    "E": Look("evaluation", "#CC79A7", ".", "black"),
}


class Figure(go.Figure):
    """A Plotly figure whose text form is its description, so that a page without a kernel, a
    screen reader or a terminal gets the message too."""

    _ipython_display_ = None  # else Plotly displays by itself, without the text
    _repr_html_ = None  # else a page fetches plotly.js from the network

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super()._repr_mimebundle_(*args, **kwargs), "text/plain": describe(self)}

    def __repr__(self) -> str:
        return describe(self)


def figure(
    traces: Iterable[Any], title: str, description: str, *, above: int = 0, **layout: Any
) -> Figure:
    """A figure in the house style.

    title        the message, as a sentence
    description  what a reader who does not see the figure should know
    above        pixels that the figure needs between its plot and the title
    layout       Plotly layout properties that are this figure's own

    The title stands upon the plot, with room for two lines, so that a live figure keeps its place
    when the message grows; the legend takes what it needs below.  So they never meet.
    """
    lines = wrapped(title)
    base: dict[str, Any] = {
        "font": {"color": GREY, "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "meta": {"description": description},
        "template": {},  # Plotly's own weighs 7 KB a figure
    }
    margin = {"l": 60, "r": 20, "t": above + 14 + 20 * max(2, len(lines)), "b": 45}
    legend = {"orientation": "h", "x": 0, "traceorder": "normal"}
    legend |= {"yref": "container", "y": 0, "yanchor": "bottom"}
    layout["margin"] = margin | layout.get("margin", {})
    layout["legend"] = legend | layout.get("legend", {})
    layout["title"] = {
        "text": "<br>".join(lines),
        "font": {"size": 15},
        **{"x": 0.01, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom"},
        "pad": {"b": above + 10 + 20 * (len(lines) - 1)},  # the first line is what is anchored
    }
    # Looking at every property again took half of the time of a figure that follows a slider.
    shown = Figure(data=list(traces), layout=base | layout, _validate=False)
    _hold_axes(shown)
    return shown


def _hold_axes(shown: Figure) -> None:
    """Keep the place of axes on which no point lies (yet), without numbers that nothing gave.

    Plotly takes a trace without a point for hidden, and axes with hidden traces alone it leaves
    out, or draws at NaN when a live figure comes to have them.  One point without a value is
    enough to hold them.
    """
    pointed = {name for trace in shown.data if _has_points(trace) for name in _axes_of(trace)}
    pairs = set()
    for one in (*shown.select_xaxes(), *shown.select_yaxes()):
        letter, number = one.plotly_name[0], one.plotly_name[5:]
        if f"{letter}{number}" in pointed or one.visible is False:
            continue
        if one.range is None and one.matches is None:
            one.update(range=[0, 1], showticklabels=False)
        other = one.anchor or ("y" if letter == "x" else "x")
        pairs.add((letter + number, other) if letter == "x" else (other, letter + number))
    held = {"x": [None], "y": [None], "name": "", "showlegend": False, "hoverinfo": "skip"}
    shown.add_traces([go.Scatter(xaxis=x, yaxis=y, **held) for x, y in sorted(pairs)])


def _has_points(trace: Any) -> bool:
    given = [trace[key] for key in ("x", "y", "z") if key in trace and trace[key] is not None]
    return bool(given) and all(len(values) for values in given)


def _axes_of(trace: Any) -> tuple[str, str]:
    return trace.xaxis or "x", trace.yaxis or "y"


def wrapped(text: str, share: float = 1.0) -> list[str]:
    """A title, or a heading above a `share` of the figure, in as few lines as a narrow page allows,
    about equally long."""
    longest = int(share * LINE)
    fewest = len(textwrap.wrap(text, longest, break_on_hyphens=False))
    widths = range(len(text) // max(1, fewest), longest + 1)
    tried = (textwrap.wrap(text, width, break_on_hyphens=False) for width in widths if width)
    return next((lines for lines in tried if len(lines) <= fewest), [text])


def broken(name: str) -> str:
    """A method's name as a label, on two lines; a narrow page has no room for one."""
    return name.replace(" ", "<br>", 1)


def headline(shown: go.Figure) -> str:
    """The title of a figure from this package, in one line."""
    return (shown.layout.title.text or "").replace("<br>", " ")


def describe(shown: go.Figure) -> str:
    """The title and the description in words of a figure from this package."""
    meta = shown.layout.meta or {}
    return " ".join(filter(None, [sentence(headline(shown)), meta["description"]]))


def rgba(colour: str, opacity: float) -> str:
    """A colour such as "#0072B2", seen through."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red}, {green}, {blue}, {opacity})"


def placeholder(title: str, height: int) -> Figure:
    """An empty figure that says what will be there."""
    hidden = {"visible": False}
    said = "Nothing has run yet."
    margin = {"b": 10}  # the lowest are little higher than their title
    return figure([], title, said, height=height, margin=margin, xaxis=hidden, yaxis=hidden)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis in the house style."""
    return {
        "title": {"text": title, "standoff": 8},
        "automargin": True,
        "gridcolor": FAINT,
        "zerolinecolor": FAINT,
        "linecolor": GREY,
        "tickcolor": GREY,
        **more,
    }


def log_axis(title: str, values: Iterable[float], **more: Any) -> dict[str, Any]:
    """A logarithmic axis for these values, of which those up to 0 have no place.  Ticks are
    numbers in full, 1, 2 and 5 of every decade, or decades alone where there are more than
    three: Plotly would write "5" for 0.5."""
    drawn = [value for value in values if 0 < value < math.inf] or [1.0]
    low, high = math.log10(min(drawn)), math.log10(max(drawn))
    parts = (1, 2, 5) if high - low <= 3 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    ticks = [part * 10.0**decade for decade in decades for part in parts]
    return axis(title, type="log", tickvals=ticks, exponentformat="none", **more)


def sentence(text: str) -> str:
    """`text` with a full stop."""
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def listed(values: Sequence[Any]) -> str:
    """ "1, 2 and 3"."""
    words = [str(v) for v in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def number(value: float) -> str:
    """Three digits, no more."""
    return f"{value:.3g}" if abs(value) < 1e6 else f"{value:.0e}"
