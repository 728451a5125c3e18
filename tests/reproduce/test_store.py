"""Runs in files: found by all of their configuration, or not at all."""

from __future__ import annotations

import pytest

from pipemare_edu.reproduce.store import Store

CONFIG = {"task": "cifar10:/data", "method": "gpipe", "seed": 3, "depths": (3, 1)}
RECORD = {"status": "done", "loss": 0.5, "metrics": {"loss": [[4, 0.5]]}}


def test_a_record_comes_back_in_another_process(tmp_path):
    Store(tmp_path / "new" / "folder").put(CONFIG, RECORD)
    again = Store(tmp_path / "new" / "folder")
    assert again.get(CONFIG) == RECORD
    assert again.file(CONFIG).name.startswith("cifar10-gpipe-3-")
    assert [p.name for p in again.file(CONFIG).parent.iterdir()] == [again.file(CONFIG).name]


@pytest.mark.parametrize("change", [{"seed": 4}, {"depths": (3, 2)}, {"rate": 0.1}])
def test_another_configuration_is_another_run(tmp_path, change):
    store = Store(tmp_path)
    store.put(CONFIG, RECORD)
    assert store.get(CONFIG | change) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "other"}', "\udcff"])
def test_a_damaged_file_is_as_good_as_none(tmp_path, text):
    store = Store(tmp_path)
    store.put(CONFIG, RECORD)
    store.file(CONFIG).write_text(text, errors="surrogateescape")
    assert store.get(CONFIG) is None
    store.put(CONFIG, RECORD)
    assert store.get(CONFIG) == RECORD


def test_a_file_of_another_configuration_under_this_name_is_none(tmp_path):
    store = Store(tmp_path)
    other = CONFIG | {"seed": 4}
    store.put(other, RECORD)
    store.file(other).rename(store.file(CONFIG))
    assert store.get(CONFIG) is None


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file: .*another folder"):
        Store(tmp_path / "file")
