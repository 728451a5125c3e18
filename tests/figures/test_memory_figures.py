"""Bytes by formula beside counted, and activations over segments."""

from __future__ import annotations

import pytest

from pipemare_edu.figures import describe, held_bars, method_bytes, segment_curve, stage_bytes
from pipemare_edu.figures.ledger import LOOKS, SHOWN, size, total
from pipemare_edu.figures.segments import by_formula
from pipemare_edu.plan.held import peaks
from pipemare_edu.plan.ledger import ledger
from pipemare_edu.plan.schedules import depths

ROWS = ledger([1000, 500], [3, 1], 1, 1, stashes=True, activations=[10, 10])


@pytest.mark.parametrize(
    ("count", "says"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.00 KB"), (16_384, "16.4 KB"),
     (999_600, "1.00 MB"), (1_032_000_000, "1.03 GB"), (574e3, "574 KB")],
)  # fmt: skip
def test_sizes(count, says):
    assert size(count) == says


def test_every_kind_of_the_ledger_has_a_look():
    assert set(LOOKS) == set(ROWS[0]) == set(SHOWN["everything"])
    assert len({(look.colour, look.hatch) for look in LOOKS.values()}) == len(LOOKS)


def test_formula_and_count_have_one_scale_and_the_same_stacks():
    figure = stage_bytes(ROWS, ROWS, label="Mine")
    left = [t for t in figure.data if t.xaxis == "x"]
    right = [t for t in figure.data if t.xaxis == "x2" and t.name]
    assert [(t.name, tuple(t.y)) for t in left] == [(t.name, tuple(t.y)) for t in right]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range
    assert sum(sum(t.customdata) for t in left) == total(ROWS)
    assert "Mine: formula and count agree to the byte" in describe(figure)


def test_a_difference_is_the_message():
    other = [ROWS[0] | {"stash": 0}, ROWS[1]]
    assert "9.56 KB by formula, 6.56 KB counted" in describe(stage_bytes(ROWS, other))
    assert "agree" in describe(stage_bytes(ROWS, other, "activations"))


def test_without_a_run_the_second_half_says_so():
    figure = stage_bytes(ROWS)
    assert "Run counts" in figure.layout.annotations[0].text
    assert "stage 1 needs the most" in describe(figure)


def test_methods_are_multiples_of_the_first():
    plain = ledger([1000, 500], [0, 0], 1, 1)
    figure = method_bytes({"A": plain, "B": ROWS}, {"B": ROWS}, "weights and optimizer")
    assert [a.text for a in figure.layout.annotations] == ["1.00 ×", "1.78 ×"]
    assert "B holds 1.78 times A's weights and optimizer" in describe(figure)
    assert list(figure.data[-1].x) == ["B"] and "counted in runs: B" in describe(figure)
    assert "No method holds more" in describe(method_bytes({"A": plain, "B": plain}))


def test_long_names_of_methods_do_not_meet_on_a_narrow_page():
    shown = method_bytes({"GPipe": ROWS, "PipeMare + T2": ROWS}).layout.xaxis
    assert list(shown.tickvals) == ["GPipe", "PipeMare + T2"]  # as the bars call them
    assert list(shown.ticktext) == ["GPipe", "PipeMare<br>+ T2"]


def test_the_curve_has_counts_formula_and_both_lines():
    D = depths("lockstep", 9)
    slots = [sum(h.slots for h in peaks(D, s)) for s in range(1, 10)]
    figure = segment_curve(9, slots, 3, ran=54)
    traces = {t.name: t for t in figure.data}
    assert list(traces["counted in the lists"].y) == slots
    assert traces["all kept, counted: P (P+1)"].y[0] == 90
    assert traces["all kept, as the paper counts: P²"].y[0] == 81
    assert traces["counted in a real run"].y[0] == 54 == by_formula(9, 3)
    assert min(traces["P²/S + P S"].y) == pytest.approx(2 * 9**1.5, rel=1e-3)
    assert "54 stage activations in place of 90" in describe(figure)


def test_bars_add_up_to_the_slots():
    D = depths("lockstep", 9)
    held = peaks(D, 3)
    figure = held_bars(held, D, 3)
    kept, inputs, all_kept, papers = figure.data
    assert [a + b for a, b in zip(kept.y, inputs.y, strict=True)] == [h.slots for h in held]
    assert [a - b for a, b in zip(all_kept.y, papers.y, strict=True)] == [1] * 9
    assert "18, 4, 2, 12, 4, 2, 6, 4 and 2 stage activations" in describe(figure)
