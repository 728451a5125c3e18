"""A race: every method with every seed, how it went and where it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from .curves import MARKS
from .style import (
    COLOURS,
    DASHES,
    LEFT,
    RIGHT,
    Figure,
    axis,
    broken,
    figure,
    listed,
    log_axis,
    number,
    placeholder,
)

SHOWS = ("loss", "score")
PALE = 0.6  # opacity of a shipped run behind live ones
SPREAD = 0.5  # of a method's marks on the right, as a share of its place


@dataclass(frozen=True)
class Racer:
    """How one run of a race went.

    method    its label
    steps     done so far
    status    running, done, cancelled or diverged
    losses    (steps done, mean training loss) of each drawn point
    scores    (steps done, score on unseen data) of each evaluation
    diverged  the step, from 1, at which it did; or None
    shipped   whether it ran elsewhere, before
    """

    method: str
    seed: int
    steps: int
    status: str
    losses: tuple[tuple[int, float], ...] = ()
    scores: tuple[tuple[int, float], ...] = ()
    diverged: int | None = None
    shipped: bool = False

    @property
    def final(self) -> float | None:
        """The last score; 0 for a run that diverged; None before an evaluation."""
        if self.status == "diverged":
            return 0.0
        return self.scores[-1][1] if self.scores else None

    @property
    def ended(self) -> bool:
        """Did it reach its last step, or diverge before?"""
        return self.status in ("done", "diverged")


def race(
    racers: Sequence[Racer],
    score: str = "accuracy",
    show: str = "loss",
    title: str | None = None,
) -> Figure:
    """One curve a run, coloured by method; beside it where each run ended, method by method.

    score  what the scores are, in words
    show   the curves: "loss" (training loss, logarithmic) or "score"
    Shipped runs are pale beside live ones.  A run that diverged ends in a cross and counts 0.
    """
    if show not in SHOWS:
        raise ValueError(f"show is {show!r}: give one of {', '.join(SHOWS)}")
    if not racers:
        return placeholder("The race appears here", 380)
    methods = list(by_method(racers))
    pale = 1.0 if all(r.shipped for r in racers) else PALE
    traces = [t for r in racers for t in _curve(r, methods.index(r.method), show, pale)]
    ends = [t for i, rs in enumerate(by_method(racers).values()) for t in _ends(rs, i, pale)]
    named = [_key(method, i) for i, method in enumerate(methods)]
    return figure(
        [*named, *traces, *ends],
        title or message(racers),
        " ".join(words(racers, score)),
        height=380,
        xaxis=axis("step", domain=LEFT, rangemode="tozero"),
        yaxis=_left(racers, show, score),
        xaxis2=_places(methods),
        yaxis2=axis(f"{score} at the end", anchor="x2", rangemode="tozero"),
        uirevision="race",
    )


def by_method(racers: Iterable[Racer]) -> dict[str, list[Racer]]:
    """{method: its runs}, in the order in which methods first appear."""
    out: dict[str, list[Racer]] = {}
    for r in racers:
        out.setdefault(r.method, []).append(r)
    return out


def message(racers: Sequence[Racer]) -> str:
    """Which methods diverge, in a sentence."""
    groups = by_method(racers).items()
    dead = {name: sum(r.status == "diverged" for r in rs) for name, rs in groups}
    ended = {name: sum(r.ended for r in rs) for name, rs in groups}
    if not any(ended.values()):
        return "The race is on"
    if not any(dead.values()):
        return f"No run diverges: {listed(list(dead))}"
    told = [f"{name} in {n} of {ended[name]}" for name, n in dead.items() if n]
    alive = [name for name, n in dead.items() if not n and ended[name]]
    return f"Diverges: {listed(told)}" + (f"; never: {listed(alive)}" if alive else "")


def words(racers: Sequence[Racer], score: str) -> Iterator[str]:
    """How each method did, seed by seed."""
    for method, rs in by_method(racers).items():
        each = [f"seed {r.seed} {_fate(r, score)}" for r in rs]
        yield f"{method}: {'; '.join(each)}."


def _fate(r: Racer, score: str) -> str:
    how = " (shipped)" if r.shipped else ""
    if r.status == "diverged":
        return f"diverged at step {r.diverged}{how}"
    if r.final is None:
        return f"{r.status} after {r.steps} steps{how}"
    running = "" if r.status == "done" else f", {r.status} after {r.steps} steps"
    return f"{score} {number(r.final)}{running}{how}"


def _look(i: int, opacity: float) -> dict[str, object]:
    return {
        "line": {
            "color": COLOURS[i % len(COLOURS)],
            "dash": DASHES[i % len(DASHES)],
            "width": 1.5,
        },
        "opacity": opacity,
    }


def _key(method: str, i: int) -> go.Scatter:
    """The method's entry in the legend, for all its runs."""
    return go.Scatter(
        x=[None], y=[None], name=method, legendgroup=method, mode="lines", **_look(i, 1.0)
    )


