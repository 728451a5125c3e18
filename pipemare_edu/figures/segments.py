"""Recompute: activations held for every segment length, and stage by stage for one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ..plan.held import Held
from .ledger import LOOKS, filled, stage_ticks
from .style import COLOURS, GREY, Figure, Look, axis, figure, listed, number


def by_formula(stages: int, segment: float) -> float:
    """P^2/S + P S, the stage activations of equal segments (PAPER.md, section 2)."""
    return stages**2 / segment + stages * segment


def segment_curve(
    stages: int, slots: Sequence[int], segment: int, ran: int | None = None
) -> Figure:
    """Stage activations over the segment length S, from 1 to P.

    slots    counted in the operation lists, for S = 1, 2, ... P
    segment  the S that is chosen
    ran      how many a real run with that S held
    Lines: P^2/S + P S; all kept, as a list counts them, P (P+1), and as the paper does, P^2.
    """
    lengths = np.arange(1, stages + 1)
    fine = np.linspace(1, stages, 8 * stages)
    root = math.sqrt(stages)
    chosen = slots[segment - 1]
    traces = [
        _line(fine, [by_formula(stages, s) for s in fine], "P²/S + P S", 0, "solid"),
        _line([1, stages], [stages * (stages + 1)] * 2, "all kept, counted: P (P+1)", 1, "dash"),
        _line([1, stages], [stages**2] * 2, "all kept, as the paper counts: P²", 3, "dot"),
        _marks(lengths, slots, "counted in the lists", "circle", COLOURS[0], 7),
        _marks([segment], [chosen], f"S = {segment}", "circle-open", COLOURS[1], 15),
    ]
    if ran is not None:
        traces.append(_marks([segment], [ran], "counted in a real run", "x", COLOURS[2], 11))
    return figure(
        traces,
        f"Segments of {segment}: {chosen} stage activations in place of {stages * (stages + 1)}",
        _curve_words(stages, slots, segment, ran),
        height=360,
        xaxis=axis("segment length S", range=[0.5, stages + 0.5], zeroline=False),
        yaxis=axis("stage activations", rangemode="tozero"),
        shapes=[
            {"type": "line", "x0": root, "x1": root, "y0": 0, "y1": 1, "yref": "y domain",
             "line": {"color": GREY, "dash": "dashdot", "width": 1}}
        ],
        annotations=[
            {"x": root, "y": 0, "yref": "y domain", "text": f"√P = {number(root)}",
             "showarrow": False, "xanchor": "left", "xshift": 4, "yanchor": "bottom"}
        ],
    )  # fmt: skip


def _line(x: object, y: object, name: str, n: int, dash: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        line={"color": COLOURS[n], "dash": dash, "width": 2},
        hovertemplate=f"{name}: %{{y:.4~g}}<extra></extra>",
    )


def _marks(x: object, y: object, name: str, symbol: str, colour: str, size: int) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="markers",
        marker={
            "symbol": symbol,
            "size": size,
            "color": colour,
            "line": {"color": colour, "width": 2},
        },
        hovertemplate=f"S = %{{x}}, {name}: %{{y}}<extra></extra>",
    )


def _curve_words(stages: int, slots: Sequence[int], segment: int, ran: int | None) -> str:
    least = min(slots)
    best = [str(s) for s, count in enumerate(slots, start=1) if count == least]
    also = "" if ran is None else f", and a real run held {ran}"
    return (
        f"Stage activations of {stages} stages over the segment length. All kept: counted "
        f"{stages * (stages + 1)}, as the paper counts {stages**2}. With segments of {segment}: "
        f"counted in the lists {slots[segment - 1]}, by P²/S + P S "
        f"{number(by_formula(stages, segment))}{also}. Least: {least}, with S = {listed(best)}; "
        f"the square root of P is {number(math.sqrt(stages))}."
    )


def held_bars(held: Sequence[Held], depths: Sequence[int], segment: int) -> Figure:
    """Bars per stage (counted from 1): what it holds at its peak with segments of `segment`.

    depths  D_i of every stage: all kept, D_i + 1 activations (the paper counts D_i)
    """
    stages = list(range(1, len(held) + 1))
    kept = [h.slots - h.inputs for h in held]
    inputs = [h.inputs for h in held]
    most = max(range(len(held)), key=lambda i: held[i].slots)
    return figure(
        [
            _bars(stages, kept, LOOKS["activations"]),
            _bars(stages, inputs, LOOKS["inputs"]),
            _marks(stages, [d + 1 for d in depths], "all kept: Dᵢ + 1", "line-ew", COLOURS[1], 14),
            _marks(stages, list(depths), "the paper's count: Dᵢ", "diamond-open", GREY, 8),
        ],
        f"At its peak stage {most + 1} holds {held[most].slots}, and its segment's others fewer"
        if segment > 1
        else "Segments of 1: an input waits for each activation that is not kept",
        f"Held at the peak, from the first stage to the last: {listed([h.slots for h in held])} "
        f"stage activations, of which inputs that wait for a re-run: {listed(inputs)}. All kept: "
        f"{listed([d + 1 for d in depths])}; the paper counts one fewer at each stage.",
        height=300,
        barmode="stack",
        bargap=0.3,
        xaxis=axis("stage", **stage_ticks(len(held))),
        yaxis=axis("held at the peak", rangemode="tozero"),
    )


def _bars(stages: Sequence[int], values: Sequence[int], look: Look) -> go.Bar:
    return go.Bar(
        x=list(stages),
        y=list(values),
        name=look.name,
        marker=filled(look),
        hovertemplate=f"stage %{{x}}: {look.name} %{{y}}<extra></extra>",
    )
