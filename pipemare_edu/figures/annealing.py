"""How runs with T1 end, over the length K of its annealing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from .race import PALE, Racer
from .style import COLOURS, GREY, Figure, axis, figure, listed, number

DEAD, ALIVE = COLOURS[1], COLOURS[0]


def annealing(
    ends: Mapping[int, Sequence[Racer]],
    steps: int,
    score: str = "accuracy",
    chosen: int | None = None,
    guess: float | None = None,
    title: str | None = None,
) -> Figure:
    """A mark for each run: a circle at its last score, or a cross at 0 if it diverged.

    ends    {K: its runs}; those that were shipped are pale, those of one K stand side by side
    steps   of every run
    chosen  a K to be marked
    guess   a learner's guess of a K
    """
    runs = [(k, r) for k, rs in sorted(ends.items()) for r in rs if r.final is not None]
    traces = [
        _marks(runs, dead, shipped, steps) for dead in (False, True) for shipped in (True, False)
    ]
    shown = figure(
        traces,
        title or _message(ends),
        " ".join(_words(ends, score)) or "No run yet.",
        height=320,
        xaxis=axis("K, steps until every stage has the base rate", range=[0, 1.04 * steps]),
        yaxis=axis(f"{score} after {steps} steps", range=[-5, 105]),
    )
    for value, name, colour in ((chosen, "K now", GREY), (guess, "your guess", COLOURS[4])):
        if value is not None:
            shown.add_vline(value, line_dash="dot", line_color=colour, annotation_text=name)
    return shown


def _marks(runs: Iterable[tuple[int, Racer]], dead: bool, shipped: bool, steps: int) -> go.Scatter:
    some = [(k, r) for k, r in runs if (r.status == "diverged") == dead and r.shipped == shipped]
    name = ("diverged" if dead else "to the end") + (", shipped" if shipped else ", here")
    return go.Scatter(
        x=[k + 0.006 * steps * (r.seed - 1) for k, r in some],
        y=[r.final for _, r in some],
        name=name,
        mode="markers",
        marker={
            "symbol": "x" if dead else "circle",
            "color": DEAD if dead else ALIVE,
            "size": 9 if shipped else 11,
        },
        opacity=PALE if shipped else 1.0,
        text=[_fate(k, r) for k, r in some],
        hovertemplate="%{text}<extra></extra>",
        showlegend=bool(some),
    )


def _fate(k: int, r: Racer) -> str:
    if r.status == "diverged":
        return f"K = {k}, seed {r.seed}: diverged at step {r.diverged}"
    return f"K = {k}, seed {r.seed}: {number(r.final or 0.0)}"


def _deaths(ends: Mapping[int, Sequence[Racer]]) -> dict[int, tuple[int, int]]:
    """{K: (runs that diverged, runs that ended)}."""
    counts = {
        k: (sum(r.status == "diverged" for r in rs), sum(r.ended for r in rs))
        for k, rs in sorted(ends.items())
    }
    return {k: pair for k, pair in counts.items() if pair[1]}


def _message(ends: Mapping[int, Sequence[Racer]]) -> str:
    counts = _deaths(ends)
    if not counts:
        return "How runs with T1 end appears here"
    dead = [k for k, (died, all_) in counts.items() if died == all_]
    alive = [k for k, (died, _) in counts.items() if not died]
    parts = [f"at K = {max(dead)} every run diverges"] if dead else []
    parts += [f"at K = {min(alive)} none does"] if alive else []
    return (" and ".join(parts) or "Some runs diverge").capitalize().replace("k = ", "K = ")


def _words(ends: Mapping[int, Sequence[Racer]], score: str) -> Iterable[str]:
    for k, (died, ended) in _deaths(ends).items():
        alive = [number(r.final or 0.0) for r in ends[k] if r.status == "done"]
        rest = f", {score} {listed(alive)}" if alive else ""
        yield f"K = {k}: {died} of {ended} runs diverged{rest}."
