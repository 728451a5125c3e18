"""How soon the runs of several methods got how far."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from .curves import MARKS
from .style import COLOURS, DASHES, GREY, Figure, axis, figure, listed, number


class Track(NamedTuple):
    """One run: how good it was at which times.

    diverged  did it end so?
    live      the name of a run made just now, which is drawn over the others and counts in no mean
    """

    times: Sequence[float]
    scores: Sequence[float]
    diverged: bool = False
    live: str = ""


def arrivals(
    runs: Mapping[str, Sequence[Track]],
    metric: str,
    unit: str,
    target: float | None = None,
    title: str | None = None,
    log: bool = True,
) -> Figure:
    """How good every run was over the time that it took: a line per run.

    target  a score to be reached, drawn as a level
    log     times on a log scale
    """
    traces = [
        trace
        for i, (name, tracks) in enumerate(runs.items())
        for n, track in enumerate(tracks)
        for trace in _track(i, name, track, first=n == 0)
    ]
    level: dict[str, Any] = {}
    if target is not None:
        line = {"color": GREY, "dash": "dot", "width": 1.5}
        level["shapes"] = [
            {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": target, "y1": target,
             "line": line}
        ]  # fmt: skip
        level["annotations"] = [  # beside the chart, where no line runs through it
            {"text": f"target<br>{number(target)}", "x": 1, "xref": "paper", "xanchor": "left",
             "y": target, "showarrow": False, "align": "left"}
        ]  # fmt: skip
    return figure(
        traces,
        title or _soonest(runs, target),
        " ".join([f"{metric} of every run over {unit}.", _arrivals(runs, target), *_live(runs)]),
        height=380,
        xaxis=axis(unit, nticks=8, **({"type": "log"} if log else {"rangemode": "tozero"})),
        yaxis=axis(metric, rangemode="tozero"),
        legend={"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0.0},
        margin={"l": 60, "r": 15 if target is None else 50, "t": 45, "b": 85},
        **level,
    )


def _track(i: int, name: str, track: Track, first: bool) -> list[go.Scatter]:
    colour, live = COLOURS[i % len(COLOURS)], bool(track.live)
    name = track.live or name
    line = go.Scatter(
        x=list(track.times),
        y=list(track.scores),
        name=name,
        legendgroup=name,
        showlegend=first or live,
        mode="lines+markers",
        opacity=1 if live else 0.75,
        line={"color": colour, "dash": DASHES[i % len(DASHES)], "width": 4 if live else 1.5},
        marker={"symbol": "star" if live else MARKS[i % len(MARKS)], "size": 11 if live else 5},
        hovertemplate=f"{name}, time %{{x:.4g}}: %{{y:.4g}}<extra></extra>",
    )
    if not track.diverged or not track.times:
        return [line]
    cross = go.Scatter(
        x=[track.times[-1]],
        y=[track.scores[-1]],
        name=f"{name}: diverged",
        legendgroup=name,
        showlegend=False,
        mode="markers",
        marker={"symbol": "x", "size": 11, "color": colour},
        hovertemplate=f"{name}: diverged<extra></extra>",
    )
    return [line, cross]


def arrival(track: Track, target: float) -> float | None:
    """When a run first shows `target`; None if it never does, or diverges."""
    if track.diverged:
        return None
    pairs = zip(track.times, track.scores, strict=True)
    return next((time for time, score in pairs if score >= target), None)


def _mean_arrivals(
    runs: Mapping[str, Sequence[Track]], target: float | None
) -> dict[str, tuple[float, int, int]]:
    """{method: (mean time of the runs that arrive, how many those are, how many there are)}."""
    out = {}
    for name, tracks in runs.items():
        kept = [t for t in tracks if not t.live]
        times = [arrival(t, target) for t in kept] if target is not None else []
        there = [time for time in times if time is not None]
        if there:
            out[name] = (statistics.mean(there), len(there), len(kept))
    return out


def _soonest(runs: Mapping[str, Sequence[Track]], target: float | None) -> str:
    found = _mean_arrivals(runs, target)
    sure = {name: mean for name, (mean, there, count) in found.items() if there == count}
    if target is None or not sure:
        return "No method reaches the target in every run" if target else "How good, how soon"
    first = min(sure, key=lambda name: sure[name])
    return f"{first} is the first to reach {number(target)} in every run"


def _arrivals(runs: Mapping[str, Sequence[Track]], target: float | None) -> str:
    found = _mean_arrivals(runs, target)
    if target is None:
        return "No target is known yet."
    parts = [f"{m} {_when(t)} ({n} of {k} runs)" for m, (t, n, k) in found.items()]
    return f"Mean time to {number(target)}: {listed(parts)}." if parts else "None gets there."


def _live(runs: Mapping[str, Sequence[Track]]) -> Iterator[str]:
    for track in (t for tracks in runs.values() for t in tracks if t.live):
        if track.diverged:
            yield f"{track.live}: diverged."
        elif track.times:
            yield f"{track.live}: measured {number(track.scores[-1])}."


def _when(time: float) -> str:
    return f"{time:.0f}" if time >= 100 else number(time)
