"""Controls: what they cannot stand at is refused, and never turned into something else."""

from __future__ import annotations

import pytest

from pipemare_edu.panels import MemoryLedger
from pipemare_edu.panels import controls as c


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: c.count("stages", 0, 12), "stages is 0: give a whole number from 1 to 12"),
        (lambda: c.count("stages", 2.5, 12), "stages is 2.5"),
        (lambda: c.whole("seed", -1), "seed is -1: give a whole number from 0 to 1000000"),
        (lambda: c.whole("seed", 0.5), "seed is 0.5"),
        (lambda: c.log_number("rate", -1, -4, 1), "rate is -1: give a number from 0.0001 to 10"),
        (lambda: c.choice("method", ["a", "b"], "c"), "unknown method 'c'. There are a, b"),
        (lambda: c.choice("part", [("all", 1.0), ("none", 0.0)], 3), "unknown part 3"),
        (lambda: c.one_of("D", [0.1, 0.5], 0.3), "unknown D 0.3"),
    ],
)
def test_a_first_value_that_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("control", "value"),
    [
        (lambda: c.count("stages", 40, 12), 40),
        (lambda: c.whole("seed", 3_000_000), 3_000_000),
        (lambda: c.log_number("rate", 25.0, -4, 1), 25.0),
        (lambda: c.log_number("rate", 1e-6, -4, 1), 1e-6),
        (lambda: c.decimal("last", 9.0, 0.5, 8.0, 0.5), 9.0),
    ],
)
def test_limits_make_room_for_a_first_value(control, value):
    assert control().value == value


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"stages": 13}, "stages is 13: give a whole number from 1 to 12"),
        ({"recompute": -1}, "recompute is -1"),
        ({"optimizer": "Adams"}, "did you mean 'Adam'"),
    ],
)
def test_a_control_is_set_to_what_was_asked_for_or_not_at_all(wrong, says):
    panel = MemoryLedger()
    before = panel.settings
    with pytest.raises(ValueError, match=says):
        panel.set(**wrong)
    assert panel.settings == before
