"""The map with discrepancy, the bars of a network, and T2's estimate: from values alone."""

import math

import numpy as np
import pytest

from pipemare_edu.figures import (
    course,
    describe,
    discrepancy_bars,
    discrepancy_map,
    headline,
    moves,
)
from pipemare_edu.figures.discrepancy_map import Reads, agreement, edge_at, edge_of
from pipemare_edu.figures.stability import Mark
from pipemare_edu.figures.style import GREY
from pipemare_edu.plan import theory

WALK = np.random.default_rng(0).normal(size=(80, 30)).cumsum(axis=0)
EVERY = [
    discrepancy_map(),
    discrepancy_bars([1.5, 0.2, 0.0], [0.5, 0.1, 0.0]),
    moves(WALK, 7, 0.1),
    course(WALK[:, 0], 7, 0.1),
]


@pytest.mark.parametrize("figure", EVERY)
def test_house_style_words_and_weight(figure):
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color == GREY and headline(figure)
    assert len(describe(figure)) > 100
    assert len(figure.to_json()) < 50_000


def test_the_test_values_of_the_theory_are_on_the_map():
    said = [edge_at(Reads(5.0, 0, t2)) for t2 in (0.0, math.exp(-2), 0.5, "theory")]
    assert said == pytest.approx([0.017556, 0.097106, 0.028998, 0.097617], abs=1e-6)
    assert edge_at(Reads(5.0, 4)) == pytest.approx(0.027341, abs=1e-6)
    assert edge_at(Reads(0.0)) == pytest.approx(theory.lemma1(10), rel=1e-9)


def test_with_delta_and_t2_there_are_three_edges_and_the_title_says_where():
    figure = discrepancy_map(5.0, 0, math.exp(-2))
    names = [t.name for t in figure.data if t.name]
    assert names == ["delay alone: Lemma 1", "with Δ = 5", "with Δ = 5 and T2"]
    assert headline(figure) == (
        "Delay 10, Δ = 5: rates from 0.0176 on are unstable; with T2, from 0.0971"
    )


def test_a_backward_delay_leaves_out_forward_delays_below_it():
    reads = Reads(5.0, 4, "theory")
    assert reads.delays.tolist() == [*range(4, 10), *range(10, 21, 2)]
    assert len(edge_of(reads)) == 12
    heat = discrepancy_map(*reads).data[0]
    assert heat.z.shape == (12, 41)
    assert edge_of(reads)[0] == pytest.approx(theory.lemma1(4), rel=1e-9)  # no gap, no discrepancy


def test_marks_are_judged_by_the_edge_that_is_drawn():
    reads = Reads(5.0, 0, 0.5)
    edge = edge_at(reads)
    marks = [Mark(0.8 * edge, 10, True), Mark(1.2 * edge, 10, True)]
    assert agreement(reads, marks) == (1, 2)
    assert "2 of 2 runs settled" in describe(discrepancy_map(*reads, marks))


def test_bars_leave_out_what_is_no_number():
    figure = discrepancy_bars([0.8, math.nan], [0.3, math.nan], [2.0, 0.0])
    assert figure.data[0].y[0] == 80 and np.isnan(figure.data[0].y[1])
    assert figure.data[0].customdata[0] == pytest.approx(1.6)
    assert "80 % of its size, T2's by 30 %" in headline(figure)


def test_moves_say_what_is_missed_and_mark_d():
    figure = moves(WALK, 7, 0.14)
    _, dots, curve, _, here = figure.data
    assert here.x[0] == 0.14 and f"by {here.y[0]:.0f} %" in headline(figure)
    assert len(dots.x) == 30
    assert here.y[0] == pytest.approx(curve.y[list(curve.x).index(0.14)])


def test_both_forms_of_t2_are_one_line():
    tau, decay = 7, 0.3
    lines = {t.name: t.y for t in course(WALK[:, 0], tau, decay).data}
    back = tau * (1 - theory.gamma(decay, tau))
    w, m = lines["newest w"], lines["average m"]
    assert np.allclose(lines["T2 reads w − τδ"], w + back * (m - w))
    assert np.allclose(lines["forward read w[t−τ]"][tau:], w[:-tau])
    assert "and on" in headline(course(WALK[:, 0], 7, 0.05))
    assert "of the way" in headline(course(WALK[:, 0], 7, 0.6))
