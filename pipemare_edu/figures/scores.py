"""How the runs of several methods ended, beside what was reported of others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from .style import COLOURS, Figure, axis, figure, listed, number, rgba

Ends = Mapping[str, Sequence[float | None]]


def scores(
    measured: Ends,
    metric: str,
    reported: Mapping[str, float | None] | None = None,
    reported_as: str = "reported",
    title: str | None = None,
) -> Figure:
    """The last score of every run, methods side by side; bars are means, where a run that diverged
    counts 0 and is marked by a cross.

    measured     {method: a score per run, None for a run that diverged}
    reported     {method: the paper's, None where it has none}, in a panel and on a scale of its own
    reported_as  what that panel shows
    """
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(measured)}
    traces = [*_bars(measured, colours, "x", "y"), *_dots(measured, colours)]
    known = {name: [value] for name, value in (reported or {}).items() if value is not None}
    if known:
        traces += _bars(known, colours, "x2", "y2")
    ticks = {"showgrid": False, "type": "category", "automargin": True}
    beside: dict[str, Any] = {}
    if known:
        beside = {
            "xaxis2": axis("", domain=[0.68, 1], anchor="y2", **ticks),
            "yaxis2": axis(reported_as, anchor="x2", range=_range(known)),
        }
    return figure(
        traces,
        title or _best(measured, metric),
        _ends(measured, metric) + _reported(reported, reported_as),
        height=340,
        showlegend=False,
        bargap=0.35,
        xaxis=axis("", domain=[0, 0.58] if known else [0, 1], **ticks),
        yaxis=axis(f"{metric}, measured", range=_range(measured)),
        **beside,
    )


def _bars(ends: Ends, colours: Mapping[str, str], x: str, y: str) -> list[go.Bar]:
    means = {name: _mean(values) for name, values in ends.items() if values}
    if not means:
        return []
    bar = go.Bar(
        x=[_broken(name) for name in means],
        y=list(means.values()),
        text=[number(mean) for mean in means.values()],
        textposition="outside",
        cliponaxis=False,
        marker={
            "color": [rgba(colours[name], 0.35) for name in means],
            "line": {"color": [colours[name] for name in means], "width": 1.5},
        },
        xaxis=x,
        yaxis=y,
        hovertemplate="%{x}: %{y:.4g}<extra></extra>",
    )
    return [bar]


def _dots(ends: Ends, colours: Mapping[str, str]) -> list[go.Scatter]:
    return [
        go.Scatter(
            x=[_broken(name)] * len(values),
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
        if values
    ]


def _range(ends: Ends) -> list[float]:
    """From 0 to the best, with room for the number above its bar."""
    best = max((value or 0.0 for row in ends.values() for value in row), default=0.0)
    return [0.0, 1.15 * best or 1.0]


def _mean(values: Sequence[float | None]) -> float:
    return statistics.mean(value or 0.0 for value in values)


def _broken(name: str) -> str:
    """A label on two lines."""
    return name.replace(" ", "<br>", 1)


def _best(measured: Ends, metric: str) -> str:
    means = {name: _mean(values) for name, values in measured.items() if values}
    if not means:
        return "No run has ended yet"
    first, *others = sorted(means, key=lambda name: -means[name])
    text = f"{first} ends at {metric} {number(means[first])}"
    return f"{text}, {others[-1]} at {number(means[others[-1]])}" if others else text


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
