"""How the runs of several methods ended, beside what was reported of others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from .style import COLOURS, Figure, axis, broken, figure, listed, number, rgba, wrapped

Ends = Mapping[str, Sequence[float | None]]


def scores(
    measured: Ends,
    metric: str,
    reported: Mapping[str, float | None] | None = None,
    reported_as: str = "reported",
    title: str | None = None,
) -> Figure:
    """The last score of every run, methods side by side; bars are means, where a run that diverged
    counts 0 and is marked by a cross.  The mean is written above bar and runs.

    measured     {method: a score per run, None for a run that diverged}
    reported     {method: the paper's, None where it has none}, in a panel and on a scale of its own
    reported_as  what that panel shows
    """
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(measured)}
    left = {name: values for name, values in measured.items() if values}
    right = {name: [value] for name, value in (reported or {}).items() if value is not None}
    traces = [*_bars(left, colours, "x", "y"), *_dots(left, colours)]
    died = any(value is None for values in left.values() for value in values)
    over = f"measured {metric}" + " (✕ diverged)" * died
    domains, beside = [(0.0, 1.0)], dict[str, Any]()
    if right:
        traces += _bars(right, colours, "x2", "y2")
        domains = [(0.0, SPLIT[0]), (SPLIT[1], 1.0)]
        beside = {
            "xaxis2": axis("", domain=domains[1], anchor="y2", **TICKS),
            "yaxis2": axis("", anchor="x2", range=_range(right)),
        }
    headings = [
        (start, wrapped(text, end - start))
        for (start, end), text in zip(domains, (over, reported_as), strict=False)
    ]
    lines = max(len(heading) for _, heading in headings)
    return figure(
        traces,
        title or _best(measured, metric),
        _ends(measured, metric) + _reported(reported, reported_as),
        height=334 + 16 * lines,
        showlegend=False,
        bargap=0.35,
        xaxis=axis("", domain=domains[0], **TICKS),
        yaxis=axis("", range=_range(left)),
        annotations=[_heading(x, heading) for x, heading in headings],
        above=6 + 16 * lines,
        margin={"l": 40},
        **beside,
    )


SPLIT = 0.57, 0.63  # where the measured panel ends and the reported one begins
TICKS = {
    "showgrid": False,
    "type": "category",
    "automargin": True,
    "tickfont": {"size": 10},
    "autotickangles": [0, 90],  # what slants leaves the figure on the right
}


def _heading(x: float, lines: Sequence[str]) -> dict[str, Any]:
    """Of a panel, above it."""
    where = {"x": x, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper"}
    text = {"text": "<br>".join(lines), "align": "left"}
    return {**text, **where, "yanchor": "bottom", "showarrow": False}


def _bars(ends: Ends, colours: Mapping[str, str], x: str, y: str) -> list[Any]:
    """Means as bars, and written above whatever is drawn of a method."""
    if not ends:
        return []
    names = [broken(name) for name in ends]
    bar = go.Bar(
        x=names,
        y=[_mean(values) for values in ends.values()],
        marker={
            "color": [rgba(colours[name], 0.35) for name in ends],
            "line": {"color": [colours[name] for name in ends], "width": 1.5},
        },
        xaxis=x,
        yaxis=y,
        hovertemplate="%{x}: %{y:.4g}<extra></extra>",
    )
    numbers = go.Scatter(
        x=names,
        y=[max(v or 0.0 for v in (_mean(values), *values)) for values in ends.values()],
        text=[_figure(values) for values in ends.values()],
        mode="markers+text",
        textposition="top center",
        marker={"size": 10, "opacity": 0},  # keeps the text off the runs' own marks
        cliponaxis=False,
        hoverinfo="skip",
        xaxis=x,
        yaxis=y,
    )
    return [bar, numbers]


def _figure(values: Sequence[float | None]) -> str:
    mean, died = number(_mean(values)), sum(value is None for value in values)
    return f"{died} of {len(values)} ✕<br>{mean}" if died else mean


def _dots(ends: Ends, colours: Mapping[str, str]) -> list[go.Scatter]:
    return [
        go.Scatter(
            x=[broken(name)] * len(values),
            y=[value or 0.0 for value in values],
            name=name,
            mode="markers",
            marker={
                "color": colours[name],
                "size": [11 if value is None else 6 for value in values],
                "symbol": ["x" if value is None else "circle" for value in values],
            },
            hovertemplate=f"{name}: %{{y:.4g}}<extra>one run</extra>",
        )
        for name, values in ends.items()
    ]


def _range(ends: Ends) -> list[float]:
    """From 0 to the best, with room above it for a mean, or a mean and a count of crosses."""
    values = [value for row in ends.values() for value in row]
    room = 1.4 if None in values else 1.2
    return [0.0, room * max((value or 0.0 for value in values), default=0.0) or 1.0]


def _mean(values: Sequence[float | None]) -> float:
    return statistics.mean(value or 0.0 for value in values)


def _best(measured: Ends, metric: str) -> str:
    means = {name: _mean(values) for name, values in measured.items() if values}
    if not means:
        return "No run has ended yet"
    first, *others = sorted(means, key=lambda name: -means[name])
    text = f"Mean {metric} at the end: {first} {number(means[first])}"
    return f"{text}, {others[-1]} {number(means[others[-1]])}" if others else text


def _ends(measured: Ends, metric: str) -> str:
    parts = []
    for name, values in measured.items():
        died = sum(value is None for value in values)
        text = f"{name} {number(_mean(values))}" if values else f"{name} has no run"
        parts.append(text + (f" ({died} of {len(values)} diverged)" if died else ""))
    return f"Mean {metric} after the last step: {listed(parts)}." if parts else "No methods."


def _reported(reported: Mapping[str, float | None] | None, reported_as: str) -> str:
    known = [f"{name} {v:g}" for name, v in (reported or {}).items() if v is not None]
    return f" Beside it, {reported_as}: {listed(known)}." if known else ""
