"""T2's estimate of a stage's weights: true moves beside estimated ones, and one weight's course."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from ..plan import theory
from ..plan.velocity import Floats, averages, delayed, deltas, missed
from .style import COLOURS, GREY, Figure, axis, figure, number

DECAYS = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
SHOWN = 120  # versions of a course that are drawn, at most


def moves(course: Floats, tau: int, decay: float, title: str | None = None) -> Figure:
    """Left: w[t] - w[t-tau] of every weight at the last version, against tau delta.  Right: how
    far tau delta misses it over the run (plan.velocity.missed), by D.

    course  shape (versions, weights); decay  D, with gamma = D^(1/tau)
    """
    gamma = theory.gamma(decay, tau)
    true = (course - delayed(course, tau))[-1]
    estimate = tau * deltas(course, gamma)[-1]
    misses = [missed(course, tau, theory.gamma(d, tau)) for d in DECAYS]
    here = missed(course, tau, gamma)
    return figure(
        [*_dots(true, estimate), *_by_decay(misses, decay, here)],
        title or _moves_message(decay, here),
        _moves_in_words(course, tau, decay, here, misses),
        height=340,
        showlegend=False,
        xaxis=axis("true move w[t] − w[t−τ]", domain=[0, 0.44]),
        yaxis=axis("estimate τδ"),
        xaxis2=axis("D", type="log", domain=[0.58, 1], anchor="y2",
                    tickvals=[0.01, 0.03, 0.1, 0.3, 0.9]),
        yaxis2=axis("missed (% of the move)", anchor="x2", rangemode="tozero"),
    )  # fmt: skip


def _moves_message(decay: float, here: float) -> str:
    if not np.isfinite(here):
        return "Too few steps to say what τδ misses: it takes more than two delays"
    return f"With D = {number(decay)}, τδ misses the true move by {100 * here:.0f} %"


def _dots(true: Floats, estimate: Floats) -> Iterator[go.Scatter]:
    ends = np.array([true.min(), true.max()])
    yield go.Scatter(
        x=ends, y=ends, mode="lines", line={"color": GREY, "dash": "dot"}, hoverinfo="skip"
    )
    yield go.Scatter(
        x=true,
        y=estimate,
        mode="markers",
        marker={"color": COLOURS[2], "size": 6, "symbol": "circle-open"},
        hovertemplate="moved %{x:.3g}, estimated %{y:.3g}<extra></extra>",
    )


def _by_decay(misses: list[float], decay: float, here: float) -> Iterator[go.Scatter]:
    where = {"xaxis": "x2", "yaxis": "y2"}
    hover = "D = %{x:.3g}: misses %{y:.0f} %<extra></extra>"
    yield go.Scatter(
        x=DECAYS, y=100 * np.array(misses), mode="lines", line={"color": COLOURS[0], "width": 2},
        hovertemplate=hover, **where,
    )  # fmt: skip
    yield go.Scatter(
        x=[0.01, 0.9], y=[100, 100], mode="lines", line={"color": GREY, "dash": "dot"},
        hovertemplate="no estimate at all<extra></extra>", **where,
    )  # fmt: skip
    yield go.Scatter(
        x=[decay], y=[100 * here], mode="markers", hovertemplate=hover, **where,
        marker={"symbol": "diamond", "size": 12, "color": COLOURS[3]},
    )  # fmt: skip


def _moves_in_words(
    course: Floats, tau: int, decay: float, here: float, misses: list[float]
) -> str:
    text = (
        f"Left, {course.shape[1]} weights of a stage with delay {tau} at version "
        f"{len(course) - 1}: their true moves over the delay against tau delta with "
        f"D = {number(decay)}; on the dotted line both would agree."
    )
    if not np.isfinite(misses).all():
        return text
    at = ", ".join(
        f"{100 * m:.0f} % at D = {d:g}" for d, m in zip(DECAYS, misses, strict=True)
        if d in (0.01, 0.1, 0.5, 0.9)
    )  # fmt: skip
    return (
        f"{text} Right, what tau delta misses over the run, {100 * here:.0f} % of the move here; "
        f"{at}; least near D = {number(DECAYS[int(np.argmin(misses))])}. 100 % is what no estimate "
        "at all would miss."
    )


def course(weight: Floats, tau: int, decay: float, title: str | None = None) -> Figure:
    """One weight over the last steps: the newest w, what the forward read w[t-tau], T2's average m
    of past weights, and what T2's backward reads, w - tau delta.

    weight  its values, one for each version
    """
    gamma = theory.gamma(decay, tau)
    column = weight[:, None]
    average = averages(column, gamma)[:, 0]
    back = tau * (1 - gamma)
    lines = {
        "newest w": (weight, COLOURS[1], "solid"),
        "average m": (average, COLOURS[0], "dot"),
        "T2 reads w − τδ": (weight + back * (average - weight), COLOURS[2], "dash"),
        "forward read w[t−τ]": (delayed(column, tau)[:, 0], GREY, "solid"),
    }
    steps = np.arange(len(weight))[-SHOWN:]
    return figure(
        [
            go.Scatter(
                x=steps,
                y=values[-SHOWN:],
                mode="lines",
                name=name,
                line={"color": colour, "dash": dash, "width": 2},
                hovertemplate="version %{x}: %{y:.4g}",
            )
            for name, (values, colour, dash) in lines.items()
        ],
        title or _course_message(back),
        _course_in_words(tau, decay, {k: v[0] for k, v in lines.items()}),
        height=320,
        xaxis=axis("version t"),
        yaxis=axis("one weight"),
    )


def _course_message(back: float) -> str:
    if back > 1:
        return f"T2 steps back from w through the average m, and on: {back:.2f} times as far"
    return f"T2 steps back from w towards the average m, {back:.2f} of the way"


def _course_in_words(tau: int, decay: float, lines: dict[str, Floats]) -> str:
    now = ", ".join(f"{name} {number(float(values[-1]))}" for name, values in lines.items())
    return (
        f"One weight of a stage with delay {tau} over {len(next(iter(lines.values()))) - 1} steps, "
        f"D = {number(decay)}. At the last version: {now}."
    )
