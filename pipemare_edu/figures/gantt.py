"""Gantt chart of a pipeline, with the microbatches in flight below on the same time axis.

stage 1  [F0][F1][F2]......[B0]...      one bar trace per kind of operation, idle time hatched
stage 2      [F0][F1][B0]...
in flight    a step line: forwards run whose backwards have not
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from ..plan.clock import Event, Timeline
from .ages import by_stage
from .settled import UNIT, settled, workers
from .style import COLOURS, HATCH, KINDS, Figure, axis, figure, listed, number, rgba

if TYPE_CHECKING:
    from ..trainer.run import Run

ROW = 26  # pixels a stage
TOTAL = "in flight, summed over stages"


def gantt(
    events: Timeline | Iterable[Event] | Run,
    measured: bool | None = None,
    memory: str = "total",
    title: str | None = None,
    span: tuple[float, float] | None = None,
) -> Figure:
    """Draw events as bars, a row per stage (counted from 1), and the memory strip.

    events    a Timeline of the clock, events in any order (see `replay`), or a run: the end of
              what it kept, settled, and each stage as if on a device of its own (what several
              workers did is drawn as it was)
    measured  False: times are model time.  True: times are seconds, drawn as milliseconds.
              By default True for a run and False for anything else
    memory    "total", or "stages" for a stack of theirs
    title     the message; by default how much of the time the stages are idle
    span      (from, to) in the events' own time: the part that is shown and counted
    Raises ValueError without events.
    """
    crew = 0
    if not isinstance(events, Timeline | Iterable):
        measured = measured is not False
        crew = workers(events) if measured else 0
        events, window = settled(events, None if measured else UNIT)
        span = span or window
    every = by_stage(events)
    unit, scale = ("ms", 1000.0) if measured else ("units", 1.0)
    first, last = span or _span(every)
    rows = [[e for e in row if e.end >= first and e.start <= last] for row in every]
    idle = list(_gaps(rows, first, last))
    share = sum(e.end - e.start for e in idle) / (len(rows) * (last - first) or 1.0)
    flights = [
        _clipped(_in_flight(row), first, last) for row in (*every, [e for r in every for e in r])
    ]
    stages = f"{len(rows)} stage{'s' * (len(rows) > 1)}"
    message = f"{stages}, a device each: idle {100 * share:.0f} % of the time"
    if crew:  # stages of one worker take turns, so only the worker is idle or not
        busy = (1 - share) * len(rows) / crew
        message = f"{stages} in {crew} workers: a worker computes {100 * busy:.0f} % of the time"
    return figure(
        [
            *_bars(rows, unit, scale),
            _idle_bars(idle, unit, scale),
            *_strips(flights, memory, scale),
        ],
        title or message,
        _words(rows, idle, last - first, (unit, scale), flights),
        **_layout(len(rows), _where(measured, crew), memory, (first * scale, last * scale)),
    )


def _span(rows: Sequence[Sequence[Event]]) -> tuple[float, float]:
    return min(e.start for r in rows for e in r), max(e.end for r in rows for e in r)


def _gaps(rows: Sequence[Sequence[Event]], first: float, last: float) -> Iterator[Event]:
    """The times between `first` and `last` in which a stage does nothing."""
    for stage, row in enumerate(rows):
        free = first
        for start, end in [*((e.start, e.end) for e in row), (last, last)]:
            if start - free > 1e-9 * (last - first):
                yield Event(stage, "", 0, free, start, 0)
            free = max(free, end)


def _bars(rows: Sequence[Sequence[Event]], unit: str, scale: float) -> Iterator[go.Bar]:
    for kind, look in KINDS.items():
        mine = [e for row in rows for e in row if e.kind == kind]
        if not mine:
            continue
        noun = "after step" if kind == "E" else "step" if kind == "U" else "of microbatch"
        bar = _bar(mine, look.name, scale)
        bar.update(
            text=[str(e.index) for e in mine],
            insidetextfont={"color": look.ink},
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertemplate=f"<b>stage %{{y}}: {look.name} {noun} %{{text}}</b><br>"
            "reads weight version %{customdata[0]}<br>"
            f"start %{{customdata[1]:.4~g}} {unit}, takes %{{customdata[2]:.3~g}} {unit}"
            "<extra></extra>",
            marker=_marker(kind),
        )
        yield go.Bar(bar)


def _bar(events: Sequence[Event], name: str, scale: float) -> dict[str, Any]:
    times = np.array([(e.version, e.start * scale, (e.end - e.start) * scale) for e in events])
    return {
        "name": name,
        "orientation": "h",
        "y": np.array([e.stage + 1 for e in events]),
        "base": times[:, 1],
        "x": times[:, 2],
        "customdata": times,
        "width": 0.82,
    }


def _marker(kind: str) -> dict[str, Any]:
    look, white = KINDS[kind], "rgba(255,255,255,0.45)"
    pattern = {
        "shape": look.hatch,
        "fillmode": "overlay",
        "fgcolor": white,
        "size": 6,
        "solidity": 0.2,
    }
    # The outline keeps bars of one kind apart, and an update that takes no time visible.
    line = {"color": look.colour, "width": 1} if kind in "UE" else {"color": "white", "width": 0.5}
    return {"color": look.colour, "pattern": pattern, "line": line}


def _idle_bars(gaps: Sequence[Event], unit: str, scale: float) -> go.Bar:
    bar = _bar(gaps, "idle", scale) if gaps else {"name": "idle", "orientation": "h"}
    pattern = {"shape": "/", "fgcolor": HATCH, "fillmode": "replace", "size": 7, "solidity": 0.15}
    return go.Bar(
        bar,
        hovertemplate=f"stage %{{y}}: idle for %{{customdata[2]:.3~g}} {unit}<extra></extra>",
        marker={"color": "rgba(0,0,0,0)", "pattern": pattern, "line": {"width": 0}},
    )


def _in_flight(events: Iterable[Event]) -> list[tuple[float, int]]:
    """(time, microbatches in flight from then on).  A forward counts from its start to the end of
    its backward; one that began before the events counts from their beginning."""
    events = list(events)
    began = {(e.stage, e.index) for e in events if e.kind == "F"}
    ended = [e for e in events if e.kind == "B"]
    changes: Counter[float] = Counter()
    for e in events:
        changes[e.start] += e.kind == "F"
        changes[e.end] -= e.kind == "B"
    level = sum((e.stage, e.index) not in began for e in ended)
    steps = []
    for time in sorted(changes):
        level += changes[time]
        steps.append((time, level))
    return steps


def _clipped(
    steps: Sequence[tuple[float, int]], first: float, last: float
) -> list[tuple[float, int]]:
    """The part of a step line between `first` and `last`."""
    inside = [(time, level) for time, level in steps if first < time < last]
    before = [level for time, level in steps if time <= first]
    level = before[-1] if before else 0
    return [(first, level), *inside, (last, inside[-1][1] if inside else level)]


def _strips(
    flights: Sequence[Sequence[tuple[float, int]]], memory: str, scale: float
) -> list[go.Scatter]:
    """The step lines of the memory strip; `flights` has one for each stage, and then the total."""
    if memory == "total":
        return [_strip(flights[-1], TOTAL, scale, COLOURS[-1])]
    times = sorted({time for steps in flights[:-1] for time, _ in steps})
    strips = []
    for i, steps in enumerate(flights[:-1], start=1):
        colour = COLOURS[i % len(COLOURS)]
        strips.append(_strip(_levels(steps, times), f"in flight, stage {i}", scale, colour))
        strips[-1].update(stackgroup="stages", fill=None)
    return strips


def _levels(steps: Sequence[tuple[float, int]], times: Sequence[float]) -> list[tuple[float, int]]:
    """The step line at each of `times`: lines that are stacked share them."""
    known, level, out = dict(steps), 0, []
    for time in times:
        level = known.get(time, level)
        out.append((time, level))
    return out


def _strip(steps: Sequence[tuple[float, int]], name: str, scale: float, colour: str) -> go.Scatter:
    return go.Scatter(
        x=np.array([time * scale for time, _ in steps]),
        y=np.array([level for _, level in steps]),
        name=name,
        mode="lines",
        line={"shape": "hv", "color": colour, "width": 1.5},
        fill="tozeroy",
        fillcolor=rgba(colour, 0.25),
        yaxis="y2",
        showlegend=False,
        hovertemplate=f"{name}: %{{y}}<extra></extra>",
    )


def _where(measured: bool | None, crew: int) -> str:
    """What the times are."""
    if crew:
        return "measured, all workers on one clock (ms)"
    return "measured durations, placed by the clock (ms)" if measured else "model time"


def _layout(stages: int, where: str, memory: str, span: tuple[float, float]) -> dict[str, Any]:
    chart, strip = ROW * stages + 20, 64
    height = chart + strip + 150
    low = strip / (chart + strip + 18)
    return {
        "height": height,
        "barmode": "overlay",
        "bargap": 0,
        "uniformtext": {"minsize": 8, "mode": "hide"},
        "xaxis": axis(where, anchor="y2", zeroline=False, range=list(span)),
        "yaxis": axis(
            "stage",
            domain=[low + 18 / (chart + strip + 18), 1],
            range=[stages + 0.5, 0.5],
            tickvals=list(range(1, stages + 1)),
            showgrid=False,
            zeroline=False,
        ),
        "yaxis2": axis("", domain=[0, low], rangemode="tozero", nticks=4),
        "annotations": [
            {
                "text": TOTAL if memory == "total" else "in flight, stage upon stage",
                "font": {"size": 11},
                "showarrow": False,
                **{"xref": "paper", "x": 0, "xanchor": "left"},
                **{"yref": "paper", "y": low, "yanchor": "bottom", "yshift": -2},
            }
        ],
    }


def _words(
    rows: Sequence[Sequence[Event]],
    idle: Sequence[Event],
    span: float,
    unit: tuple[str, float],
    flights: Sequence[Sequence[tuple[float, int]]],
) -> str:
    waits = Counter[int]()
    for e in idle:
        waits[e.stage] += e.end - e.start  # type: ignore[assignment]
    counts = Counter(e.kind for row in rows for e in row)
    parts = [f"{counts[k]} {look.name}s" for k, look in KINDS.items() if counts[k]]
    peaks = [max(level for _, level in steps) for steps in flights if steps]
    shares = [f"{100 * waits[i] / (span or 1.0):.0f} %" for i in range(len(rows))]
    return (
        f"A Gantt chart over {number(span * unit[1])} {unit[0]}, a row for each of {len(rows)} "
        f"stages: {listed(parts)}. Idle, from the first stage to the last: {listed(shares)}. "
        f"Most microbatches in flight: {listed(peaks[:-1])}; over all stages {peaks[-1]}."
    )
