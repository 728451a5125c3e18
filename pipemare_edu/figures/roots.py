"""One point of the map, three ways: where it lies, its roots, and the weight itself.

map: rate and delay     roots in the complex plane     w over steps
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ..plan.theory import Quadratic, iterates, spectral_radius
from .stability import map_layout, map_traces
from .style import FAINT, GREY, Figure, axis, figure, listed, number

STEPS = 120
ON_THE_CIRCLE = 1e-9  # rounding aside
TALLEST = 20.0  # where the axis of w ends, however far it grows
INSIDE, OUTSIDE = "#0072B2", "#D55E00"


def roots(
    rate: float = 0.5,
    tau: int = 1,
    momentum: float = 0.0,
    trained: Sequence[float] = (),
    title: str | None = None,
) -> Figure:
    """The map, the roots of the characteristic polynomial, and the iterate from w = 1, for
    curvature 1.

    trained  w after every step of a real run, drawn as dots over the recurrence's line
    ValueError for what Quadratic does not take, such as momentum with delay 0.
    """
    case = Quadratic(tau, momentum=momentum)
    polynomial = case.polynomial(rate)
    z, radius = np.roots(polynomial), spectral_radius(polynomial)
    w = iterates(case, rate, STEPS)
    layout = map_layout()
    layout["xaxis"] |= {"domain": [0, 0.25], "tickvals": [0.01, 0.1, 1], "ticktext": None}
    return figure(
        [
            *map_traces(momentum, bar=False),
            _here(rate, tau),
            *_plane(z),
            *_iterate(w, trained),
        ],
        title or message(radius),
        _words(rate, tau, momentum, z, radius, w, trained),
        height=380,
        showlegend=False,
        **layout,
        **_axes(w),
        margin={"l": 55},
    )


def message(radius: float) -> str:
    """What the largest root says, as a sentence."""
    percent = f"{100 * abs(radius - 1):.2g} %"
    if abs(radius - 1) < ON_THE_CIRCLE:
        return "On the edge: the largest roots lie on the circle, and w neither shrinks nor grows"
    if radius < 1:
        return f"Stable: all roots lie inside the circle, w shrinks by {percent} a step in the end"
    return f"Unstable: a root lies outside the circle, w grows by {percent} a step in the end"


def _here(rate: float, tau: int) -> go.Scatter:
    return go.Scatter(
        x=[rate],
        y=[tau],
        mode="markers",
        marker={"symbol": "diamond", "size": 13, "color": "#F0E442",
                "line": {"color": "black", "width": 1.5}},
        hovertemplate="here: rate %{x:.4g}, delay %{y}<extra></extra>",
    )  # fmt: skip


def _plane(z: np.ndarray) -> Iterator[go.Scatter]:
    turn = np.linspace(0, 2 * np.pi, 121)
    plane: dict[str, Any] = {"xaxis": "x2", "yaxis": "y2"}
    yield go.Scatter(
        x=np.round(np.cos(turn), 4), y=np.round(np.sin(turn), 4), mode="lines", hoverinfo="skip",
        line={"color": GREY, "width": 1.5}, **plane,
    )  # fmt: skip
    out = np.abs(z) > 1 + ON_THE_CIRCLE
    for mine, colour, symbol in ((z[~out], INSIDE, "circle"), (z[out], OUTSIDE, "x")):
        yield go.Scatter(
            x=mine.real,
            y=mine.imag,
            customdata=np.abs(mine),
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 10},
            hovertemplate="root %{x:.4f} %{y:+.4f} i, modulus %{customdata:.4f}<extra></extra>",
            **plane,
        )


def _iterate(w: np.ndarray, trained: Sequence[float]) -> Iterator[go.Scatter]:
    steps = np.arange(len(w))
    yield go.Scatter(
        x=steps, y=_drawable(w), mode="lines", line={"color": INSIDE, "width": 2},
        xaxis="x3", yaxis="y3", hovertemplate="step %{x}: w = %{y:.4g}<extra></extra>",
    )  # fmt: skip
    yield go.Scatter(
        x=np.arange(len(trained)),
        y=_drawable(np.array(trained)),
        mode="markers",
        marker={"color": "#E69F00", "size": 5, "symbol": "circle-open"},
        xaxis="x3",
        yaxis="y3",
        hovertemplate="step %{x}: the trainer's w = %{y:.4g}<extra></extra>",
    )


def _drawable(w: np.ndarray) -> np.ndarray:
    """What is far off the axis is nan: a page cannot place it."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(w) < 1e3 * TALLEST, w, np.nan)


def _axes(w: np.ndarray) -> dict[str, Any]:
    top = float(np.clip(1.15 * np.nanmax(np.abs(w)), 1.15, TALLEST))
    return {
        "xaxis2": axis(
            "real part", domain=[0.38, 0.62], anchor="y2", range=[-1.4, 1.4], tickvals=[-1, 0, 1],
            constrain="domain",
        ),
        "yaxis2": axis(
            "imaginary part", anchor="x2", scaleanchor="x2", range=[-1.4, 1.4],
            tickvals=[-1, 0, 1],
        ),
        "xaxis3": axis("step", domain=[0.75, 1], anchor="y3", range=[0, STEPS]),
        "yaxis3": axis("w", anchor="x3", range=[-top, top], zerolinecolor=FAINT),
    }  # fmt: skip


def _words(
    rate: float,
    tau: int,
    momentum: float,
    z: np.ndarray,
    radius: float,
    w: np.ndarray,
    trained: Sequence[float],
) -> str:
    largest = z[np.argsort(-np.abs(z))[:2]]
    said = [f"{number(root.real)} {'+' if root.imag >= 0 else '-'} {number(abs(root.imag))} i"
            for root in largest]  # fmt: skip
    kept = [number(float(w[n])) for n in (0, STEPS // 4, STEPS // 2, STEPS)]
    text = (
        f"Rate {number(rate)}, delay {tau}, momentum {momentum:g}, curvature 1: a point on the map "
        f"of stability; {len(z)} root{'s' * (len(z) > 1)} around the unit circle, the largest "
        f"{listed(said)}, modulus {radius:.4f}; and w at steps 0, {STEPS // 4}, {STEPS // 2} and "
        f"{STEPS}: {listed(kept)}."
    )
    if len(trained):
        where = "on the line" if off_the_line(w, trained) < 1e-6 else "off the line"
        text += f" Dots: {len(trained) - 1} steps of the real trainer, {where}."
    return text


def off_the_line(w: np.ndarray, trained: Sequence[float]) -> float:
    """Largest difference between two courses of w, as a share of the largest w up to there."""
    n = min(len(w), len(trained))
    size = np.maximum.accumulate(np.abs(w[:n]))
    return float((np.abs(np.array(trained[:n]) - w[:n]) / size).max())
