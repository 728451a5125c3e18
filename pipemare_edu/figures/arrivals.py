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

    target  a score to be reached, drawn as a level; the legend counts the runs that do
    log     times on a log scale
    """
    traces = [
        trace
        for i, (name, tracks) in enumerate(runs.items())
        for n, track in enumerate(tracks)
        for trace in _track(i, name, track, "" if n else _entry(name, tracks, target))
    ]
    return figure(
        traces,
        title or _soonest(runs, target),
        " ".join([f"{metric} of every run over {unit}.", _arrivals(runs, target), *_live(runs)]),
        height=420,
        xaxis=axis(unit, nticks=8, **({"type": "log"} if log else {"rangemode": "tozero"})),
        yaxis=axis(metric, rangemode="tozero"),
        legend=_heading(target),
        margin={} if target is None else {"r": 65},
        **({} if target is None else _level(target)),
    )


def _level(target: float) -> dict[str, Any]:
    """The target as a line; its label stands beside the plot, where no curve comes."""
    line = {"color": GREY, "dash": "dot", "width": 1.5}
    across = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": target, "y1": target}
    text = {"x": 1.01, "xref": "paper", "xanchor": "left", "y": target, "align": "left"}
    label = {**text, "text": f"target<br>{number(target)}", "showarrow": False}
    return {"shapes": [{**across, "line": line}], "annotations": [label]}


def _heading(target: float | None) -> dict[str, Any]:
    if target is None:
        return {}
    return {"title": {"text": f"Runs that reach {number(target)}:", "side": "top"}}


def _entry(name: str, tracks: Sequence[Track], target: float | None) -> str:
    """A method in the legend."""
    if target is None:
        return name
    there, count = _reaching(tracks, target)
    return f"{name}: {len(there)} of {count}"


def _track(i: int, name: str, track: Track, entry: str) -> list[go.Scatter]:
    """A run's line; entry: what the legend has for it, if anything."""
    colour, live = COLOURS[i % len(COLOURS)], bool(track.live)
    name = track.live or name
    line = go.Scatter(
        x=[float(f"{time:.5g}") for time in track.times],  # more digits weigh, and none is seen
        y=list(track.scores),
        name=track.live or entry or name,
        legendgroup=name,
        showlegend=bool(entry) or live,
        mode="lines+markers",
        opacity=1 if live else 0.75,
        line={"color": colour, "dash": DASHES[i % len(DASHES)], "width": 4 if live else 1.5},
        marker={"symbol": "star" if live else MARKS[i % len(MARKS)], "size": 11 if live else 5},
        hovertemplate=f"%{{x:.4g}}: %{{y:.4g}}<extra>{name}</extra>",
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


def _reaching(tracks: Sequence[Track], target: float) -> tuple[list[float], int]:
    """When the runs that reach the target do, and how many runs there are; live ones aside."""
    kept = [t for t in tracks if not t.live]
    times = (arrival(t, target) for t in kept)
    return [time for time in times if time is not None], len(kept)


def _soonest(runs: Mapping[str, Sequence[Track]], target: float | None) -> str:
    """Who is soonest of the methods of which no run misses the target: a mean over the runs that
    happen to reach it says nothing about the others."""
    if target is None:
        return "How good, how soon"
    found = {name: _reaching(tracks, target) for name, tracks in runs.items()}
    sure = {name: statistics.mean(t) for name, (t, count) in found.items() if 0 < len(t) == count}
    if not sure:
        return f"No method reaches {number(target)} in every run"
    first = min(sure, key=lambda name: sure[name])
    if len(sure) == 1:
        return f"{first} alone reaches {number(target)} in every run"
    return f"Of those that reach {number(target)} in every run, {first} is the soonest on average"


def _arrivals(runs: Mapping[str, Sequence[Track]], target: float | None) -> str:
    if target is None:
        return "No target is known yet."
    found = {name: _reaching(tracks, target) for name, tracks in runs.items()}
    parts = [
        f"{name} {_when(statistics.mean(times))} ({len(times)} of {count} runs)"
        for name, (times, count) in found.items()
        if times
    ]
    if not parts:
        return f"None gets to {number(target)}."
    return f"Mean time to {number(target)} of the runs that get there: {listed(parts)}."


def _live(runs: Mapping[str, Sequence[Track]]) -> Iterator[str]:
    for track in (t for tracks in runs.values() for t in tracks if t.live):
        if track.diverged:
            yield f"{track.live}: diverged."
        elif track.times:
            yield f"{track.live}: measured {number(track.scores[-1])}."


def _when(time: float) -> str:
    return f"{time:.0f}" if time >= 100 else number(time)
