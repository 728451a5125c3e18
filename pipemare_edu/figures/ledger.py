"""Bytes that a pipeline holds: stage by stage, formula beside count; and method beside method.

Rows are those of plan.ledger and of run.memory: {kind: bytes} for each stage, at its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from ..plan.copies import BASE, EXTRA
from .style import COLOURS, GREY, Figure, Look, axis, broken, figure, listed

Row = Mapping[str, int]

LOOKS = {
    "weights": Look("weights", COLOURS[0], "", "white"),
    "gradients": Look("gradients", COLOURS[5], "/", "black"),
    "optimizer": Look("optimizer state", COLOURS[2], "\\", "white"),
    "stash": Look("old versions (stash)", COLOURS[1], "x", "white"),
    "correction": Look("correction (T2)", COLOURS[3], "-", "black"),
    "working": Look("working buffer", GREY, ".", "white"),
    "activations": Look("activations", COLOURS[4], "", "black"),
    "inputs": Look("inputs that wait for a re-run", COLOURS[4], "|", "black"),
}
SHOWN = {
    "everything": tuple(LOOKS),
    "weights and optimizer": (*BASE, *EXTRA),
    "activations": ("activations", "inputs"),
}
UNITS = ("bytes", "KB", "MB", "GB", "TB")


def size(count: float) -> str:
    """Bytes in three digits, in units of a thousand: "16.4 KB"."""
    unit, scale = _unit(count)
    value = count / scale
    return f"{value:.0f} {unit}" if value >= 99.95 or scale == 1 else f"{value:#.3g} {unit}"


def _unit(most: float) -> tuple[str, float]:
    power = sum(most >= 999.5 * 1000**n for n in range(len(UNITS) - 1))
    return UNITS[power], 1000.0**power


def total(rows: Sequence[Row], shown: str = "everything") -> int:
    """The bytes of these kinds (SHOWN) over all stages."""
    return sum(row[kind] for row in rows for kind in SHOWN[shown])


def stage_bytes(
    formula: Sequence[Row],
    counted: Sequence[Row] | None = None,
    shown: str = "everything",
    label: str = "",
) -> Figure:
    """Two charts side by side with one scale, a stack for each stage (counted from 1): bytes by
    formula, and bytes counted in a run.

    counted  None: nothing has run yet, and the second chart says so
    shown    which kinds: a key of SHOWN
    label    what it is about, for the title
    """
    sides = {"": formula, "2": counted or []}
    most = max(sum(row[k] for k in SHOWN[shown]) for rows in sides.values() for row in rows)
    unit, scale = _unit(most)
    bars = [
        bar
        for side, rows in sides.items()
        for bar in _stacks(rows, range(1, len(rows) + 1), shown, (unit, scale), side)
    ]
    missing = [] if counted else [_note("Run counts them in real training")]
    return figure(
        bars,
        f"{label}{': ' * bool(label)}{_message(formula, counted, shown)}",
        _stage_words(formula, counted, shown),
        height=340,
        barmode="stack",
        bargap=0.25,
        annotations=missing,
        **_two_axes(len(formula), unit, most / scale),
    )


def _two_axes(stages: int, unit: str, top: float) -> dict[str, Any]:
    stage = stage_ticks(stages)
    height = {"range": [0, 1.06 * (top or 1.0)]}
    return {
        "xaxis": axis("stage: bytes by formula", domain=[0, 0.485], **stage),
        "yaxis": axis(unit, **height),
        "xaxis2": axis("stage: bytes counted in a run", domain=[0.515, 1], anchor="y2", **stage),
        "yaxis2": axis("", anchor="x2", showticklabels=False, **height),
    }


def stage_ticks(stages: int) -> dict[str, Any]:
    """An axis of stages, each with a tick where there is room."""
    ticks = {"tick0": 1, "dtick": 1 if stages <= 16 else 4}
    return {"range": [0.4, stages + 0.6], "showgrid": False, "zeroline": False, **ticks}


def _note(text: str) -> dict[str, Any]:
    middle = {"xref": "x2 domain", "x": 0.5, "yref": "y2 domain", "y": 0.5}
    return {"text": text, "showarrow": False, **middle}


def _stacks(
    rows: Sequence[Row], x: Sequence[Any], shown: str, units: tuple[str, float], side: str = ""
) -> Iterator[go.Bar]:
    """One trace a kind that has any bytes."""
    unit, scale = units
    for kind in SHOWN[shown]:
        values = [row[kind] for row in rows]
        if not any(values):
            continue
        look = LOOKS[kind]
        yield go.Bar(
            x=list(x),
            y=[value / scale for value in values],
            name=look.name,
            legendgroup=kind,
            showlegend=not side,
            customdata=values,
            marker=filled(look),
            hovertemplate=f"%{{x}}: {look.name} %{{y:.4~g}} {unit}, %{{customdata:,}} bytes"
            "<extra></extra>",
            xaxis=f"x{side}",
            yaxis=f"y{side}",
        )


def filled(look: Look) -> dict[str, Any]:
    """A bar's fill: the colour, and the hatch in half-transparent white upon it."""
    white = "rgba(255,255,255,0.55)"
    hatch = {"shape": look.hatch, "fillmode": "overlay", "fgcolor": white, "size": 6}
    return {
        "color": look.colour,
        "pattern": {**hatch, "solidity": 0.25},
        "line": {"width": 0},  # else a bar of height nothing is a line
    }


