"""The stability map, the roots, and measured edges: what they draw is what they were given."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pipemare_edu.figures import Mark, describe, growth, headline, ratios, roots, stability_map
from pipemare_edu.figures.roots import message
from pipemare_edu.figures.stability import agreement
from pipemare_edu.plan.theory import Quadratic, iterates, lemma1, threshold

MARKS = [Mark(0.2, 4, True), Mark(0.5, 4, False), Mark(0.35, 4, True, "said", live=True)]


def named(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_the_edge_is_lemma_1_or_the_first_root():
    edge = named(stability_map(), "edge: Lemma 1")
    assert list(edge.x) == pytest.approx([lemma1(t) for t in edge.y])
    edge = named(stability_map(momentum=0.9), "edge: first root on the circle")
    at = dict(zip(edge.y, edge.x, strict=True))
    assert at[10] == pytest.approx(threshold(Quadratic(10, momentum=0.9))) and min(at) == 1


def test_colours_change_sides_at_the_edge():
    heat = stability_map().data[0]
    for row, delay in enumerate(heat.y):
        stable = np.array(heat.x) < lemma1(float(delay))
        assert (np.array(heat.customdata[row])[stable] <= 1.0).all()
        assert (np.array(heat.customdata[row])[~stable] >= 1.0).all()


def test_noise_recolours_and_leaves_the_edge():
    plain, noisy = stability_map(), stability_map(noise=0.1)
    assert list(plain.data[1].x) == list(noisy.data[1].x)
    assert plain.data[0].z.tolist() != noisy.data[0].z.tolist()
    assert "Noise leaves the edge where it is" in headline(noisy)


def test_marks_tell_their_end_and_their_age_without_colour():
    figure = stability_map(marks=MARKS, guess=0.3)
    assert list(named(figure, "run: settled").x) == [0.2]
    assert named(figure, "run: did not").marker.symbol == "x"
    assert named(figure, "run just now: settled").customdata[0] == "said"
    assert list(named(figure, "your guess").x) == [0.3, 0.3]
    assert agreement(0.0, MARKS) == (2, 3)
    assert headline(figure).startswith("2 of 3 real runs")


def test_a_mark_far_out_is_still_on_the_map():
    figure = stability_map(marks=[Mark(7.0, 6, True)])
    assert 10 ** figure.layout.xaxis.range[1] > 7 and max(figure.data[0].x) > 7


@pytest.mark.parametrize(("rate", "tau", "word"), [(0.2, 4, "Stable"), (0.5, 4, "Unstable"),
                                                   (1.0, 1, "On the edge")])  # fmt: skip
def test_title_says_what_the_largest_root_does(rate, tau, word):
    figure = roots(rate, tau)
    assert headline(figure).startswith(word)
    assert message(0.95) == (
        "Stable: all roots lie inside the circle, w shrinks by 5 % a step in the end"
    )


def test_map_roots_and_iterate_are_of_one_case():
    figure = roots(0.3, 6, momentum=0.5)
    case = Quadratic(6, momentum=0.5)
    here = next(t for t in figure.data[1:] if t.marker.symbol == "diamond")
    assert (here.x[0], here.y[0]) == (0.3, 6)
    drawn = [x + 1j * y for t in figure.data if t.xaxis == "x2" and t.mode == "markers"
             for x, y in zip(t.x, t.y, strict=True)]  # fmt: skip
    assert np.sort_complex(drawn) == pytest.approx(np.sort_complex(np.roots(case.polynomial(0.3))))
    line = next(t for t in figure.data[1:] if t.xaxis == "x3" and t.mode == "lines")
    w = iterates(case, 0.3, 120)
    shown = ~np.isnan(line.y)
    assert line.y[shown] == pytest.approx(w[shown])


def test_dots_that_are_off_the_line_are_said():
    w = iterates(Quadratic(4), 0.2, 120)
    assert "on the line" in describe(roots(0.2, 4, trained=w))
    assert "off the line" in describe(roots(0.2, 4, trained=w + 0.01))


def test_growth_that_runs_away_can_be_sent_to_a_page():
    for figure in (roots(2.5, 20), roots(2.5, 20, momentum=0.9), stability_map(noise=1.0)):
        json.loads(figure.to_json())
    w = [1e300, np.inf, np.nan]
    json.loads(growth({"a": w, "b": [1.0, 2.0]}).to_json())


def test_peaks_of_a_long_run_are_kept():
    losses = np.ones(3001)
    losses[1234] = 50.0
    trace = growth({"a": losses}).data[0]
    assert len(trace.x) <= 301 and max(trace.y) == 50


def test_growth_is_drawn_until_a_network_has_long_left():
    assert list(growth({"a": [1e-9, 1.0, 1e9]}).data[0].y[:2]) == [1.0, pytest.approx(1e9)]


def test_ratios_have_a_row_for_each_prediction_and_a_dot_for_each_seed():
    table = {"one": {"a": [1.0, 1.1], "b": [0.9]}, "two": {"a": [2.0], "b": []}}
    figure = ratios(table, "Title")
    assert [len(t.x) for t in figure.data] == [3, 1]
    assert list(figure.layout.yaxis.ticktext) == ["two", "one"]
    assert all(abs(y - round(y)) <= 0.25 for t in figure.data for y in t.y)
    assert "one: a 1.00 to 1.10, b 0.90. two: a 2.00." in describe(figure)
    assert len({t.marker.symbol for t in figure.data}) == 2


def test_a_figure_that_follows_a_slider_is_drawn_quickly_and_is_small():
    from time import process_time

    roots(0.2, 4)
    start = process_time()
    text = roots(0.21, 5).to_json()
    assert process_time() - start < 0.5 and len(text) < 80_000
