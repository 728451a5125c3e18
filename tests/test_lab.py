"""Which folder JupyterLab opens, and a learner's copy of the lessons: how it is brought up to date,
and reset, without losing what they wrote."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

import pipemare_edu
from pipemare_edu import cli, handout, lab
from pipemare_edu.lessons import build
from pipemare_edu.lessons.source import lessons

LESSONS = {"README.md": "map", "01.ipynb": "one", "solutions/01.ipynb": "one, solved"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has its notebooks inside, which nobody may write."""
    folder = tmp_path / "installed" / "notebooks"
    for name, text in LESSONS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o444)
    monkeypatch.setattr(handout, "PACKAGED", folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def mine(installed: None, home: Path) -> Path:
    """A learner's copy, as it was handed out."""
    handout.hand_out(home / lab.COPY)
    return home / lab.COPY


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != handout.RECORD)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def new_edition(monkeypatch: pytest.MonkeyPatch, version: str = "9.0", **changed: str) -> None:
    """The wheel of another version, with other lessons in it."""
    monkeypatch.setattr(handout, "__version__", version)
    for name, text in {"01": f"one, edition {version}", **changed}.items():
        file = handout.PACKAGED / f"{name}.ipynb"
        file.unlink(missing_ok=True)
        file.write_text(text)


def test_a_checkout_opens_its_notebooks_and_copies_nothing(home: Path) -> None:
    assert not handout.PACKAGED.exists(), "a checkout has its notebooks at its top"
    assert lab.folder(home) == home
    (home / "notebooks").mkdir()
    assert lab.folder(home) == home / "notebooks"
    assert [path.name for path in home.iterdir()] == ["notebooks"]


def test_a_wheel_opens_a_copy_that_its_learner_may_write(mine: Path, home: Path) -> None:
    (home / "notebooks").mkdir()  # somebody's own
    assert lab.folder(home) == mine == lab.folder(mine)
    assert texts(mine) == LESSONS
    for name in LESSONS:
        assert (mine / name).stat().st_mode & 0o200


def test_a_learners_files_are_never_overwritten(mine: Path) -> None:
    (mine / "01.ipynb").write_text("my answers")
    (mine / "notes.md").write_text("my notes")
    (mine / "README.md").unlink()
    (mine / "solutions" / "01.ipynb").unlink()
    (mine / "solutions" / "01.ipynb").symlink_to("elsewhere")  # a link into nowhere is theirs too
    handout.hand_out(mine)
    assert texts(mine) == {"01.ipynb": "my answers", "notes.md": "my notes", "README.md": "map"}
    assert (mine / "solutions" / "01.ipynb").is_symlink()


