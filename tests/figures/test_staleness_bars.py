"""Measured staleness stands beside what the lists imply and the formula."""

from __future__ import annotations

from pipemare_edu.figures import describe, headline, staleness_bars
from pipemare_edu.trainer.run import Delays, Staleness

TAUS = [7, 5, 3, 1]
SEEN = Staleness(
    forward=tuple(Delays(float(t), t, float(t), t) for t in TAUS),
    backward=tuple(Delays(0.0, 0, 0.0, 0) for _ in TAUS),
)


def test_measured_and_implied_bars_and_the_formulas_marks():
    measured, implied, formula = staleness_bars(SEEN, TAUS).data
    assert list(measured.x) == [1, 2, 3, 4]
    assert list(measured.y) == list(implied.y) == list(formula.y) == TAUS
    assert (measured.type, implied.type, formula.type) == ("bar", "bar", "scatter")
    assert implied.marker.pattern.shape == "/" and not measured.marker.pattern.shape
    assert formula.mode == "markers" and formula.name == "formula τ"


def test_message_says_whether_they_agree():
    assert headline(staleness_bars(SEEN)) == (
        "Stage 1's forwards read weights 7 updates old, as its schedule implies"
    )
    other = Staleness(forward=(Delays(2.0, 2, 7.0, 7),))
    assert "where its schedule implies 7" in headline(staleness_bars(other))
    assert "newest" in headline(staleness_bars(SEEN, backward=True))


def test_description_has_every_number():
    assert "measured 7, 5, 3 and 1; implied by the schedule 7, 5, 3 and 1" in describe(
        staleness_bars(SEEN)
    )
    assert "formula 7, 5, 3 and 1" in describe(staleness_bars(SEEN, TAUS))


def test_nothing_measured():
    assert describe(staleness_bars(Staleness())) == "Nothing was measured. No update was applied."


def test_before_a_run_only_what_is_implied_is_drawn():
    figure = staleness_bars(SEEN, TAUS, measured=False)
    assert [trace.name for trace in figure.data] == ["implied by the schedule", "formula τ"]
    assert headline(figure).startswith("On paper") and "measured" not in describe(figure)
