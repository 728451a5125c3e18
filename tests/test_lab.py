"""Which folder JupyterLab opens, and the copy of the lessons that a wheel makes for a learner."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipemare_edu import lab

LESSONS = {"README.md": "map", "01.ipynb": "one", "solutions/01.ipynb": "one, solved"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has its notebooks inside, which nobody may write."""
    folder = tmp_path / "installed" / "notebooks"
    for name, text in LESSONS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o444)
    monkeypatch.setattr(lab, "PACKAGED", folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_a_checkout_opens_its_notebooks_and_copies_nothing(home: Path) -> None:
    assert not lab.PACKAGED.exists(), "a checkout has its notebooks at its top"
    assert lab.folder(home) == home
    (home / "notebooks").mkdir()
    assert lab.folder(home) == home / "notebooks"
    assert [path.name for path in home.iterdir()] == ["notebooks"]


def test_a_wheel_opens_a_copy_that_its_learner_may_write(installed: None, home: Path) -> None:
    (home / "notebooks").mkdir()  # somebody's own
    opened = lab.folder(home)
    assert opened == home / "pipemare_lessons"
    assert texts(opened) == LESSONS
    for name in LESSONS:
        assert (opened / name).stat().st_mode & 0o200


def test_a_learners_files_are_never_overwritten(installed: None, home: Path) -> None:
    mine = lab.folder(home)
    (mine / "01.ipynb").write_text("my answers")
    (mine / "notes.md").write_text("my notes")
    (mine / "README.md").unlink()
    (mine / "solutions" / "01.ipynb").unlink()
    (mine / "solutions" / "01.ipynb").symlink_to("elsewhere")  # a link into nowhere is theirs too
    lab.folder(home)
    assert texts(mine) == {"01.ipynb": "my answers", "notes.md": "my notes", "README.md": "map"}
    assert (mine / "solutions" / "01.ipynb").is_symlink()


def test_started_inside_the_copy_it_opens_that_one(installed: None, home: Path) -> None:
    mine = lab.folder(home)
    assert lab.folder(mine) == mine
    assert texts(mine) == LESSONS


def test_where_nothing_can_be_written_it_says_so(installed: None, home: Path) -> None:
    (home / "pipemare_lessons").write_text("a file")
    with pytest.raises(ValueError, match=r"cannot be copied to .*pipemare_lessons \(.+\): start"):
        lab.folder(home)
    assert (home / "pipemare_lessons").read_text() == "a file"


def test_jupyterlab_is_given_the_copy(installed: None, home: Path, monkeypatch) -> None:
    monkeypatch.chdir(home)
    assert f"--ServerApp.root_dir={home / lab.COPY}" in lab.arguments([])
    assert texts(home / lab.COPY) == LESSONS
