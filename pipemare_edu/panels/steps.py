"""Moving from one operation of a chart to another with the arrow keys."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures.passages import Place, find
from ..plan.clock import Event
from ..plan.ops import Op

KEYS = "ArrowLeft ArrowRight ArrowUp ArrowDown Home End Escape"
_ALONG = {"ArrowLeft": -1, "ArrowRight": 1}
_ACROSS = {"ArrowUp": -1, "ArrowDown": 1}


def moved(rows: Sequence[Sequence[Event]], place: Place | None, key: str) -> Place | None:
    """Where a key leads from `place`; None is nowhere.

    rows  per stage, its events by time
    Left and right: the stage's operation before or after.  Up and down: the one of the same kind
    that starts closest in time at the stage above or below.  Home and end: the stage's first and
    last.  Escape: nowhere; from there, any other key leads to the first operation of all.  At an
    edge a key leads to where it is.
    """
    if key == "Escape":
        return None
    if place is None:
        return _place(rows[0][0])
    here = find(rows, place)
    row = rows[here.stage]
    if key in _ALONG:
        at = row.index(here) + _ALONG[key]
        return _place(row[min(max(at, 0), len(row) - 1)])
    if key in _ACROSS:
        return _place(_closest(rows, here, here.stage + _ACROSS[key]))
    return _place(row[0 if key == "Home" else -1])


def _closest(rows: Sequence[Sequence[Event]], here: Event, stage: int) -> Event:
    if not 0 <= stage < len(rows):
        return here
    mine = [e for e in rows[stage] if e.kind == here.kind]
    return min(mine, key=lambda e: abs(e.start - here.start), default=here)


def _place(e: Event) -> Place:
    return e.stage, str(Op(e.kind, e.index))
