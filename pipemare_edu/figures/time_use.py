"""Where the time goes: computing, a message on its way, waiting; a bar for every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import plotly.graph_objects as go

from .style import GREY, HATCH, Figure, axis, figure

if TYPE_CHECKING:
    from ..trainer.waiting import Waiting

PARTS = ("compute", "transfer", "wait")
NAMES = {"compute": "computes", "transfer": "a message is on its way", "wait": "waits for one"}
ROW = 34  # pixels a bar
THIN = {"fillmode": "overlay", "size": 9, "solidity": 0.15}  # a hatch under figures


class Look(NamedTuple):
    """How a part is drawn, and the ink of the percentage upon it: on a light page and a dark one
    alike, so what lets the page through has a thin hatch and bold grey figures."""

    marker: dict[str, Any]
    ink: str
    weight: str = "normal"


LOOKS = {
    "compute": Look({"color": "#0072B2"}, "white"),
    "transfer": Look(
        {"color": "#E69F00", "pattern": {"shape": "x", "fgcolor": "rgba(255,255,255,0.5)"} | THIN},
        "black",
    ),
    "wait": Look(
        {
            "color": "rgba(0,0,0,0)",
            "pattern": {"shape": "/", "fgcolor": HATCH} | THIN,
            "line": {"color": HATCH, "width": 1},
        },
        GREY,
        "bold",
    ),
}


class Row(NamedTuple):
    """A bar: whose time it is, whether "measured" or "modelled", and its shares."""

    name: str
    how: str
    shares: dict[str, float]


def time_use(
    modelled: Sequence[Waiting],
    measured: Sequence[Waiting] | None = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """Stacked bars of 100 %, a pair for every device where something was measured.

    modelled, measured  one Waiting for each device (run.waiting; trainer.waiting over the events
                        of a Timeline), all of its seconds together
    title               the message; by default how much the busiest and the idlest compute
    names               of the devices; "worker 1", ... by default
    """
    names = names or [f"worker {i}" for i in range(1, len(modelled) + 1)]
    rows = [Row(name, "modelled", shares(w)) for name, w in zip(names, modelled, strict=True)]
    if measured:
        timed = [Row(name, "measured", shares(w)) for name, w in zip(names, measured, strict=True)]
        rows = [row for pair in zip(timed, rows, strict=True) for row in pair]
    return figure(
        [_bar(part, rows) for part in PARTS],
        title or _message(measured or modelled, bool(measured)),
        " ".join(map(_words, rows)),
        height=ROW * len(rows) + 140,
        barmode="stack",
        uniformtext={"mode": "hide", "minsize": 11},
        bargap=0.25,
        xaxis=axis("share of the time (%)", range=[0, 100], zeroline=False),
        yaxis=axis("", autorange="reversed", showgrid=False),
    )


def shares(waiting: Waiting) -> dict[str, float]:
    """{part: its share in per cent}."""
    whole = sum(getattr(waiting, part) for part in PARTS) or 1.0
    return {part: 100 * getattr(waiting, part) / whole for part in PARTS}


def _bar(part: str, rows: Sequence[Row]) -> go.Bar:
    look = LOOKS[part]
    values = [row.shares[part] for row in rows]
    return go.Bar(
        orientation="h",
        y=[f"{row.name}, {row.how}" for row in rows],
        x=values,
        name=NAMES[part],
        marker=look.marker,
        text=[f"{v:.0f} %" if v >= 0.5 else "" for v in values],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": look.ink, "weight": look.weight},
        hovertemplate=f"%{{y}}: {NAMES[part]} %{{x:.1f}} % of the time<extra></extra>",
    )


def _message(rows: Sequence[Waiting], measured: bool) -> str:
    computing = [shares(row)["compute"] for row in rows]
    how = "measured" if measured else "by the clock"
    return (
        f"The busiest computes {how} {max(computing):.0f} % of the time, the idlest {how} "
        f"{min(computing):.0f} %"
    )


def _words(row: Row) -> str:
    """One bar in a sentence; every number that was measured stands behind that word."""
    how = "measured " if row.how == "measured" else ""
    parts = ", ".join(f"{NAMES[part]} {how}{row.shares[part]:.0f} %" for part in PARTS)
    return f"{row.name.capitalize()}, {row.how}: {parts}."
