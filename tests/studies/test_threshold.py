"""The shipped study: what the lesson says of it, and that live runs agree with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipemare_edu.figures import describe, headline
from pipemare_edu.lessons.cache import Cache
from pipemare_edu.studies import threshold
from pipemare_edu.studies.edge import find
from pipemare_edu.studies.minimum import NETWORKS
from pipemare_edu.studies.threshold import MARKED, MARKS, MULTIPLES, SEEDS, trial_config


@pytest.fixture(scope="module")
def rows():
    return threshold.rows()


def test_every_network_and_seed_is_there(rows):
    assert [(r.network, r.seed) for r in rows] == [(n, s) for n in NETWORKS for s in range(SEEDS)]


def test_what_the_lesson_says_of_it(rows):
    """Exact where one delay rules or no direction is left out; safe with the longest delay."""
    for row in rows:
        for exact in ("control", "uniform", "linear"):
            assert row.ratio(exact) == pytest.approx(1, abs=0.005), row
        assert row.ratio("longest") > 1
    deep = [row for row in rows if row.network in ("deep", "tanh")]
    assert all(row.ratio("by_stage") == pytest.approx(1, abs=0.02) for row in deep)
    weighted = [row.ratio("weighted") for row in rows]
    assert min(weighted) < 0.6 and max(weighted) > 2
    assert min(row.ratio("mean") for row in rows) < 0.7
    assert max(row.scratch for row in rows) > 100


def test_the_docstring_has_the_table_of_the_shipped_results(rows):
    said = threshold.__doc__
    for line in threshold.table(rows).splitlines():
        assert line.strip() in said


def test_the_figure_has_a_dot_for_every_ratio(rows):
    figure = threshold.chart(rows)
    assert sum(len(trace.x) for trace in figure.data) == len(rows) * len(threshold.PREDICTIONS)
    assert "Lemma 1 is right to 0." in headline(figure)
    assert "tanh 1.00" in describe(figure)


def test_a_search_without_an_edge_is_left_out(rows):
    lost = [replace(row, scratch=None) for row in rows[:2]]
    values = threshold.ratios(lost)[threshold.PREDICTIONS["scratch"]]
    assert values == {"batchnorm": []}
    assert "none" in threshold.table(lost).splitlines()[-1]


def test_marks_are_shipped_and_a_live_run_agrees():
    cache, (network, seed) = Cache("threshold"), MARKED
    shipped = list(cache.matching(trial=network, seed=seed))
    assert len(shipped) == len(MARKS) * len(MULTIPLES)
    for delays, multiple in (("lockstep", 0.8), (2, 1.25)):
        config = trial_config(network, seed, "minimum", delays, multiple)
        live = find(network, seed, delays=delays, multiple=multiple)
        assert cache.get(config)["stayed"] == live.trials[0].stayed == (multiple < 1)
        assert cache.get(config) == pytest.approx(
            threshold.trial_result(live.at, live.trials[0]), rel=0.05
        )


def test_the_command_measures_prints_and_writes(monkeypatch, tmp_path, capsys):
    row = threshold.rows()[0]
    monkeypatch.setattr(threshold, "measure", lambda network, seed: replace(row, seed=seed))
    monkeypatch.setattr(threshold, "Cache", lambda name: Cache(name, tmp_path))
    monkeypatch.setattr(threshold, "MARKS", (0,))
    monkeypatch.setattr(threshold, "MULTIPLES", (0.8,))
    assert threshold.main(["--networks", "batchnorm", "--seeds", "2", "--write"]) == 0
    assert "batchnorm" in capsys.readouterr().out
    written = Cache("threshold", tmp_path)
    assert len(threshold.rows(written)) == 2
    assert len(list(written.matching(trial="batchnorm"))) == 1
    with pytest.raises(SystemExit):
        threshold.main(["--networks", "none"])
