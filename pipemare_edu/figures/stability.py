"""The map of stability: how fast the scalar quadratic shrinks or grows, by rate and delay.

The x axis is the rate times the curvature, so that a network's runs fit on the same map.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from ..plan.noise import spread_map
from ..plan.theory import Quadratic, lemma1, spectral_radius_map, threshold
from .style import Figure, axis, figure, number

LOW, HIGH, LONGEST = 0.01, 2.6, 20
COLUMNS = 73
EDGE = "#D55E00"
TINTS = [
    [0.0, "rgba(0,114,178,0.75)"],
    [0.5, "rgba(128,128,128,0.06)"],
    [1.0, "rgba(230,159,0,0.85)"],
]
WANDERS = [[0.0, "rgba(0,158,115,0.08)"], [1.0, "rgba(0,114,178,0.9)"]]


class Mark(NamedTuple):
    """A run on the map: rate times curvature, delay, whether it settled, what hovering says, and
    whether it was made just now."""

    x: float
    tau: float
    settled: bool
    said: str = ""
    live: bool = False


def stability_map(
    momentum: float = 0.0,
    noise: float = 0.0,
    marks: Sequence[Mark] = (),
    guess: float | None = None,
    title: str | None = None,
) -> Figure:
    """The map, the analytic edge (Lemma 1; with momentum the first root on the circle), and runs.

    noise  colour is then how far the weight wanders when each gradient has noise of this standard
           deviation, instead of the factor by which it shrinks or grows a step
    guess  somebody's guess of a rate times curvature, drawn as a dashed line
    """
    right = _right(marks)
    return figure(
        [*map_traces(momentum, noise, right), *_guess(guess), *mark_traces(marks)],
        title or _message(momentum, noise, marks),
        _words(momentum, noise, marks),
        **map_layout(right),
        height=440,
    )


def delays(momentum: float) -> np.ndarray:
    """The map's rows: from 1 with momentum (its polynomial begins there), else from 0."""
    return np.arange(1 if momentum else 0, LONGEST + 1)


def _right(marks: Sequence[Mark]) -> float:
    """Where the map ends, so that every mark is on it: HIGH, or that doubled some times."""
    right = HIGH
    while any(m.x > right for m in marks):
        right *= 2
    return right


def map_traces(
    momentum: float, noise: float = 0.0, right: float = HIGH, bar: bool = True
) -> Iterator[Any]:
    """The coloured map as far as `right` and its edge, on the first axes; bar: a colour bar."""
    colour = _wander(momentum, right) if noise else _radius(momentum, right)
    yield go.Heatmap(x=rates(right), y=delays(momentum), showscale=bar, **colour)
    taus, edge = edge_of(momentum)
    name = "edge: first root on the circle" if momentum else "edge: Lemma 1"
    yield go.Scatter(
        x=edge,
        y=taus,
        mode="lines",
        name=name,
        line={"color": EDGE, "width": 3},
        hovertemplate="delay %{y:.3g}: unstable from %{x:.4g}<extra></extra>",
    )


@lru_cache(maxsize=64)
def edge_of(momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """(delays, the smallest unstable rate times curvature at each)."""
    if momentum:
        taus = delays(momentum)
        return taus, np.array([threshold(Quadratic(t, momentum=momentum)) for t in taus.tolist()])
    taus = np.linspace(0, LONGEST, 101)
    return taus, np.array([lemma1(t) for t in taus])


def rates(right: float) -> np.ndarray:
    """The map's columns."""
    return np.geomspace(LOW, right, COLUMNS)


@lru_cache(maxsize=64)
def radii(momentum: float, right: float = HIGH) -> np.ndarray:
    """Spectral radius, a row for each delay."""
    return spectral_radius_map(Quadratic(1, momentum=momentum), rates(right), delays(momentum))


def _radius(momentum: float, right: float) -> dict[str, Any]:
    """Blue shrinks, orange grows; what is further than a tenth from 1 has the full colour."""
    radius = radii(momentum, right)
    return {
        "z": np.round(np.clip(radius, 0.9, 1.1), 4),
        "customdata": np.round(radius, 4),
        "zmin": 0.9,
        "zmax": 1.1,
        "colorscale": TINTS,
        "colorbar": _bar(
            "a step<br>multiplies<br>w by", [0.9, 0.95, 1, 1.05, 1.1], "≤{} {} {} {} ≥{}"
        ),
        "hovertemplate": "rate × curvature %{x:.3g}, delay %{y}: largest root %{customdata}"
        "<extra></extra>",
    }


@lru_cache(maxsize=16)
def spreads(momentum: float, right: float) -> np.ndarray:
    """How far w wanders for noise 1, a row for each delay."""
    return spread_map(Quadratic(1, momentum=momentum), rates(right), delays(momentum))


def _wander(momentum: float, right: float) -> dict[str, Any]:
    spread = spreads(momentum, right)
    return {
        "z": np.round(np.log10(np.clip(spread, 0.1, 10)), 3),
        "customdata": np.round(spread, 4),
        "zmin": -1,
        "zmax": 1,
        "colorscale": WANDERS,
        "colorbar": _bar("w wanders,<br>× noise", [-1, 0, 1], "≤0.1 1 ≥10"),
        "hovertemplate": "rate × curvature %{x:.3g}, delay %{y}: w wanders %{customdata} times the "
        "noise<extra></extra>",
    }


def _bar(title: str, values: list[float], words: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 11}},
        "tickvals": values,
        "ticktext": words.format(*values).split(),
        "thickness": 12,
        "outlinewidth": 0,
    }


