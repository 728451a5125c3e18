"""How far the gradient is off at each stage because its backward read other weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from .style import COLOURS, Figure, axis, figure, listed

NAMES = ("newest weights", "T2's estimate")


def discrepancy_bars(
    newest: Sequence[float],
    t2: Sequence[float],
    size: Sequence[float] | None = None,
    title: str | None = None,
) -> Figure:
    """Bars per stage (counted from 1), in per cent of the size of the true gradient.

    newest, t2  ||g(u_fwd, u_bkwd) - g(u_fwd, u_fwd)|| / ||g(u_fwd, u_fwd)|| with the newest weights
                as u_bkwd, and with w - tau delta; nan for a stage without weights
    size        ||g(u_fwd, u_fwd)||, told on hovering
    """
    stages = np.arange(1, len(newest) + 1)
    off = [100 * np.array(kind, dtype=float) for kind in (newest, t2)]
    sizes = np.full(len(stages), np.nan) if size is None else np.array(size, dtype=float)
    hatches = ("/", "")
    bars = [
        go.Bar(
            x=stages,
            y=values,
            name=f"backward reads {name}",
            customdata=sizes * values / 100,
            marker={
                "color": colour,
                "pattern": {"shape": hatch, "fillmode": "overlay", "fgcolor": "white", "size": 6},
            },
            hovertemplate="stage %{x}: off by %{y:.3g} % of the gradient (norm %{customdata:.3g})"
            f"<extra>{name}</extra>",
        )
        for values, name, colour, hatch in zip(
            off, NAMES, (COLOURS[1], COLOURS[2]), hatches, strict=True
        )
    ]
    return figure(
        bars,
        title or _message(*off),
        _words(*off),
        height=330,
        barmode="group",
        bargap=0.25,
        xaxis=axis("stage", tickvals=stages, showgrid=False),
        yaxis=axis("off by (% of its size)", rangemode="tozero"),
    )


def _message(newest: np.ndarray, t2: np.ndarray) -> str:
    return (
        f"At stage 1 the newest weights put the gradient off by {newest[0]:.0f} % of its size, "
        f"T2's by {t2[0]:.0f} %"
    )


def _words(newest: np.ndarray, t2: np.ndarray) -> str:
    rows = [f"{a:.0f} and {b:.0f}" for a, b in zip(newest, t2, strict=True)]
    return (
        f"For stages 1 to {len(rows)}, how far the gradient is off in per cent of its size, with "
        f"the newest weights and with T2's estimate in the backward: {listed(rows)}."
    )