def _curve(r: Racer, i: int, show: str, pale: float) -> Iterator[go.Scatter]:
    opacity = pale if r.shipped else 1.0
    points = r.losses if show == "loss" else r.scores
    what = f"{r.method}, seed {r.seed}{', shipped' if r.shipped else ''}"
    common = {"legendgroup": r.method, "showlegend": False}
    yield go.Scatter(
        x=[step for step, _ in points],
        y=[value for _, value in points],
        name=what,
        mode="lines+markers" if len(points) < 3 else "lines",
        hovertemplate=f"{what}<br>step %{{x}}: {show} %{{y:.3g}}<extra></extra>",
        **common,
        **_look(i, opacity),
    )
    if r.diverged is not None:
        bottom = 0.0 if show == "score" or not points else points[-1][1]
        yield go.Scatter(
            x=[r.diverged],
            y=[bottom],
            name=f"{what}, diverged",
            mode="markers",
            marker={"symbol": "x", "size": 10, "color": COLOURS[i % len(COLOURS)]},
            opacity=opacity,
            hovertemplate=f"{what}: diverged at step {r.diverged}<extra></extra>",
            **common,
        )


def _ends(racers: Sequence[Racer], i: int, pale: float) -> Iterator[go.Scatter]:
    """Where a method's runs ended: seeds side by side, the shipped ones pale."""
    last = max(r.seed for r in racers)
    for shipped in (True, False):
        some = [r for r in racers if r.shipped == shipped and r.final is not None]
        dead = [r.status == "diverged" for r in some]
        yield go.Scatter(
            x=[i + SPREAD * ((r.seed + 0.5) / (last + 1) - 0.5) for r in some],
            y=[r.final for r in some],
            mode="markers",
            marker={
                "symbol": ["x" if d else MARKS[i % len(MARKS)] for d in dead],
                "color": COLOURS[i % len(COLOURS)],
                "size": 9,
            },
            opacity=pale if shipped else 1.0,
            customdata=[_fate(r, "score") for r in some],
            text=[f"{r.method}, seed {r.seed}" for r in some],
            hovertemplate="%{text}: %{customdata}<extra></extra>",
            legendgroup=racers[0].method,
            showlegend=False,
            xaxis="x2",
            yaxis="y2",
        )


def _left(racers: Sequence[Racer], show: str, score: str) -> dict[str, object]:
    if show == "score":
        return axis(score, rangemode="tozero")
    return log_axis("training loss", (loss for r in racers for _, loss in r.losses))


def _places(methods: Sequence[str]) -> dict[str, object]:
    return axis(
        "",
        domain=RIGHT,
        anchor="y2",
        tickvals=list(range(len(methods))),
        ticktext=[broken(method.removeprefix("pipemare-")) for method in methods],
        tickfont={"size": 11},
        range=[-0.5, len(methods) - 0.5],
        showgrid=False,
    )
