"""Shipped results: found by exactly what was asked for, and never when they are out of date."""

from __future__ import annotations

import json

import pytest

from pipemare_edu.lessons import cache as module
from pipemare_edu.lessons.cache import DATA, Cache, key

CONFIG = {"network": "a", "rate": 0.1, "seed": 0}


def test_results_come_back_from_the_file(tmp_path):
    first = Cache("board", tmp_path)
    assert first.get(CONFIG) is None
    first.put(CONFIG, {"stayed": True})
    first.put({**CONFIG, "seed": 1}, {"stayed": False})
    assert first.get(CONFIG) == {"stayed": True} and not first.path.exists()
    first.write()
    again = Cache("board", tmp_path)
    assert again.get(dict(reversed(CONFIG.items()))) == {"stayed": True}
    assert again.get({**CONFIG, "rate": 0.2}) is None
    assert [c["seed"] for c, _ in again.matching(network="a")] in ([0, 1], [1, 0])
    assert list(again.matching(seed=1, rate=0.1)) == [({**CONFIG, "seed": 1}, {"stayed": False})]
    assert list(again.matching(seed=7)) == []


def test_another_version_of_the_results_is_as_good_as_none(tmp_path, monkeypatch):
    old = Cache("board", tmp_path)
    old.put(CONFIG, 1)
    old.write()
    before = key(CONFIG)
    monkeypatch.setattr(module, "RESULTS", module.RESULTS + 1)
    assert key(CONFIG) != before
    assert Cache("board", tmp_path).get(CONFIG) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "results": 3}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path, text):
    (tmp_path / "board.json").write_text(text)
    assert Cache("board", tmp_path).get(CONFIG) is None


def test_what_is_shipped_is_small_and_of_this_version():
    files = list(DATA.glob("*.json"))
    assert files and sum(path.stat().st_size for path in files) < 1_000_000
    for path in files:
        stored = json.loads(path.read_text())
        assert stored["version"] == module.RESULTS
        assert len(list(Cache(path.stem).matching())) == len(stored["results"]) > 0
