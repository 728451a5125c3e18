"""Time to a target, taken apart into the factors that make it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import plotly.graph_objects as go

from .style import COLOURS, GREY, Figure, axis, broken, figure, listed, number


class Factors(NamedTuple):
    """A method's time to target over the baseline's: steps * bill / utilization.

    utilization  the baseline's time per step over the method's
    steps        the method's steps over the baseline's
    bill         what its synchronous warm-up adds
    reached      how many of its `runs` get there; the factors are means over those
    after        steps until then
    """

    utilization: float
    steps: float
    bill: float
    reached: int = 1
    runs: int = 1
    after: int = 0

    @property
    def time(self) -> float:
        return self.steps * self.bill / self.utilization

    @property
    def arrive(self) -> str:
        """How many runs get there."""
        return f"{self.reached} of {self.runs} runs arrive"


WRITTEN = 0.36  # the share of the width that an equation takes beside its diamond
PARTS = (
    ("utilization", "#009E73", ""),
    ("steps", "#D55E00", "/"),
    ("T3's bill", "#E69F00", "x"),
)


def factors(found: Mapping[str, Factors | None], baseline: str, title: str | None = None) -> Figure:
    """One row a method: from 1, to the left for a better utilization, then to the right for more
    steps and for a warm-up; a diamond marks where that ends, which is the time to target.

    found     {method: its factors, None for one that does not get there}
    baseline  what a time of 1 is
    """
    known = {name: f for name, f in found.items() if f is not None}
    rows = list(found)[::-1]
    return figure(
        [*_bars(known), _ends(known)],
        title or _message(found, baseline),
        _words(found, baseline),
        height=130 + 62 * max(1, len(rows)),
        barmode="overlay",
        bargap=0.25,
        xaxis=axis(
            f"time to target, in {baseline}'s (log scale)", type="log", tickvals=list(TICKS),
            ticktext=[f"{t:g}" for t in TICKS], range=_range(known.values()),
        ),
        yaxis=axis("", categoryorder="array", categoryarray=rows, showgrid=False, type="category",
                   range=[-0.6, len(rows) - 0.4], tickvals=rows,
                   ticktext=[_label(name, found[name]) for name in rows]),
        shapes=[{"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper",
                 "line": {"color": GREY, "dash": "dot", "width": 1.5}}],
        annotations=[_missing(name) for name, f in found.items() if f is None],
    )  # fmt: skip


TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def _steps(f: Factors) -> list[tuple[float, float]]:
    """From where to where each factor leads."""
    first, second = 1 / f.utilization, f.steps / f.utilization
    return [(1.0, first), (first, second), (second, f.time)]


def _bars(known: Mapping[str, Factors]) -> list[go.Bar]:
    """A bar for each factor, one above the other within a method's row."""
    out = []
    for part, (name, colour, hatch) in enumerate(PARTS):
        spans = [_steps(f)[part] for f in known.values()]
        values = [(f.utilization, f.steps, f.bill)[part] for f in known.values()]
        out.append(
            go.Bar(
                y=list(known),
                base=[min(span) for span in spans],
                x=[abs(b - a) for a, b in spans],
                name=name,
                orientation="h",
                width=0.24,
                offset=0.14 - 0.26 * part,
                customdata=[number(v) for v in values],
                marker={"color": colour, "pattern": {"shape": hatch, "solidity": 0.25}},
                hovertemplate=f"%{{y}}: {name} %{{customdata}}<extra></extra>",
            )
        )
    return out


def _ends(known: Mapping[str, Factors]) -> go.Scatter:
    return go.Scatter(
        x=[f.time for f in known.values()],
        y=list(known),
        name="time to target",
        mode="markers+text",
        text=[_equation(f) for f in known.values()],
        textposition="middle right",
        cliponaxis=False,
        marker={"symbol": "diamond", "size": 12, "color": COLOURS[0]},
        customdata=[f"{f.arrive}, after {f.after} steps" for f in known.values()],
        hovertemplate="%{y}: %{x:.3g} (%{customdata})<extra></extra>",
    )


def _label(name: str, f: Factors | None) -> str:
    """A row's name, and how many runs the row speaks of."""
    return broken(name) if f is None else f"{broken(name)}<br>{_small(f.arrive)}"


def _small(text: str) -> str:
    return f'<span style="font-size:10px">{text}</span>'


def _equation(f: Factors) -> str:
    """The time and, below, what it is made of; a factor of 1 is left out."""
    bill = f" × {number(f.bill)}" if number(f.bill) != "1" else ""
    below = f" / {number(f.utilization)}" if number(f.utilization) != "1" else ""
    made = f"{number(f.steps)}{bill}{below}"
    if made == number(f.time):
        return f"  {made}"
    # The empty line above keeps the time beside its diamond.
    return f"<br>  {number(f.time)}<br>  {_small(f'= {made}')}"


def _missing(name: str) -> dict[str, object]:
    return {"x": 0.02, "xref": "paper", "xanchor": "left", "y": name, "showarrow": False,
            "text": "✕ no run arrives"}  # fmt: skip


def _range(known: Iterable[Factors]) -> list[float]:
    """Decades around everything that is drawn; what is written beside a diamond has the last
    `WRITTEN` of the width to itself."""
    known = list(known)
    values = [x for f in known for span in _steps(f) for x in span]
    low, high = math.log10(min([0.5, *values])) - 0.1, math.log10(max([2.0, *values])) + 0.1
    last = math.log10(max([1.0, *(f.time for f in known)]))
    return [low, max(high, low + (last - low) / (1 - WRITTEN))]


def _message(found: Mapping[str, Factors | None], baseline: str) -> str:
    others = {n: f.time for n, f in found.items() if f is not None and n != baseline}
    if not others:
        return "No other method reaches the target"
    best = min(others, key=lambda name: others[name])
    f = found[best]
    some = f" ({f.arrive})" if f is not None and f.reached < f.runs else ""
    if math.isclose(others[best], 1.0, rel_tol=0.005):
        return f"Nobody gets there sooner than {baseline}"
    if others[best] < 1:
        return f"{best} gets there in {number(others[best])} of {baseline}'s time{some}"
    return f"{baseline} is there first: {best} takes {number(others[best])} times as long{some}"


def _words(found: Mapping[str, Factors | None], baseline: str) -> str:
    said = [_told(name, f) for name, f in found.items() if f is not None]
    lost = [name for name, f in found.items() if f is None]
    missing = f" No run arrives: {listed(lost)}." if lost else ""
    return (
        f"Time to target in {baseline}'s, a mean over the runs that arrive. {' '.join(said)}"
        f"{missing}"
    )


def _told(name: str, f: Factors) -> str:
    made = f"{number(f.steps)} in steps, {number(f.bill)} for T3, over utilization "
    return f"{name}: {number(f.time)} = {made}{number(f.utilization)}; {f.arrive}."
