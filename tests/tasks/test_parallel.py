"""Parallel text files of the user's: read, learned from, trained on; errors name file and line."""

import pytest

import pipemare_edu as pm
from pipemare_edu import tasks
from pipemare_edu.tasks import parallel

GERMAN = ["das alte Haus", "zwei Stühle", "", "der Zug fährt ab", "halb vier"] * 4
ENGLISH = ["the old house", "two chairs", "nothing", "the train leaves", "half past three"] * 4


@pytest.fixture
def folder(tmp_path):
    for part in ("train", "valid", "test"):
        for language, text in (("de", GERMAN), ("en", ENGLISH)):
            (tmp_path / f"{part}.{language}").write_text("\n".join(text) + "\n", "utf-8")
    return tmp_path


def test_line_i_is_the_translation_of_line_i_and_empty_ones_are_left_out(folder):
    pairs = parallel.read(folder, "train", "de", "en")
    assert len(pairs) == 16 and ("zwei Stühle", "two chairs") in pairs
    assert all(a and b for a, b in pairs)


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", "a\r\nb\r\n"])
def test_ends_of_lines_and_of_the_file(tmp_path, text):
    (tmp_path / "x.de").write_bytes(text.encode())
    assert parallel.lines(tmp_path / "x.de") == ["a", "b"]


def test_other_separators_of_unicode_do_not_break_lines(tmp_path):
    (tmp_path / "x.de").write_text("a\u2028b\x0bc\n", "utf-8")
    assert parallel.lines(tmp_path / "x.de") == ["a\u2028b\x0bc"]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(parallel.SIZES, "iwslt14", (8, 2, 8))
    monkeypatch.setitem(parallel.SIZES, "wmt17", (8, 2, 8))
    monkeypatch.setattr(parallel, "LONGEST", 9)


@pytest.mark.parametrize("name", ["iwslt14", "wmt17"])
def test_a_task_by_name_and_folder_trains_and_translates(folder, small, name):
    run = pm.train(f"{name}:{folder}", method="gpipe", batch=4, microbatches=2, steps=2)
    assert run.status == "done"
    assert {"token_accuracy", "bleu_greedy", "bleu_beam"} <= set(run.metrics)


def test_direction_is_german_to_english_and_english_to_german(folder, small):
    german, english = (tasks.get(f"{name}:{folder}") for name in ("iwslt14", "wmt17"))
    assert german.train[0][0].lengths.tolist() == english.train[1].lengths.tolist()
    assert german.title == "de-en translation"


def test_sentences_longer_than_the_limit_are_left_out_of_training_only(folder, small):
    for language in ("de", "en"):
        for part in ("train", "test"):
            with (folder / f"{part}.{language}").open("a", encoding="utf-8") as file:
                file.write("x y z " * 9 + "\n")
    task = parallel.task("iwslt14", str(folder))
    assert (task.samples, len(task.test[1])) == (16, 17)


def test_unequal_files_are_named_with_their_lengths(folder):
    with (folder / "train.en").open("a") as file:
        file.write("one more\n")
    with pytest.raises(ValueError, match="train.de has 20 and .*train.en has 21 lines"):
        parallel.task("iwslt14", str(folder))


def test_a_missing_file_is_named(folder):
    (folder / "test.en").unlink()
    with pytest.raises(
        ValueError, match="test.en: No such file.*give a folder with train.de, train.en,"
    ):
        parallel.task("wmt17", str(folder))


def test_bytes_that_are_not_utf8_are_named_with_their_line(folder):
    (folder / "train.de").write_bytes(b"eins\nzwei\nf\xfcnf\n")
    with pytest.raises(ValueError, match="train.de, line 3: not UTF-8"):
        parallel.task("iwslt14", str(folder))


def test_an_empty_file_is_named(folder):
    (folder / "test.de").write_text("\n \n")
    with pytest.raises(ValueError, match="test.de has no sentences"):
        parallel.task("iwslt14", str(folder))


def test_no_folder_is_refused_with_what_it_should_hold():
    with pytest.raises(ValueError, match="wmt17:FOLDER, a folder with train.en, train.de"):
        tasks.get("wmt17")
