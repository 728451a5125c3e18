"""The study behind the recipe board: what is shipped, and what it says."""

from __future__ import annotations

import os

import pytest

from pipemare_edu.lessons.cache import Cache
from pipemare_edu.studies import recipes
from pipemare_edu.studies.recipe import (
    RECIPES,
    STEPS,
    Cell,
    Outcome,
    Recipe,
    utilization,
)
from pipemare_edu.studies.recipes import RATES, SEEDS, STAGES, WARM_UPS, cells, result, shipped


def at(t1=False, t2=False, t3=False, stages=8, rate=0.2, warm_up=40, synchronous=False):
    return Cell.at(Recipe(t1, t2, t3, synchronous), stages, rate, warm_up)


def test_every_cell_is_shipped_with_every_seed():
    for cell in cells():
        assert [o.seed for o in result(cell).outcomes] == list(range(SEEDS)), cell
    assert shipped().path.stat().st_size < 300_000


def test_cells_without_t3_do_not_depend_on_its_steps():
    count = sum(len(WARM_UPS) if r.t3 else 1 for r in RECIPES)
    assert len(list(cells())) == count * len(RATES) * len(STAGES)
    assert len({recipes.shipped().get(cell.config) is not None for cell in cells()}) == 1


def test_utilization_is_the_clocks_and_memory_that_of_the_fixes():
    for cell in (at(t2=True), at(t3=True), at(t1=True, t2=True, t3=True, stages=12, warm_up=120)):
        found = result(cell)
        assert found.utilization == pytest.approx(utilization(cell.method, cell.stages), abs=1e-4)
        assert found.memory == (1.5 if cell.recipe.t2 else 1.0)
        share = cell.warm_up / STEPS
        assert found.utilization == pytest.approx(1 / (share * cell.stages + 1 - share), abs=0.04)


@pytest.mark.parametrize("cell", [at(rate=0.8), at(t1=True, t2=True, stages=4)], ids=str)
def test_a_run_agrees_with_the_shipped_one(cell):
    found = recipes.measure(cell, 1, None)
    before = result(cell)
    assert found.outcomes[0].agrees(before.of(1))
    assert (found.utilization, found.memory) == (before.utilization, before.memory)


def test_the_story_of_lesson_06():
    """Diverged or not, and orders of means; never a number of T1 alone."""
    assert not any(result(at(synchronous=True, rate=r)).diverged for r in RATES)
    assert result(at()).diverged >= 2 and result(at(rate=0.8)).diverged == SEEDS
    assert result(at(rate=0.1)).diverged == 0
    for stages in STAGES:
        found = result(at(t2=True, stages=stages))
        assert found.diverged == 0 and found.mean > result(at(stages=stages)).mean
        assert result(at(t1=True, t2=True, rate=0.8, stages=stages)).diverged == 0
    none, short, long = (
        result(at(t1=True, t2=True, t3=w > 0, rate=0.8, warm_up=w)).mean for w in (0, 40, 120)
    )
    assert short < none < long


def test_agreement():
    ended = Outcome(0, (50.0, 90.0), None, STEPS)
    assert ended.agrees(Outcome(0, (40.0, 91.9), None, STEPS))
    assert not ended.agrees(Outcome(0, (50.0, 92.1), None, STEPS))
    died = Outcome(0, (50.0,), 30, 30)
    assert died.agrees(Outcome(0, (), 20, 20)) and died.score == 0
    assert not died.agrees(ended) and not ended.agrees(died)


def test_the_command_makes_what_is_missing_and_no_more(monkeypatch, tmp_path, capsys):
    few = [at(rate=0.8), at(t1=True, rate=0.8)]
    monkeypatch.setattr(recipes, "cells", lambda: iter(few))
    monkeypatch.setattr(recipes, "Cache", lambda name: Cache(name, tmp_path))
    assert recipes.main(["--seeds", "1", "--write"]) == 0
    assert [len(result(c, Cache("recipes", tmp_path)).outcomes) for c in few] == [1, 1]
    assert result(few[0], Cache("recipes", tmp_path)).of(0).diverged
    monkeypatch.setattr(recipes, "measure", lambda *_: os.abort())
    assert recipes.main(["--seeds", "1"]) == 0
    assert "0.0 ±0 (1)" in capsys.readouterr().out