def _message(formula: Sequence[Row], counted: Sequence[Row] | None, shown: str) -> str:
    whole = total(formula, shown)
    if counted is None:
        each = [sum(row[kind] for kind in SHOWN[shown]) for row in formula]
        most = max(range(len(each)), key=each.__getitem__)
        return f"stage {most + 1} needs the most, {size(each[most])} of {size(whole)}, by formula"
    if all(a[k] == b[k] for a, b in zip(formula, counted, strict=True) for k in SHOWN[shown]):
        return f"formula and count agree to the byte, {size(whole)} in all"
    return f"{size(whole)} by formula, {size(total(counted, shown))} counted"


def _stage_words(formula: Sequence[Row], counted: Sequence[Row] | None, shown: str) -> str:
    each = [size(sum(row[kind] for kind in SHOWN[shown])) for row in formula]
    text = (
        f"Bars for {len(formula)} stages, in bytes by formula ({shown}). From the first stage to "
        f"the last: {listed(each)}. By kind: {listed(_by_kind(formula, shown))}."
    )
    if counted is None:
        return f"{text} Nothing has been counted yet."
    return f"{text} Beside them, counted in a run: {listed(_by_kind(counted, shown))}."


def _by_kind(rows: Sequence[Row], shown: str) -> list[str]:
    sums = {kind: sum(row[kind] for row in rows) for kind in SHOWN[shown]}
    return [f"{LOOKS[k].name} {size(v)}" for k, v in sums.items() if v] or ["nothing"]


def method_bytes(
    bills: Mapping[str, Sequence[Row]],
    counted: Mapping[str, Sequence[Row]] | None = None,
    shown: str = "everything",
    label: str = "",
) -> Figure:
    """A stack for each method: the bytes of all its stages by formula, how many times those of
    the first method they are, and a diamond where a run has counted them.

    bills, counted  {method: rows}
    label           what is the same for all of them, for the title
    """
    sums = {name: total(rows, shown) for name, rows in bills.items()}
    ran = {name: total(rows, shown) for name, rows in (counted or {}).items()}
    first, *_ = sums
    times = {name: value / (sums[first] or 1) for name, value in sums.items()}
    unit, scale = _unit(max(sums.values()))
    over = [{kind: sum(row[kind] for row in rows) for kind in LOOKS} for rows in bills.values()]
    return figure(
        [
            *_stacks(over, list(bills), shown, (unit, scale)),
            _diamonds({name: value / scale for name, value in ran.items()}, unit),
        ],
        f"{label}{': ' * bool(label)}{_method_message(times, shown)}",
        _method_words(sums, times, ran, shown),
        height=330,
        barmode="stack",
        bargap=0.4,
        xaxis=axis(
            "", showgrid=False, type="category", tickvals=list(bills),
            ticktext=[broken(name) for name in bills],
        ),
        yaxis=axis(unit, range=[0, 1.25 * max(sums.values()) / scale]),
        annotations=[_above(name, sums[name] / scale, times[name]) for name in bills],
    )  # fmt: skip


def _diamonds(heights: Mapping[str, float], unit: str) -> go.Scatter:
    return go.Scatter(
        x=list(heights),
        y=list(heights.values()),
        name="counted in a run",
        mode="markers",
        marker={"symbol": "diamond", "size": 12, "color": "white", "line": {"width": 2}},
        showlegend=bool(heights),
        hovertemplate=f"%{{x}}: counted %{{y:.4~g}} {unit}<extra></extra>",
    )


def _above(name: str, height: float, times: float) -> dict[str, Any]:
    text = f"{times:.2f} ×"
    return {"x": name, "y": height, "text": text, "showarrow": False, "yanchor": "bottom",
            "yshift": 12}  # fmt: skip


def _method_message(times: Mapping[str, float], shown: str) -> str:
    first, *_ = times
    most = max(times, key=times.__getitem__)
    what = {"everything": "bytes"}.get(shown, shown)
    if times[most] == 1:
        return f"No method holds more than {first}'s {what}"
    return f"{most} holds {times[most]:.2f} times {first}'s {what}"


def _method_words(
    sums: Mapping[str, int], times: Mapping[str, float], ran: Mapping[str, int], shown: str
) -> str:
    each = [f"{name} {size(value)} ({times[name]:.2f} times)" for name, value in sums.items()]
    text = f"Bars for {len(sums)} methods, bytes of all stages by formula ({shown}): {listed(each)}"
    if ran:
        text += f"; counted in runs: {listed([f'{name} {size(v)}' for name, v in ran.items()])}"
    return f"{text}."
