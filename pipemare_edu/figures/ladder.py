"""Version ladder: stage x time, every operation coloured by the age of the weights that it reads.

stage 1  [F0][F1]...[F7][B0]U[F8][B1]U...   the darker a bar, the older its weights; one operation
stage 2      [F0][F1]...                    may be chosen: its forward, its backward and the updates
                                            between stand out, counted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from ..plan.clock import Event, Timeline
from .ages import ages, by_stage
from .passages import Place, belonging, find, passage, tell
from .replay import replay
from .style import FAINT, GREY, KINDS, Figure, axis, figure, listed

if TYPE_CHECKING:
    from ..trainer.run import Run

UNIT = {"F": 1.0, "B": 1.0, "R": 1.0, "U": 0.5}  # model time; an update is wide enough to be seen
ROW = 38  # pixels a stage
# From fresh to old, each darker than the last, so that the order shows without colour too.
SCALE = ((0.0, "#F0E442"), (0.34, "#E69F00"), (0.67, "#D55E00"), (1.0, "#6B2500"))
LIGHT = 0.5  # up to this share of the scale, text upon a bar is black
LIT = "#CC79A7"
DIM = 0.3


def ladder(
    events: Timeline | Iterable[Event] | Run,
    chosen: Place | None = None,
    stamped: bool | None = None,
    title: str | None = None,
) -> Figure:
    """Draw operations as bars, a row per stage (counted from 1), coloured by their weights' age.

    events   a Timeline of the clock, events (see `replay`), or a run: the beginning of it, in
             model time
    chosen   (stage from 0, operation), such as (0, "F9"): stands out with what belongs to it
    stamped  are the versions stamps of a real run, or counted from the lists?  By default True for
             a run and False for anything else
    title    the message; by default how old the weights of the first and last stage are, or the
             chosen operation's tau
    Raises ValueError without events, and for a chosen operation that is not among them.
    """
    if not isinstance(events, Timeline | Iterable):
        events, stamped = beginning(events), stamped is not False
    rows = by_stage(events)
    found = [ages(row) for row in rows]
    lit = set() if chosen is None else set(belonging(rows, chosen))
    top = max((age for row in found for age in row.values()), default=0)
    message, _, more = (_message(found) if chosen is None else tell(rows, chosen)).partition(". ")
    return figure(
        [*_bars(rows, found, lit), *_counts(rows, chosen)],
        title or message,
        f"{more} {_words(rows, found)}".strip(),
        **_layout(len(rows), top, bool(stamped), _end(rows)),
    )


def beginning(run: Run) -> list[Event]:
    """The first operations that a run kept, in model time, without its evaluations."""
    return replay((e for e in run.trace.first if e.kind != "E"), UNIT)


def _bars(
    rows: Sequence[Sequence[Event]], found: Sequence[dict[Any, int]], lit: set[Event]
) -> Iterator[go.Bar]:
    """One trace per kind; a kind without ages has its own colour."""
    top = max((age for row in found for age in row.values()), default=0)
    for kind, look in KINDS.items():
        mine = [e for row in rows for e in row if e.kind == kind]
        if not mine:
            continue
        old = [found[e.stage].get((e.kind, e.index)) for e in mine]
        noun = "of microbatch" if kind in "FBR" else "after step" if kind == "E" else "step"
        yield go.Bar(
            name=look.name,
            orientation="h",
            ids=[f"{e.stage} {kind}{e.index}" for e in mine],
            y=np.array([e.stage + 1 for e in mine]),
            base=np.array([e.start for e in mine]),
            x=np.array([e.end - e.start for e in mine]),
            width=0.62,
            text=[str(e.index) for e in mine],
            customdata=[
                [e.version, _age_words(age, kind)] for e, age in zip(mine, old, strict=True)
            ],
            hovertemplate=f"<b>stage %{{y}}: {look.name} {noun} %{{text}}</b><br>"
            "reads weight version %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={
                "color": [
                    GREY if lit and e not in lit else _ink(age, top, look.ink)
                    for e, age in zip(mine, old, strict=True)
                ]
            },
            marker=_marker(kind, mine, old, lit),
        )


def _age_words(age: int | None, kind: str) -> str:
    if kind == "U":
        return "makes the next one"
    if age is None:
        return "for no gradient" if kind == "E" else "its gradient is used outside this chart"
    return f"{age} update{'s' * (age != 1)} old when its gradient is used"


def _ink(age: int | None, top: int, ink: str) -> str:
    return ink if age is None else "black" if age <= LIGHT * top else "white"


def _marker(
    kind: str, mine: Sequence[Event], old: Sequence[int | None], lit: set[Event]
) -> dict[str, Any]:
    look = KINDS[kind]
    aged = any(age is not None for age in old)
    colour: Any = look.colour
    if aged:
        colour = np.array([np.nan if age is None else age for age in old], dtype=float)
    return {
        "color": colour,
        **({"coloraxis": "coloraxis"} if aged else {}),
        "opacity": [DIM if lit and e not in lit else 1.0 for e in mine],
        "line": {
            "color": [LIT if e in lit else GREY for e in mine],
            "width": [3.0 if e in lit else 0.5 for e in mine],
        },
        "pattern": {
            "shape": look.hatch,
            "fillmode": "overlay",
            "fgcolor": "rgba(0,0,0,0.45)" if aged else "rgba(255,255,255,0.5)",
            "size": 6,
            "solidity": 0.25,
        },
    }


def _counts(rows: Sequence[Sequence[Event]], chosen: Place | None) -> Iterator[go.Scatter]:
    """1, 2, 3 ... above the updates that belong to the chosen operation."""
    e = None if chosen is None else find(rows, chosen)
    seen = passage(rows[e.stage], e.index) if e is not None and e.kind not in "UE" else None
    if seen is None or not seen.between:
        return
    yield go.Scatter(
        x=np.array([(u.start + u.end) / 2 for u in seen.between]),
        y=np.full(len(seen.between), seen.forward.stage + 0.5),
        text=[f"<b>{n}</b>" for n in range(1, len(seen.between) + 1)],
        mode="text",
        name="updates counted",
        textfont={"color": LIT, "size": 13},
        showlegend=False,
        hoverinfo="skip",
    )


def _end(rows: Sequence[Sequence[Event]]) -> float:
    return max(row[-1].end for row in rows if row)


def _layout(stages: int, top: int, stamped: bool, end: float) -> dict[str, Any]:
    source = "stamped by a real run" if stamped else "counted from the lists"
    return {
        "height": ROW * stages + 160,
        "barmode": "overlay",
        "bargap": 0,
        "uirevision": "ladder",
        "xaxis": axis(f"model time; versions {source}", zeroline=False, range=[0, end]),
        "yaxis": axis(
            "stage",
            range=[stages + 0.5, 0.28],
            tickvals=list(range(1, stages + 1)),
            showgrid=False,
            zeroline=False,
        ),
        "coloraxis": {
            "cmin": 0,
            "cmax": max(top, 1),
            "colorscale": [list(pair) for pair in SCALE],
            "colorbar": {
                "title": {"text": "updates<br>old"},
                "thickness": 12,
                "outlinecolor": FAINT,
                "tickformat": "d",
                "nticks": min(top, 8) + 1,
            },
        },
    }


def _oldest(found: Sequence[dict[Any, int]], kind: str) -> list[int]:
    return [max((age for op, age in row.items() if op.kind == kind), default=0) for row in found]


def _message(found: Sequence[dict[Any, int]]) -> str:
    most = _oldest(found, "F")
    if not any(most):
        return "Every forward reads weights that are still the newest when its gradient is used"
    old = f"{most[0]} update{'s' * (most[0] != 1)} old"
    if len(most) == 1:
        return f"Forwards read weights up to {old}"
    return (
        f"Forwards of stage 1 read weights up to {old}, those of stage {len(most)} up to {most[-1]}"
    )


def _words(rows: Sequence[Sequence[Event]], found: Sequence[dict[Any, int]]) -> str:
    updates = [sum(e.kind == "U" for e in row) for row in rows]
    return (
        f"A version ladder with a row for each of {len(rows)} stages, {max(updates)} updates a "
        "stage. Most updates that weights are old, from the first stage to the last: read by "
        f"forwards {listed(_oldest(found, 'F'))}; by backwards {listed(_oldest(found, 'B'))}."
    )