def test_a_new_edition_replaces_what_nobody_has_touched(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_edition(monkeypatch, **{"02": "two"})
    changes = handout.hand_out(mine)
    assert [(change.kind, change.path.name) for change in changes] == [
        ("updated", "01.ipynb"),
        ("new", "02.ipynb"),
    ]
    assert texts(mine) == LESSONS | {"01.ipynb": "one, edition 9.0", "02.ipynb": "two"}
    assert handout.hand_out(mine) == []


def test_a_new_edition_comes_beside_what_a_learner_wrote(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine / "01.ipynb").write_text("my answers")
    new_edition(monkeypatch)
    assert handout.hand_out(mine) == [handout.Change("beside", mine / "01.9.0.ipynb")]
    assert handout.hand_out(mine) == [], "once per edition"
    new_edition(monkeypatch, "9.1")
    (mine / "01.9.1.ipynb").write_text("mine as well")
    assert handout.hand_out(mine) == [handout.Change("beside", mine / "01.9.1-2.ipynb")]
    assert texts(mine) == LESSONS | {
        "01.ipynb": "my answers",
        "01.9.0.ipynb": "one, edition 9.0",
        "01.9.1.ipynb": "mine as well",
        "01.9.1-2.ipynb": "one, edition 9.1",
    }


@pytest.mark.parametrize("record", [None, "", "[]", '{"files": 3}'])
def test_without_a_record_what_differs_is_the_learners(
    mine: Path, monkeypatch: pytest.MonkeyPatch, record: str | None
) -> None:
    (mine / handout.RECORD).unlink()
    if record is not None:
        (mine / handout.RECORD).write_text(record)
    new_edition(monkeypatch)
    handout.hand_out(mine)
    assert texts(mine) == LESSONS | {"01.9.0.ipynb": "one, edition 9.0"}


def test_a_copy_says_of_which_version_it_is(mine: Path) -> None:
    record = json.loads((mine / handout.RECORD).read_text())
    assert record["version"] == pipemare_edu.__version__
    assert set(record["files"]) == set(LESSONS)
    for lesson in lessons():
        book = nbformat.read(build.path_of(lesson, solved=False), as_version=4)
        assert book.metadata.pipemare_edu.version == pipemare_edu.__version__


def test_reset_keeps_the_learners_notebook_beside_the_pristine_one(mine: Path) -> None:
    (mine / "01.ipynb").write_text("my answers")
    assert handout.reset(mine, "01") == handout.Change("kept", mine / "01.mine.ipynb")
    assert texts(mine) == LESSONS | {"01.mine.ipynb": "my answers"}
    (mine / "01.ipynb").write_text("once more")
    handout.reset(mine, "01.ipynb")
    assert texts(mine) == LESSONS | {"01.mine.ipynb": "my answers", "01.mine-2.ipynb": "once more"}
    assert handout.hand_out(mine) == []


def test_reset_gives_the_newest_edition_once(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mine / "01.ipynb").write_text("my answers")
    new_edition(monkeypatch)
    assert cli.main(["lessons", str(mine), "--reset", "01"]) == 0
    assert texts(mine) == LESSONS | {
        "01.ipynb": "one, edition 9.0",
        "01.mine.ipynb": "my answers",
    }


def test_reset_refuses_what_it_cannot_do(mine: Path) -> None:
    with pytest.raises(ValueError, match="nothing to reset"):
        handout.reset(mine, "01")
    (mine / "01.ipynb").unlink()
    with pytest.raises(ValueError, match="01.ipynb is not there"):
        handout.reset(mine, "1")
    handout.hand_out(mine)
    with pytest.raises(ValueError, match="there is no lesson '77'; there are 01.ipynb"):
        handout.reset(mine, "77")
    assert texts(mine) == LESSONS


def test_where_nothing_can_be_written_it_says_so(installed: None, home: Path) -> None:
    (home / "pipemare_lessons").write_text("a file")
    with pytest.raises(ValueError, match=r"cannot be copied to .*pipemare_lessons \(.+\): start"):
        handout.hand_out(lab.folder(home))
    assert (home / "pipemare_lessons").read_text() == "a file"


def test_the_lessons_themselves_are_no_copy() -> None:
    with pytest.raises(ValueError, match="the lessons themselves: name a folder"):
        handout.hand_out(handout.lessons())


def test_jupyterlab_is_given_the_copy(mine: Path, home: Path, monkeypatch) -> None:
    monkeypatch.chdir(home)
    assert f"--ServerApp.root_dir={mine}" in lab.arguments([])


def test_the_command_hands_out_and_resets(
    installed: None, home: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    mine = home / lab.COPY
    assert cli.main(["lessons"]) == 0
    assert capsys.readouterr().out == "3 files are new\n"
    assert texts(mine) == LESSONS
    assert cli.main(["lessons"]) == 0
    assert "is up to date" in capsys.readouterr().out
    (mine / "01.ipynb").write_text("my answers")
    assert cli.main(["lessons", str(mine), "--reset", "01"]) == 0
    assert f"yours is beside it: {mine / '01.mine.ipynb'}" in capsys.readouterr().out
    assert cli.main(["lessons", "--reset", "01"]) == 2
    (mine / "01.ipynb").write_text("again")
    assert cli.main(["lessons", "--reset", "01", str(mine)]) == 0


def test_a_checkout_hands_out_its_notebooks_and_no_test_files(home: Path) -> None:
    handout.hand_out(home)
    assert (home / "solutions" / f"{lessons()[0]}.ipynb").exists()
    assert (home / "README.md").exists() and not list(home.rglob("*.py"))
