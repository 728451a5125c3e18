"""How many times as fast as one process: by the clock over the microbatches, and measured."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from .style import COLOURS, GREY, Figure, axis, figure


def speedup(
    clock: Sequence[float],
    microbatches: int,
    limit: float,
    measured: float | None = None,
    label: str = "",
    title: str | None = None,
) -> Figure:
    """The speed-up of several workers over one process that does all of their work.

    clock         by the virtual clock, with 1, 2, ... microbatches in a minibatch
    microbatches  N of what is shown
    limit         all work over that of the costliest stage: no schedule gets past it
    measured      the speed-up of a run with N
    label         of the schedule, for the title
    """
    now = clock[microbatches - 1]
    seen = "" if measured is None else f", measured {measured:.2f}"
    traces = [_clock(clock), _limit(len(clock), limit), _shown(microbatches, now)]
    if measured is not None:
        traces.append(_measured(microbatches, measured))
    return figure(
        traces,
        title or f"{label}: {now:.2f} times as fast as one process, by the clock{seen}",
        f"Speed-up over the microbatches of a minibatch, by the clock: {clock[0]:.2f} with one, "
        f"{now:.2f} with {microbatches}{seen}, {clock[-1]:.2f} with {len(clock)}. No schedule gets "
        f"past {limit:.2f}.",
        height=300,
        xaxis=axis("microbatches N", range=[0.5, len(clock) + 0.5], nticks=len(clock) + 1),
        yaxis=axis("times one process", rangemode="tozero"),
    )


def _clock(clock: Sequence[float]) -> go.Scatter:
    return go.Scatter(
        x=list(range(1, len(clock) + 1)),
        y=list(clock),
        name="by the clock, without messages",
        mode="lines+markers",
        line={"color": COLOURS[0], "width": 2},
        marker={"size": 6},
        hovertemplate="N = %{x}: %{y:.2f} times<extra>by the clock</extra>",
    )


def _limit(most: int, limit: float) -> go.Scatter:
    return go.Scatter(
        x=[0, most + 1],
        y=[limit, limit],
        name="limit of any schedule",
        mode="lines",
        line={"color": GREY, "dash": "dot", "width": 1.5},
        hovertemplate="%{y:.2f} times<extra>limit</extra>",
    )


def _shown(microbatches: int, now: float) -> go.Scatter:
    return go.Scatter(
        x=[microbatches],
        y=[now],
        name=f"N = {microbatches}",
        mode="markers",
        marker={"symbol": "circle-open", "size": 14, "color": COLOURS[0], "line": {"width": 2}},
        hovertemplate="by the clock %{y:.2f} times<extra></extra>",
    )


def _measured(microbatches: int, measured: float) -> go.Scatter:
    return go.Scatter(
        x=[microbatches],
        y=[measured],
        name="measured",
        mode="markers",
        marker={"symbol": "x", "size": 12, "color": COLOURS[1], "line": {"width": 1}},
        hovertemplate="measured %{y:.2f} times<extra></extra>",
    )