def mark_traces(marks: Sequence[Mark]) -> Iterator[go.Scatter]:
    """Runs: a disc settled, a cross did not; yellow ones were made just now."""
    for live in (False, True):
        for settled, symbol, word in ((True, "circle", "settled"), (False, "x", "did not")):
            mine = [m for m in marks if m.live == live and m.settled == settled]
            if mine:
                yield go.Scatter(
                    x=[m.x for m in mine],
                    y=[m.tau for m in mine],
                    customdata=[m.said for m in mine],
                    mode="markers",
                    name=f"{'run just now' if live else 'run'}: {word}",
                    marker={
                        "symbol": symbol,
                        "size": 12 if live else 8,
                        "color": "#F0E442" if live else "white",
                        "line": {"color": "black", "width": 1.5},
                    },
                    hovertemplate="rate × curvature %{x:.4g}, delay %{y:.3g}: " + word
                    + ". %{customdata}<extra></extra>",
                )  # fmt: skip


def _guess(guess: float | None) -> Iterator[go.Scatter]:
    if guess is not None:
        yield go.Scatter(
            x=[guess, guess],
            y=[0, LONGEST],
            mode="lines",
            name="your guess",
            line={"color": "#CC79A7", "dash": "dash", "width": 2.5},
            hovertemplate="your guess: rate × curvature %{x:.3g}<extra></extra>",
        )


def map_layout(right: float = HIGH) -> dict[str, Any]:
    """The two axes of the map, as far as `right`."""
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    span = [float(np.log10(LOW)), float(np.log10(right))]
    return {
        "xaxis": axis(
            "rate × curvature", type="log", range=span, tickvals=ticks,
            ticktext=[f"{t:g}" for t in ticks], showgrid=False,
        ),
        "yaxis": axis("delay τ (steps)", range=[-0.5, LONGEST + 0.5], showgrid=False),
    }  # fmt: skip


def agreement(momentum: float, marks: Sequence[Mark]) -> tuple[int, int]:
    """(runs on the side of the edge that they should be on, all runs)."""
    taus, edge = edge_of(momentum)
    right = [m.settled == (m.x < np.interp(m.tau, taus, edge)) for m in marks]
    return sum(right), len(right)


def _message(momentum: float, noise: float, marks: Sequence[Mark]) -> str:
    if marks:
        right, every = agreement(momentum, marks)
        return f"{right} of {every} real runs fall on the side of the edge that theory says"
    if noise:
        return "Noise leaves the edge where it is, but close to it the weight wanders further"
    if momentum:
        taus, edge = edge_of(momentum)
        at = edge[list(taus).index(10)]
        return f"With momentum {momentum:g} and delay 10, rates from {number(at)} on are unstable"
    return "The longer the delay, the smaller the largest stable rate"


def _words(momentum: float, noise: float, marks: Sequence[Mark]) -> str:
    taus, edge = edge_of(momentum)
    some = [t for t in (1, 2, 5, 10, 20) if t in taus]
    at = ", ".join(f"{number(float(np.interp(t, taus, edge)))} at delay {t}" for t in some)
    text = (
        f"A map with the rate times the curvature, {LOW} to {HIGH} on a logarithmic axis, to the "
        f"right, and delays of 0 to {LONGEST} steps upwards; momentum {momentum:g}. The edge of "
        f"stability lies at {at}; left of it runs settle, right of it they grow."
    )
    if noise:
        text += f" Colour says how far the weight wanders under gradient noise of {noise:g}."
    if marks:
        settled = sum(m.settled for m in marks)
        text += f" {settled} of {len(marks)} runs settled."
    return text
