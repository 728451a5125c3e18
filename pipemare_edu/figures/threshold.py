"""Measured edges of stability beside predicted ones, and the runs that found them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from .style import COLOURS, DASHES, GREY, Figure, axis, figure, listed, number

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star", "hexagon")
TRIALS = 8  # most runs drawn together
POINTS = 300  # most points of one
FLOOR, CEILING = 1e-12, 1e12  # of a loss beside the first one


def ratios(table: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> Figure:
    """Found over predicted: a row for each prediction, a dot for each seed of each network.

    table  {prediction: {network: ratios}}, from the top of the figure to its bottom
    title  the message
    """
    predictions = list(table)
    networks = list(dict.fromkeys(n for row in table.values() for n in row))
    traces = []
    for k, network in enumerate(networks):
        points = [
            (value, len(predictions) - 1 - row + 0.5 * (k + 0.5) / len(networks) - 0.25)
            for row, name in enumerate(predictions)
            for value in table[name].get(network, ())
        ]
        traces.append(
            go.Scatter(
                x=[x for x, _ in points],
                y=[y for _, y in points],
                mode="markers",
                name=network,
                marker={
                    "color": COLOURS[k % len(COLOURS)],
                    "symbol": SYMBOLS[k % len(SYMBOLS)],
                    "size": 9,
                },
                hovertemplate=network + ": found %{x:.3f} times the prediction<extra></extra>",
            )
        )
    ticks = [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200]
    shown = figure(
        traces,
        title,
        _table_in_words(table),
        height=110 + 44 * len(predictions),
        xaxis=axis(
            "rate found / rate predicted", type="log", tickvals=ticks,
            ticktext=[f"{t:g}" for t in ticks],
        ),
        yaxis=axis(
            "", tickvals=list(range(len(predictions))), ticktext=predictions[::-1], showgrid=False,
            zeroline=False,
        ),
    )  # fmt: skip
    shown.add_vline(1.0, line={"color": GREY, "dash": "dash", "width": 1.5})
    return shown


def _table_in_words(table: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    said = []
    for name, row in table.items():
        parts = [f"{n} {_range(values)}" for n, values in row.items() if len(values)]
        said.append(f"{name}: {', '.join(parts)}")
    return (
        "The largest stable rate found over the one predicted, over seeds. " + ". ".join(said) + "."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def growth(runs: Mapping[str, Sequence[float]], title: str | None = None) -> Figure:
    """Losses over steps, each as a multiple of its first: what grows has left.

    runs   {label: losses}; the last ones are drawn if there are many
    """
    kept = list(runs.items())[-TRIALS:]
    traces = []
    for k, (label, losses) in enumerate(kept):
        steps, values = _peaks(np.array(losses, dtype=float) / losses[0])
        traces.append(
            go.Scatter(
                x=steps,
                y=values,
                mode="lines",
                name=label,
                line={
                    "color": COLOURS[k % len(COLOURS)],
                    "dash": DASHES[k % len(DASHES)],
                    "width": 1.5,
                },
                hovertemplate="step %{x}: %{y:.3g} times the first loss<extra></extra>",
            )  # fmt: skip
        )
    return figure(
        traces,
        title or "A rate is too high when the loss comes to grow",
        _growth_in_words(kept),
        height=320,
        showlegend=True,
        xaxis=axis("step", rangemode="tozero"),
        yaxis=axis("loss / first loss", type="log", exponentformat="power", nticks=6),
        uirevision="growth",
    )


def _peaks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first step, largest value) of each of at most POINTS stretches; nan off the axis."""
    starts = np.arange(0, len(values), -(-len(values) // POINTS))
    peaks = np.maximum.reduceat(np.nan_to_num(values, nan=np.inf), starts)
    peaks[(peaks > CEILING) | (peaks < FLOOR)] = np.nan
    return starts, peaks


def _growth_in_words(runs: Sequence[tuple[str, Sequence[float]]]) -> str:
    said = [f"{label}: {number(losses[-1] / losses[0])} times" for label, losses in runs]
    return f"The last loss beside the first, by run: {listed(said)}." if said else "No run yet."
