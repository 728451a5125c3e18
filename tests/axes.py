"""Axes on which nothing lies."""

from __future__ import annotations

import plotly.graph_objects as go


def bare(shown: go.Figure) -> list[str]:
    """The axes of a figure, but for those out of sight, on which no trace has a point.

    Plotly leaves such axes out, or draws their lines at NaN once a live figure comes to have them.
    """
    sides = (shown.select_xaxes(), shown.select_yaxes())
    axes = [a.plotly_name.replace("axis", "") for s in sides for a in s if a.visible is not False]
    for trace in shown.data:
        if all(len(trace[k]) for k in "xyz" if k in trace and trace[k] is not None):
            axes = [a for a in axes if a not in (trace.xaxis or "x", trace.yaxis or "y")]
    return axes
