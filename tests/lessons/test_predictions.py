"""Predictions: recorded, shown beside a measurement, drawn on a figure."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import pytest

from pipemare_edu.lessons import compare, draw, predict, prediction, reset


def test_recorded_taken_back_and_forgotten() -> None:
    assert "you predict 40 for idle share" in predict("idle share", 40)
    assert prediction("idle share") == 40
    assert "No prediction" in predict("idle share", ...)
    assert prediction("idle share") is None
    predict("idle share", 40)
    reset("idle share")
    assert prediction("idle share") is None


def test_compared() -> None:
    assert compare("idle", 41.26, "%") == "idle: measured 41 %; you made no prediction."
    predict("idle", 30)
    assert compare("idle", 41.26, "%", 1) == "idle: measured 41.3 %; you predicted 30 %."
    assert compare("idle", 25, "%", how="counted") == "idle: counted 25 %; you predicted 30 %."


def test_every_measured_number_in_a_text_is_sanitized(sanitize: list[tuple[str, str]]) -> None:
    said = [compare("idle", value, "ms", 2) for value in (0.01, 12.5, -3.0)]
    for pattern, replacement in sanitize:
        said = [re.sub(pattern, replacement, text) for text in said]
    assert len(set(said)) == 1


@pytest.mark.parametrize(("axis", "ends"), [("x", ("x0", "x1")), ("y", ("y0", "y1"))])
def test_drawn_where_it_belongs(axis: str, ends: tuple[str, str]) -> None:
    predict("idle", 30)
    (line,) = draw(go.Figure(), "idle", axis).layout.shapes
    assert [line[end] for end in ends] == [30, 30]


@pytest.mark.parametrize("text, value", [("40 %", 40), ("40", 40), (" 12.5 ms", 12.5)])
def test_a_number_in_a_text(text: str, value: float) -> None:
    predict("idle", text)
    assert compare("idle", 41.26, "%").endswith(f"you predicted {value} %.")


@pytest.mark.parametrize("value", ["a lot", "3 or 4", True, None, float("nan"), [1]])
def test_no_number_is_refused_in_words(value: object) -> None:
    predict("idle", 30)
    assert f"A prediction is a number, such as 40, so {value!r} is not noted" in predict(
        "idle", value
    )
    assert prediction("idle") is None


@pytest.mark.parametrize("value", [..., "a lot", True])
def test_nothing_to_draw(value: object) -> None:
    predict("idle", value)
    assert not draw(go.Figure(), "idle").layout.shapes
