"""What holds for every figure: light and dark, words, and no heavy imports."""

from __future__ import annotations

import subprocess
import sys

import plotly.graph_objects as go
import pytest
from axes import bare

from pipemare_edu.figures import (
    Entry,
    arrivals,
    bubbles,
    cell_runs,
    curves,
    describe,
    gantt,
    headline,
    held_bars,
    ladder,
    listing,
    method_bytes,
    pipe,
    placeholder,
    recipe_board,
    scores,
    segment_curve,
    speedup,
    stage_bytes,
    staleness_bars,
    time_use,
    walk,
)
from pipemare_edu.figures.style import COLOURS, GREY, LINE, axis, figure
from pipemare_edu.plan.clock import simulate
from pipemare_edu.plan.held import peaks
from pipemare_edu.plan.ledger import ledger
from pipemare_edu.plan.schedules import schedule
from pipemare_edu.trainer.run import Staleness
from pipemare_edu.trainer.waiting import Waiting

FIGURES = [
    gantt(simulate(schedule("gpipe", 3, 2, 1))),
    ladder(simulate(schedule("lockstep", 3, 2, 4))),
    curves({}),
    staleness_bars(Staleness()),
    placeholder("Nothing yet", 100),
    stage_bytes(ledger([8, 8], [3, 1], 1)),
    method_bytes({"GPipe": ledger([8, 8], [0, 0], 1)}),
    segment_curve(2, [6, 6], 1, ran=6),
    held_bars(peaks([3, 1], 1), [3, 1], 1),
    bubbles(3, 2, 0.5),
    cell_runs([], None, "No runs", 100),
    recipe_board(
        {"T1": [Entry({0: 90.0})]}, ["0.1"], "rate", {"T1": (1.0, 1.0)}, ("", 0), "A board"
    ),
    pipe(walk(["F0 B0 U0"]), 2),
    listing(walk(["F0 B0 U0"]), 2),
    scores({}, "accuracy"),
    speedup([1.0, 1.5], 2, 2.0, 1.4),
    time_use([Waiting(3, 1, 2)], [Waiting(3, 1, 2)]),
    arrivals({}, "accuracy", "steps"),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_transparent_grey_and_described(figure):
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color == GREY
    assert headline(figure) and figure.layout.meta["description"]
    assert describe(figure).startswith(headline(figure))


def same(left, right):
    return [t.to_plotly_json() for t in left] == [t.to_plotly_json() for t in right]


@pytest.mark.parametrize("shown", FIGURES)
def test_no_axis_is_without_a_point(shown):
    """Plotly leaves such an axis out, or draws its line at NaN once a live figure has it."""
    assert bare(shown) == []


@pytest.mark.parametrize("shown", FIGURES)
def test_the_title_stands_upon_the_plot_and_the_legend_below_it(shown):
    """Both take more lines on a narrow page; so they never meet."""
    title, legend = shown.layout.title, shown.layout.legend
    assert (title.yref, title.y, title.yanchor) == ("paper", 1, "bottom")
    assert (legend.yref, legend.y, legend.yanchor) == ("container", 0, "bottom")
    assert all(len(line) <= LINE for line in title.text.split("<br>"))
    assert title.pad.b + 24 <= shown.layout.margin.t  # the first line has its place


def test_a_live_figure_keeps_its_place_when_its_title_grows():
    short, long, longer = (figure([CURVE], words, "Words") for words in TITLES)
    assert short.layout.margin.t == long.layout.margin.t < longer.layout.margin.t
    assert long.layout.title.text.count("<br>") == 1 and headline(long) == TITLES[1]
    assert {len(line.split()) for line in long.layout.title.text.split("<br>")} == {10}


TITLES = ("One", " ".join(["word"] * 20), " ".join(["word"] * 30))
AXES = {"xaxis2": axis("", anchor="y2"), "yaxis2": axis("", anchor="x2")}
BOTH = {"xaxis": axis(""), "yaxis": axis("")} | AXES
CURVE = go.Scatter(x=[1, 2], y=[1, 2])
BAR = go.Bar(y=[1, 2], xaxis="x2", yaxis="y2")
MAP = go.Heatmap(z=[[1]], xaxis="x2", yaxis="y2")


@pytest.mark.parametrize(
    ("traces", "layout", "held"),
    [
        ([CURVE], BOTH, ["x2"]),
        ([CURVE, go.Scatter(xaxis="x2", yaxis="y2")], BOTH, ["x2"]),
        ([CURVE, go.Bar(x=[], y=[], xaxis="x2", yaxis="y2")], BOTH, ["x2"]),
        ([BAR], BOTH, ["x"]),
        ([], BOTH, ["x", "x2"]),
        ([CURVE, BAR], BOTH, []),
        ([CURVE, MAP], BOTH, []),
        ([], {}, ["x"]),
        ([CURVE], {"xaxis": axis(""), "xaxis2": axis("")}, ["x2"]),
        ([], {name: {"visible": False} for name in BOTH}, []),
    ],
)
def test_axes_without_points_keep_their_place(traces, layout, held):
    shown = figure(traces, "Title", "Words", **layout)
    added = shown.data[len(traces) :]
    assert same(shown.data, [*traces, *added]) and bare(shown) == []
    assert [trace.xaxis for trace in added] == held
    assert all(t.x == t.y == (None,) and t.showlegend is False for t in added)


def test_axes_without_points_have_no_numbers_but_their_own():
    own = {**BOTH, "xaxis2": axis("", anchor="y2", range=[0, 5])}
    shown = figure([CURVE], "Title", "Words", **own).layout
    assert shown.xaxis.range is None and shown.xaxis.showticklabels is None
    assert shown.xaxis2.range == (0, 5) and shown.xaxis2.showticklabels is None
    assert shown.yaxis2.range == (0, 1) and shown.yaxis2.showticklabels is False


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_text_and_lines_read_on_light_and_dark(page):
    assert contrast(GREY, page) > 4.0
    assert all(contrast(colour, page) > 2.0 for colour in COLOURS)


def test_figures_need_neither_torch_nor_widgets():
    code = (
        "import sys, pipemare_edu.figures\n"
        "assert not {'torch', 'ipywidgets', 'anywidget'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
