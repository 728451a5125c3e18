"""What a bubble costs, in the two ratios that are both called "the bubble".

idle fraction  idle time over all time        (P-1)/(N+P-1)
overhead       idle time over working time    (P-1)/N
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import plotly.graph_objects as go

from .style import COLOURS, DASHES, Figure, axis, figure

MOST = 32  # microbatches on the axis, at least


def idle_fraction(stages: int, microbatches: int, naive: bool = False) -> Fraction:
    """The share of stage time that is idle in a synchronous step of equal stages: (P-1)/(N+P-1)
    for GPipe and 1F1B; naive, with one microbatch in the pipe at a time, (P-1)/P."""
    return Fraction(stages - 1, stages if naive else microbatches + stages - 1)


def overhead(idle: float | Fraction) -> float:
    """Idle time over working time, from the idle fraction; infinite if all time is idle."""
    return float(idle / (1 - idle)) if idle < 1 else float("inf")


def percent(share: float | Fraction) -> str:
    """ "27.3 %"."""
    return f"{100 * float(share):.1f} %"


def formula(stages: int, microbatches: int, naive: bool = False) -> str:
    """The idle fraction's formula with its numbers: "(P-1)/(N+P-1) = 3/11 = 27.3 %"."""
    value = idle_fraction(stages, microbatches, naive)
    name = "(P\N{MINUS SIGN}1)/" + ("P" if naive else "(N+P\N{MINUS SIGN}1)")
    below = stages if naive else microbatches + stages - 1
    return f"{name} = {stages - 1}/{below} = {percent(value)}"


def bubbles(
    stages: int,
    microbatches: int,
    idle: float,
    naive: bool = False,
    measured: float | None = None,
    title: str | None = None,
) -> Figure:
    """Both ratios over the number of microbatches: curves by formula for equal stages, marks for
    what was counted.

    idle      the idle fraction that the clock counted for `microbatches`
    naive     one microbatch in the pipe at a time
    measured  the idle fraction of a run with the same settings
    """
    counts = np.arange(1, max(MOST, microbatches) + 1)
    shares = np.array([float(idle_fraction(stages, int(n), naive)) for n in counts])
    curves = [
        _curve(counts, 100 * shares, "idle fraction: idle / all time", 0),
        _curve(counts, [100 * overhead(s) for s in shares], "overhead: idle / working time", 1),
    ]
    marks = [
        _mark(microbatches, idle, "idle fraction, counted", "circle", COLOURS[0]),
        _mark(microbatches, overhead(idle), "overhead, counted", "square", COLOURS[1]),
    ]
    if measured is not None:
        marks.append(_mark(microbatches, measured, "idle fraction, measured", "x", COLOURS[2]))
    return figure(
        [*curves, *marks],
        title or f"Idle {percent(idle)} of all time is {percent(overhead(idle))} of working time",
        _words(stages, microbatches, idle, naive, measured),
        height=300,
        xaxis=axis("microbatches N", range=[0, counts[-1] + 0.5]),
        yaxis=axis("%", range=[0, 105]),
    )


def _curve(counts: np.ndarray, values: np.ndarray | list[float], name: str, n: int) -> go.Scatter:
    return go.Scatter(
        x=counts,
        y=values,
        name=name,
        mode="lines",
        line={"color": COLOURS[n], "dash": DASHES[n], "width": 2},
        hovertemplate=f"{name}<br>N = %{{x}}: %{{y:.1f}} %<extra>formula</extra>",
    )


def _mark(microbatches: int, share: float, name: str, symbol: str, colour: str) -> go.Scatter:
    return go.Scatter(
        x=[microbatches],
        y=[100 * share],
        name=name,
        mode="markers",
        marker={"symbol": symbol, "size": 12, "color": colour, "line": {"width": 1}},
        hovertemplate=f"{name}: %{{y:.1f}} %<extra></extra>",
    )


def _words(stages: int, microbatches: int, idle: float, naive: bool, measured: float | None) -> str:
    ran = "" if measured is None else f", measured {100 * measured:.0f} %"
    says = formula(stages, microbatches, naive)
    return (
        f"Two curves over the number of microbatches, for {stages} equal stages: the idle fraction "
        f"and, above it, the overhead. With {microbatches} microbatches the idle fraction is "
        f"counted {percent(idle)}{ran}, by the formula {says}; the overhead is counted "
        f"{percent(overhead(idle))}."
    )
