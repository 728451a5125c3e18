"""A board of recipes: final quality of every combination, and what it costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from .style import GREY, Figure, axis, figure

PALE, FULL = (238, 242, 245), (0, 114, 178)  # from no accuracy to 100 %
CHOSEN, LIVE = "#CC79A7", "#D55E00"
EDGE = "rgba(128,128,128,0.6)"


@dataclass(frozen=True)
class Entry:
    """The runs of one cell: how each seed's ended, in per cent, or None where it diverged.

    id    what a click on it sends
    live  the same of runs made just now, by seed
    """

    scores: Mapping[int, float | None]
    id: str = ""
    live: Mapping[int, float | None] | None = None

    @property
    def mean(self) -> float:
        """A run that diverged counts 0; 0 without a run."""
        return statistics.mean([score or 0.0 for score in self.scores.values()] or [0.0])

    @property
    def diverged(self) -> int:
        return sum(score is None for score in self.scores.values())


def recipe_board(
    rows: Mapping[str, Sequence[Entry]],
    columns: Sequence[str],
    across: str,
    costs: Mapping[str, tuple[float, float]],
    chosen: tuple[str, int],
    title: str,
) -> Figure:
    """A heat map of the mean final accuracy, a row for each recipe, and beside it what each costs.

    rows     {recipe: one entry a column}
    columns  their labels; across: what differs between them
    costs    {recipe: (utilization, memory over that of weights, gradients and optimizer)}
    chosen   (recipe, column), framed

    Cells in which every run diverged are cross-hatched, those in which some did are hatched.
    """
    names = list(rows)
    entries = [(name, n, e) for name, row in rows.items() for n, e in enumerate(row)]
    used = [costs[name] for name in names]
    traces = [
        _cells(entries, columns, across, names, chosen),
        _bars(names, [u for u, _ in used], "x2", "{:.2f}", "utilization"),
        _bars(names, [m for _, m in used], "x3", "{:.2f}×", "memory"),
        _stars(entries, names),
    ]
    return figure(
        traces,
        title,
        _words(entries, columns, across, costs),
        height=130 + 36 * len(names),
        barmode="overlay",
        showlegend=False,
        **_axes(columns, across, names, max(m for _, m in used)),
        above=46,
        margin={"r": 30, "b": 30},
        annotations=[_key()],
        uirevision="board",
    )


def _axes(columns: Sequence[str], across: str, names: Sequence[str], most: float) -> dict[str, Any]:
    """The board's own axes, and those of the two costs beside it, the memory up to `most`."""
    top = {"side": "top", "showgrid": False, "zeroline": False}
    hidden = {"showticklabels": False, "ticks": "", "fixedrange": True}
    return {
        "xaxis": axis(
            across,
            domain=[0, 0.58],
            tickvals=list(range(len(columns))),
            ticktext=list(columns),
            range=[-0.52, len(columns) - 0.48],
            fixedrange=True,
            **top,
        ),
        "xaxis2": axis("utili-<br>zation", domain=[0.62, 0.78], range=[0, 1.7], **top, **hidden),
        "xaxis3": axis(
            "weight<br>memory", domain=[0.83, 1], range=[0, 1.7 * most], **top, **hidden
        ),
        "yaxis": axis(
            "",
            tickvals=list(range(len(names))),
            ticktext=names,
            range=[len(names) - 0.5, -0.5],
            showgrid=False,
            zeroline=False,
            fixedrange=True,
        ),
    }


