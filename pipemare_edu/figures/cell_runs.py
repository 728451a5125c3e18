"""The runs of one cell of a board: accuracy over the steps, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from .board import LIVE
from .style import DASHES, Figure, axis, figure


@dataclass(frozen=True)
class Line:
    """Accuracy over the steps of one run.  diverged: the step at which it did, or None."""

    label: str
    steps: Sequence[int]
    scores: Sequence[float]
    diverged: int | None = None


def cell_runs(lines: Sequence[Line], live: Line | None, title: str, steps: int) -> Figure:
    """Accuracy over the steps of every run of a cell, and of one made just now over them.

    steps  of a whole run
    """
    traces = [trace for n, line in enumerate(lines) for trace in _drawn(line, n)]
    if live is not None:
        traces += _drawn(live, None)
    return figure(
        traces,
        title,
        " ".join(map(_told, [*lines, *([live] if live is not None else [])])) or "No run yet.",
        height=300,
        xaxis=axis("step", range=[0, 1.02 * steps], zeroline=False),
        yaxis=axis("test accuracy, %", range=[0, 102]),
        uirevision="runs",
    )


def _drawn(line: Line, place: int | None) -> list[go.Scatter]:
    """A run's line, and a cross where it diverged; place: among the shipped ones, None if live."""
    colour = LIVE if place is None else "#0072B2"
    look = (
        {"color": colour, "width": 3}
        if place is None
        else {"color": colour, "width": 2, "dash": DASHES[place % len(DASHES)]}
    )
    curve = go.Scatter(
        x=list(line.steps),
        y=list(line.scores),
        name=line.label,
        legendgroup=line.label,
        mode="lines+markers" if place is None or len(line.steps) < 3 else "lines",
        line=look,
        marker={"symbol": "star" if place is None else "circle", "size": 8},
        hovertemplate=f"{line.label}, step %{{x}}: %{{y:.1f}} %<extra></extra>",
    )
    if line.diverged is None:
        return [curve]
    cross = go.Scatter(
        x=[line.diverged],
        y=[line.scores[-1] if line.scores else 0.0],
        legendgroup=line.label,
        showlegend=not line.steps,
        name=f"{line.label}: diverged",
        mode="markers",
        marker={"symbol": "x", "size": 11 if place is None else 9, "color": colour},
        hovertemplate=f"{line.label} diverged at step {line.diverged}<extra></extra>",
    )
    return [curve, cross] if line.steps else [cross]


def _told(line: Line) -> str:
    if line.diverged is not None:
        return f"{line.label} diverged at step {line.diverged}."
    if not line.scores:
        return f"{line.label} has begun."
    return f"{line.label}: {line.scores[-1]:.1f} % after step {line.steps[-1]}."
