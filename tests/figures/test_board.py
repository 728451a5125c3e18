"""The recipe board and the runs of a cell, from values alone."""

from __future__ import annotations

import json

from pipemare_edu.figures import Entry, Line, cell_runs, describe, recipe_board

ROWS = {
    "no fix": [Entry({0: 96.0, 1: 94.0}, "0 0"), Entry({0: None, 1: None}, "0 1")],
    "T1+T2": [Entry({0: 98.0, 1: 97.0}, "1 0"), Entry({0: 80.0, 1: None}, "1 1", {0: 79.5})],
}
COSTS = {"no fix": (1.0, 1.0), "T1+T2": (0.5, 1.5)}


def board(**more):
    given = {"rows": ROWS, "columns": ["0.1", "0.2"], "across": "rate", "costs": COSTS}
    return recipe_board(**given | {"chosen": ("T1+T2", 1), "title": "A title"} | more)


def test_diverged_cells_are_marked_and_hatched():
    cells = board().data[0]
    assert list(cells.text) == ["95.0", "✕", "97.5", "40.0<br>(1 ✕)"]
    assert list(cells.marker.pattern.shape) == ["", "x", "", "/"]
    assert list(cells.marker.line.width) == [0, 0, 0, 4]


def test_every_seed_is_in_the_hover_text_and_every_cell_in_words():
    hover = board().data[0].customdata[3]
    assert "T1+T2, rate 0.2" in hover and "seed 0: 80.0 %" in hover and "seed 1: diverged" in hover
    assert "live, seed 0: 79.5 %" in hover
    said = describe(board())
    assert "0.2: every run diverged" in said and "40.0, 1 of 2 diverged" in said
    assert "T1+T2: 0.1: 97.5" in said and "utilization 0.50, memory 1.50 times" in said


def test_costs_and_stars():
    _, used, memory, stars = board().data
    assert list(used.text) == ["1.00", "0.50"] and list(memory.text) == ["1.00×", "1.50×"]
    assert list(stars.x) == [1.4] and len(stars.y) == 1


def test_cells_that_were_never_run():
    empty = board(rows={name: [Entry({}), Entry({})] for name in ROWS})
    assert set(empty.data[0].text) == {"not run"}
    assert "0.1: not run" in describe(empty)


def test_runs_of_a_cell():
    lines = [Line("seed 0", [25, 50], [40.0, 80.0]), Line("seed 1", [25], [10.0], 37)]
    figure = cell_runs(lines, Line("live, seed 0", [25], [41.0]), "A title", 400)
    names = [t.name for t in figure.data]
    assert names == ["seed 0", "seed 1", "seed 1: diverged", "live, seed 0"]
    assert "seed 0: 80.0 % after step 50. seed 1 diverged at step 37." in describe(figure)
    at_once = cell_runs([Line("seed 2", [], [], 9)], Line("live", [], []), "A title", 400)
    assert "seed 2 diverged at step 9. live has begun." in describe(at_once)


def test_a_whole_board_is_small():
    entries = [Entry({seed: 90.0 for seed in range(5)}, "0 0") for _ in range(4)]
    rows = {f"recipe {n}": entries for n in range(9)}
    costs = {name: (1.0, 1.0) for name in rows}
    size = len(board(rows=rows, columns=list("abcd"), costs=costs, chosen=("", 0)).to_json())
    assert size < 20_000 and json.loads(board().to_json())
