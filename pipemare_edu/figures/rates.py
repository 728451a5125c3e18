"""T1: the learning rate of every stage over the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from .style import COLOURS, DASHES, GREY, Figure, axis, figure, listed, log_axis, number

MOST = 5  # stages that are drawn
MARKED = 20  # measured rates of a stage that are drawn


def shown_stages(stages: int, most: int = MOST) -> list[int]:
    """Stages from 0, the first and the last among them, evenly spread."""
    if stages <= most:
        return list(range(stages))
    return [round(i * (stages - 1) / (most - 1)) for i in range(most)]


def rate_curves(
    steps: Sequence[int],
    base: Sequence[float],
    rates: Mapping[int, Sequence[float]],
    taus: Mapping[int, float],
    annealing: int,
    seen: Mapping[int, Sequence[float]] | None = None,
    title: str | None = None,
) -> Figure:
    """The rate of some stages over the steps of a run, on a logarithmic axis, over the base rate.

    steps      where the rates are given, ascending
    base       the base rate there
    rates      {stage from 0: its rate there}
    taus       {stage from 0: its delay in steps}
    annealing  K, where the stages are back at the base rate; 0 if T1 is off
    seen       {stage from 0: its rate at every step of a real run so far}, drawn as marks
    """
    traces = [_base(steps, base)]
    traces += [_stage(n, i, steps, rates[i], taus[i]) for n, i in enumerate(rates)]
    traces += [_marks(n, i, (seen or {}).get(i, ())) for n, i in enumerate(rates)]
    shown = figure(
        traces,
        title or _message(base, rates, annealing),
        _words(steps, base, rates, taus, annealing),
        height=340,
        xaxis=axis("step", rangemode="tozero"),
        yaxis=_logarithmic(base, rates),
        uirevision="rates",
    )
    if 0 < annealing <= steps[-1]:
        shown.add_vline(
            annealing, line_dash="dot", line_color=GREY, annotation_text=f"K = {annealing}"
        )
    return shown


def _base(steps: Sequence[int], base: Sequence[float]) -> go.Scatter:
    return go.Scatter(
        x=list(steps),
        y=_positive(base),
        name="base rate",
        mode="lines",
        line={"color": GREY, "width": 5},
        opacity=0.45,
        hovertemplate="step %{x}: base rate %{y:.4g}<extra></extra>",
    )


def _stage(
    n: int, stage: int, steps: Sequence[int], rates: Sequence[float], tau: float
) -> go.Scatter:
    name = f"stage {stage + 1}, τ = {number(tau)}"
    return go.Scatter(
        x=list(steps),
        y=_positive(rates),
        name=name,
        mode="lines",
        line={"color": COLOURS[n % len(COLOURS)], "dash": DASHES[n % len(DASHES)], "width": 2},
        hovertemplate=f"{name}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
    )


def _marks(n: int, stage: int, seen: Sequence[float]) -> go.Scatter:
    at = range(0, len(seen), max(1, len(seen) // MARKED))
    return go.Scatter(
        x=list(at),
        y=_positive([seen[k] for k in at]),
        name=f"stage {stage + 1}, measured",
        mode="markers",
        marker={"symbol": "circle-open", "size": 8, "color": COLOURS[n % len(COLOURS)]},
        hovertemplate=f"stage {stage + 1} stepped with %{{y:.4g}} at step %{{x}}<extra></extra>",
        showlegend=False,
    )


def _positive(rates: Sequence[float]) -> list[float | None]:
    """A rate of 0 has no place on a logarithmic axis."""
    return [r if r > 0 else None for r in rates]


def _logarithmic(base: Sequence[float], rates: Mapping[int, Sequence[float]]) -> dict[str, object]:
    """At most three decades, so that a base rate on its way to 0 does not squeeze the rest."""
    every = [rate for row in (base, *rates.values()) for rate in row if rate > 0]
    top = 3 * max(every)
    low = max(min(every) / 2, top / 1000)
    span = [math.log10(low), math.log10(top)]
    return log_axis("learning rate", (low, top), range=span)


def _message(base: Sequence[float], rates: Mapping[int, Sequence[float]], annealing: int) -> str:
    first = next(n for n, rate in enumerate(base) if rate > 0)  # a warm-up begins at 0
    starts = {i: row[first] / base[first] for i, row in rates.items()}
    if not annealing or all(abs(f - 1) < 1e-9 for f in starts.values()):
        return "Every stage has the base rate"
    raised = [i + 1 for i, f in starts.items() if f > 1 + 1e-9]
    if raised:
        most = number(max(starts.values()))
        return f"Without the guard the last stage starts at {most} times the base rate"
    return (
        f"Stage 1 starts at 1/{number(1 / starts[0])} of the base rate; T1 ends at step {annealing}"
    )


def _words(
    steps: Sequence[int],
    base: Sequence[float],
    rates: Mapping[int, Sequence[float]],
    taus: Mapping[int, float],
    annealing: int,
) -> str:
    until = f"Annealing takes {annealing} steps. " if annealing else "T1 is off. "
    middle = len(steps) // 2
    rows = [
        f"stage {i + 1} (delay {number(taus[i])}) {_three(row, middle)}" for i, row in rates.items()
    ]
    when = listed([f"step {steps[n]}" for n in (0, middle, -1)])
    return f"{until}Learning rates at {when}: base {_three(base, middle)}; {'; '.join(rows)}."


def _three(row: Sequence[float], middle: int) -> str:
    return ", ".join(number(row[n]) for n in (0, middle, -1))
