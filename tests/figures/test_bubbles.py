"""The two ratios, by formula and as the clock counts them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipemare_edu.figures import bubbles, describe, headline, idle_fraction, overhead
from pipemare_edu.figures.bubbles import formula
from pipemare_edu.plan.clock import simulate
from pipemare_edu.plan.schedules import schedule


@pytest.mark.parametrize("ratio", [1.0, 2.5])
@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "sequential"])
def test_the_formula_is_what_the_clock_counts(kind, ratio):
    for stages in range(1, 7):
        for microbatches in (1, 2, 3, 8, 13):
            found = simulate(schedule(kind, stages, microbatches), backward=ratio)
            says = idle_fraction(stages, microbatches, naive=kind == "sequential")
            assert found.idle == pytest.approx(float(says))


def test_both_ratios():
    assert idle_fraction(4, 8) == Fraction(3, 11) and overhead(idle_fraction(4, 8)) == 3 / 8
    assert idle_fraction(4, 8, naive=True) == Fraction(3, 4)
    assert overhead(0.5) == 1.0 and overhead(1) == float("inf")
    assert formula(4, 8) == "(P−1)/(N+P−1) = 3/11 = 27.3 %"
    assert formula(4, 8, naive=True) == "(P−1)/P = 3/4 = 75.0 %"


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_curves_and_marks():
    found = traces(bubbles(4, 8, 3 / 11, measured=0.31))
    idle = found["idle fraction: idle / all time"]
    over = found["overhead: idle / working time"]
    assert idle.y[7] == pytest.approx(300 / 11) and over.y[7] == pytest.approx(37.5)
    assert idle.line.dash != over.line.dash and idle.line.color != over.line.color
    marks = [trace for name, trace in found.items() if "counted" in name or "measured" in name]
    assert [m.y[0] for m in marks] == pytest.approx([300 / 11, 37.5, 31])
    assert len({m.marker.symbol for m in marks}) == 3 and all(m.x == (8,) for m in marks)


def test_the_message_gives_both_numbers_and_the_words_say_which():
    figure = bubbles(4, 8, 3 / 11)
    assert headline(figure) == "Idle 27.3 % of all time is 37.5 % of working time"
    assert "by the formula (P−1)/(N+P−1) = 3/11" in describe(figure)
    assert "measured" not in describe(figure)
    assert "measured 31 %" in describe(bubbles(4, 8, 3 / 11, measured=0.31))


def test_more_microbatches_than_usual_fit_on_the_axis():
    figure = bubbles(3, 50, float(idle_fraction(3, 50)))
    assert figure.layout.xaxis.range[1] > 50 and len(figure.data[0].x) == 50
