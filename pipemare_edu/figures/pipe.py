"""Two pictures of one moment of a walk: where every microbatch is, and how far each list has run.

stage 1     [0] [1] [2]          next F3      a column for each microbatch: it travels down,
link 1-2             v                        then up
stage 2     [0] [1]              next F2
"""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go

from ..plan.ops import Op
from .style import COLOURS, FAINT, GREY, KINDS, Figure, axis, figure, rgba
from .walk import Walk, in_words, spaced, title

ROW = 30  # pixels a stage, and as much for the link below it
STUCK = COLOURS[1]


def pipe(walk: Walk, at: int) -> Figure:
    """What each stage holds, what waits in each link and what comes next, after `at` events."""
    state, stages = walk.states[at], len(walk.lists)
    last = max((op.index for row in walk.lists for op in row if op.kind in "FBR"), default=0)
    held = [(m, 2 * i) for i, row in enumerate(state.held) for m in row]
    down = [(_column(op), 2 * i + 1) for i, row in enumerate(state.down) for op in row]
    up = [(op.index, 2 * i + 1) for i, row in enumerate(state.up) for op in row]
    evaluates = any(op.kind == "E" for row in walk.lists for op in row)
    first = -1 if evaluates else 0
    traces = [
        _bands(stages, first, last),
        _tokens(held, "held by a stage", "square", KINDS["F"].colour, "white"),
        _tokens(down, "output in a link, going down", "triangle-down", COLOURS[5], "black"),
        _tokens(up, "gradient in a link, going up", "triangle-up", KINDS["B"].colour, "black"),
    ]
    if at and (event := walk.events[at - 1]).kind in "FBR":
        traces.append(_ring([event.index], [2 * event.stage], "just ran").update(yaxis="y2"))
    rows = [
        f"stage {n // 2 + 1}" if n % 2 == 0 else f"link {n // 2 + 1}–{n // 2 + 2}"
        for n in range(2 * stages - 1)
    ]
    return figure(
        traces,
        title(walk, at),
        in_words(walk, at),
        height=ROW * (2 * stages - 1) + 170,
        xaxis=axis(
            f"microbatch; in flight: {spaced(state.in_flight)}",
            range=[first - 0.6, last + 0.6],
            tickvals=list(range(first, last + 1)),
            ticktext=["E"] * evaluates + [str(m) for m in range(last + 1)],
            showgrid=False,
            zeroline=False,
        ),
        yaxis=axis(
            "",
            range=[2 * stages - 1.4, -0.6],
            tickvals=list(range(2 * stages - 1)),
            ticktext=rows,
            showgrid=False,
            zeroline=False,
        ),
        yaxis2={
            **axis("", overlaying="y", side="right", matches="y", showgrid=False, zeroline=False),
            "tickvals": [2 * i for i in range(stages)],
            "ticktext": _nexts(walk, at),
        },
    )


def listing(walk: Walk, at: int) -> Figure:
    """The lists of all stages: what has run is filled, what is to come is pale, and an operation
    that waits for ever is crossed."""
    done, stages, stuck = walk.states[at].done, len(walk.lists), walk.stuck(at)
    places = [(i, n, op) for i, row in enumerate(walk.lists) for n, op in enumerate(row)]
    traces: list[go.Bar | go.Scatter] = [
        _cells([p for p in places if p[2].kind == kind], kind, done, set(stuck))
        for kind in KINDS
        if any(op.kind == kind for *_, op in places)
    ]
    if at:
        stage = walk.events[at - 1].stage
        traces.append(_ring([done[stage] - 0.5], [stage + 1], "just ran"))
    longest = max(map(len, walk.lists), default=0)
    ran = [f"{n} of {len(row)}" for n, row in zip(done, walk.lists, strict=True)]
    return figure(
        traces,
        _progress(walk, at),
        f"A row of operations for each stage, from the first to the last: {', '.join(ran)} ran. "
        + " ".join(f"{text[0].upper()}{text[1:]}." for text in stuck.values()),
        height=ROW * stages + 140,
        barmode="overlay",
        bargap=0,
        uniformtext={"minsize": 7, "mode": "hide"},
        xaxis=axis("place in the list", range=[-0.2, longest + 0.2], showgrid=False),
        yaxis=axis(
            "stage", range=[stages + 0.6, 0.4], tickvals=list(range(1, stages + 1)), showgrid=False
        ),
    )