def _cells(
    entries: Sequence[tuple[str, int, Entry]],
    columns: Sequence[str],
    across: str,
    names: Sequence[str],
    chosen: tuple[str, int],
) -> go.Bar:
    shades = [(e.mean / 100) ** 3 for _, _, e in entries]  # tells 90 from 98
    framed = [(name, n) == chosen for name, n, _ in entries]
    return go.Bar(
        orientation="h",
        base=[n - 0.48 for _, n, _ in entries],
        x=[0.96] * len(entries),
        y=[names.index(name) for name, _, _ in entries],
        width=0.92,
        ids=[e.id for _, _, e in entries],
        text=[_short(e) for _, _, e in entries],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside",
        textfont={"color": ["black" if shade < 0.6 else "white" for shade in shades]},
        marker={
            "color": [_colour(shade) for shade in shades],
            "pattern": {
                "shape": [_hatch(e) for _, _, e in entries],
                "fillmode": "overlay",
                "fgcolor": EDGE,
                "size": 9,
                "solidity": 0.18,
            },
            "line": {
                "color": [CHOSEN if f else EDGE for f in framed],
                "width": [4 if f else 0 for f in framed],
            },
        },
        customdata=[
            f"<b>{name}, {across} {columns[n]}</b><br>{'<br>'.join(_each(e))}"
            for name, n, e in entries
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _bars(names: Sequence[str], values: Sequence[float], on: str, form: str, what: str) -> go.Bar:
    return go.Bar(
        orientation="h",
        x=list(values),
        y=list(range(len(names))),
        xaxis=on,
        width=0.5,
        text=[form.format(v) for v in values],
        textposition="outside",
        constraintext="none",
        cliponaxis=False,
        textfont={"color": GREY},
        marker={"color": "#E69F00" if on == "x2" else "#56B4E9"},
        customdata=list(names),
        hovertemplate=f"%{{customdata}}: {what} %{{text}}<extra></extra>",
    )


def _stars(entries: Sequence[tuple[str, int, Entry]], names: Sequence[str]) -> go.Scatter:
    """A star on every cell that was run just now."""
    live = [(name, n, e) for name, n, e in entries if e.live]
    return go.Scatter(
        x=[n + 0.4 for _, n, _ in live],
        y=[names.index(name) - 0.2 for name, _, _ in live],
        mode="markers",
        marker={
            "symbol": "star",
            "size": 13,
            "color": LIVE,
            "line": {"color": "white", "width": 1},
        },
        customdata=["<br>".join(_runs(e.live or {}, "live, ")) for _, _, e in live],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _key() -> dict[str, Any]:
    """What the numbers are, below the board."""
    where = {"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yref": "paper", "yanchor": "top"}
    text = "mean final accuracy, %; ✕ diverged, which counts 0"
    return {"text": text, "showarrow": False, "yshift": -4, **where}


def _short(entry: Entry) -> str:
    """What stands in a cell."""
    if not entry.scores:
        return "not run"
    if not entry.diverged:
        return f"{entry.mean:.1f}"
    if entry.diverged == len(entry.scores):
        return "✕"
    return f"{entry.mean:.1f}<br>({entry.diverged} ✕)"  # side by side is too wide for a narrow page


def _hatch(entry: Entry) -> str:
    return "" if not entry.diverged else "x" if entry.diverged == len(entry.scores) else "/"


def _colour(shade: float) -> str:
    mixed = (round(a + (b - a) * shade) for a, b in zip(PALE, FULL, strict=True))
    return "rgb({}, {}, {})".format(*mixed)


def _each(entry: Entry) -> list[str]:
    """A line for every seed's run."""
    return [*_runs(entry.scores), *_runs(entry.live or {}, "live, ")]


def _runs(scores: Mapping[int, float | None], which: str = "") -> list[str]:
    return [f"{which}seed {seed}: {_end(score)}" for seed, score in scores.items()]


def _end(score: float | None) -> str:
    return "diverged" if score is None else f"{score:.1f} %"


def _words(
    entries: Sequence[tuple[str, int, Entry]],
    columns: Sequence[str],
    across: str,
    costs: Mapping[str, tuple[float, float]],
) -> str:
    said = []
    for name, (used, memory) in costs.items():
        row = [f"{columns[n]}: {_spoken(e)}" for other, n, e in entries if other == name]
        said.append(f"{name}: {'; '.join(row)}; utilization {used:.2f}, memory {memory:.2f} times.")
    return f"Mean final accuracy in per cent, by {across}. " + " ".join(said)


def _spoken(entry: Entry) -> str:
    if not entry.scores:
        return "not run"
    if entry.diverged == len(entry.scores):
        return "every run diverged"
    some = f", {entry.diverged} of {len(entry.scores)} diverged" if entry.diverged else ""
    return f"{entry.mean:.1f}{some}"
