"""Staleness per stage: measured by version stamps, beside what the lists imply and the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .style import GREY, Figure, axis, figure, listed, number

if TYPE_CHECKING:
    from ..trainer.run import Delays, Staleness


def staleness_bars(
    staleness: Staleness,
    formula: Sequence[float] | None = None,
    backward: bool = False,
    title: str | None = None,
    measured: bool = True,
) -> Figure:
    """Bars per stage (counted from 1): the mean age, in updates, of the weights that forwards
    read, once the pipe is full.

    staleness  run.staleness
    formula    tau of every stage, drawn as diamonds (method.taus(stages, microbatches))
    backward   True: of the weights that backwards read
    measured   False: nothing has run yet, and only what is implied is drawn
    """
    delays = staleness.backward if backward else staleness.forward
    stages = np.arange(1, len(delays) + 1)
    what = "backward" if backward else "forward"
    means = np.array([d.mean for d in delays])
    implied = np.array([d.implied_mean for d in delays])
    traces: list[go.Bar | go.Scatter] = _bars(stages, delays)
    if formula is not None:
        traces.append(_formula(stages, formula))
    return figure(
        traces if measured else traces[1:],
        title or _message(means if measured else implied, implied, what, measured),
        _words(means if measured else None, implied, formula, what),
        height=300,
        barmode="group",
        bargap=0.25,
        xaxis=axis("stage", tickvals=stages, showgrid=False),
        yaxis=axis("updates old", rangemode="tozero"),
    )


def _bars(stages: np.ndarray, delays: Sequence[Delays]) -> list[go.Bar | go.Scatter]:
    """What was measured, and what is implied, hatched."""
    hatch = {
        "shape": "/", "fillmode": "overlay", "fgcolor": "#E69F00", "size": 6, "solidity": 0.3,
    }  # fmt: skip
    return [
        go.Bar(
            x=stages,
            y=np.array([d.mean for d in delays]),
            name="measured",
            customdata=np.array([d.max for d in delays]),
            marker={"color": "#0072B2"},
            hovertemplate="stage %{x}: measured mean %{y:.3g}, most %{customdata}<extra></extra>",
        ),
        go.Bar(
            x=stages,
            y=np.array([d.implied_mean for d in delays]),
            name="implied by the schedule",
            customdata=np.array([d.implied_max for d in delays]),
            marker={
                "color": "rgba(230,159,0,0.25)",
                "pattern": hatch,
                "line": {"color": "#E69F00", "width": 1.5},
            },
            hovertemplate="stage %{x}: implied mean %{y:.3g}, most %{customdata}<extra></extra>",
        ),
    ]


def _formula(stages: np.ndarray, formula: Sequence[float]) -> go.Scatter:
    return go.Scatter(
        x=stages,
        y=np.array(formula, dtype=float),
        name="formula τ",
        mode="markers",
        marker={"symbol": "diamond-open", "size": 11, "color": GREY, "line": {"width": 2}},
        hovertemplate="stage %{x}: formula %{y:.3g}<extra></extra>",
    )


def _message(means: np.ndarray, implied: np.ndarray, what: str, measured: bool) -> str:
    if not len(means):
        return "Nothing was measured"
    if not measured:
        return f"On paper: stage 1's {what}s read weights {number(implied[0])} updates old"
    if not means.any():
        return f"Every {what} reads the newest weights"
    agree = "as its schedule implies"
    if not np.allclose(means, implied):
        agree = f"where its schedule implies {number(implied[0])}"
    return f"Stage 1's {what}s read weights {number(means[0])} updates old, {agree}"


def _words(
    means: np.ndarray | None, implied: np.ndarray, formula: Sequence[float] | None, what: str
) -> str:
    if not len(implied):
        return "No update was applied."
    seen = "" if means is None else f"measured {listed([number(v) for v in means])}; "
    text = (
        f"Mean age of the weights that {what}s read, from the first stage to the last, in updates: "
        f"{seen}implied by the schedule {listed([number(v) for v in implied])}"
    )
    if formula is not None:
        text += f"; by the formula {listed([number(v) for v in formula])}"
    return f"{text}."