def _progress(walk: Walk, at: int) -> str:
    stuck = walk.stuck(at)
    if stuck:
        waiting = ", ".join(f"stage {i + 1} at {op}" for i, op in enumerate(walk.next(at)) if op)
        return f"Waiting for ever: {waiting}"
    total = sum(map(len, walk.lists))
    return f"{at} of {total} operations have run"


def _column(op: Op) -> int:
    return -1 if op.kind == "E" else op.index


def _nexts(walk: Walk, at: int) -> list[str]:
    stuck = walk.stuck(at)
    words = []
    for i, op in enumerate(walk.next(at)):
        then = "finished" if op is None else f"stuck at {op}" if i in stuck else f"next {op}"
        words.append(f"{then}, version {walk.states[at].versions[i]}")
    return words


def _bands(stages: int, first: int, last: int) -> go.Bar:
    """A pale band for each stage, so that links read as what is between them."""
    return go.Bar(
        y=[2 * i for i in range(stages)],
        x=[last - first + 1] * stages,
        base=first - 0.5,
        width=0.9,
        orientation="h",
        marker={"color": FAINT, "line": {"width": 0}},
        hoverinfo="skip",
        showlegend=False,
    )


def _tokens(
    places: Iterable[tuple[int, int]], name: str, symbol: str, colour: str, ink: str
) -> go.Scatter:
    places = list(places)
    missing = [None] * (not places)  # keeps its entry in the legend
    return go.Scatter(
        x=[*(x for x, _ in places), *missing],
        y=[*(y for _, y in places), *missing],
        yaxis="y2",  # above the bands
        text=["E" if x < 0 else str(x) for x, _ in places],
        name=name,
        mode="markers+text",
        marker={"symbol": symbol, "size": 22, "color": colour},
        textfont={"color": ink, "size": 11},
        showlegend=True,
        hovertemplate=f"microbatch %{{text}}: {name}<extra></extra>",
    )


def _ring(x: list[float], y: list[int], name: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="markers",
        marker={"symbol": "square-open", "size": 28, "color": GREY, "line": {"width": 3}},
        hoverinfo="skip",
    )


def _cells(
    places: list[tuple[int, int, Op]], kind: str, done: tuple[int, ...], stuck: set[int]
) -> go.Bar:
    look = KINDS[kind]
    # A legend shows the look of the first bar: not that of one that waits for ever.
    places = sorted(places, key=lambda place: place[0] in stuck and place[1] == done[place[0]])
    crossed = [i in stuck and n == done[i] for i, n, _ in places]
    ran = [n < done[i] for i, n, _ in places]
    return go.Bar(
        name=look.name,
        orientation="h",
        y=[i + 1 for i, *_ in places],
        base=[n for _, n, _ in places],
        x=[1] * len(places),
        width=0.8,
        text=[f"✕ {op}" if x else str(op) for (*_, op), x in zip(places, crossed, strict=True)],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": [look.ink if r else GREY for r in ran]},
        customdata=["has run" if r else "to come" for r in ran],
        hovertemplate="stage %{y}: %{text}, %{customdata}<extra></extra>",
        marker={
            "color": [look.colour if r else rgba(look.colour, 0.12) for r in ran],
            "pattern": {
                "shape": [look.hatch if r else "" for r in ran],
                "fillmode": "overlay",
                "fgcolor": "rgba(255,255,255,0.45)",
                "size": 6,
                "solidity": 0.2,
            },
            "line": {
                "color": [
                    STUCK if x else "white" if r else look.colour
                    for x, r in zip(crossed, ran, strict=True)
                ],
                "width": [4 if x else 1 for x in crossed],
            },
        },
    )
