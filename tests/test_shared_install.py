"""A course server's install: package and notebooks belong to somebody else, and only HOME and the
folder for temporary files can be written to."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import pipemare_edu
from pipemare_edu.lessons.source import lessons

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the modes of files are POSIX's")

LESSON = """\
import nbformat, sys
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=600, resources={"metadata": {"path": "."}}).execute()
print(len(book.cells))
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """site/pipemare_edu with its notebooks inside, as a wheel lays it, and nobody may write."""
    shared = tmp_path_factory.mktemp("shared") / "site"
    nothing = shutil.ignore_patterns("__pycache__", "conftest.py")
    shutil.copytree(ROOT / "pipemare_edu", shared / "pipemare_edu", ignore=nothing)
    shutil.copytree(ROOT / "notebooks", shared / "pipemare_edu" / "notebooks", ignore=nothing)
    everything = [shared, *shared.rglob("*")]
    for path in everything:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield shared
    for path in everything:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def as_user(shared: Path, home: Path, *command: str, cwd: Path) -> str:
    """What a command prints for a user with this home.  Root gives up the right to write what it
    may not."""
    drop = []
    if os.geteuid() == 0:
        rights = "-dac_override,-dac_read_search,-fowner"
        drop = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    own = ("HOME", "TMPDIR", "JUPYTER_", "IPYTHON", "XDG_", "PYTHONPATH", "PIPEMARE_EDU")
    env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    env |= {"HOME": str(home), "PYTHONPATH": str(shared), "PIPEMARE_EDU_PROFILE": "ci"}
    done = subprocess.run(
        [*drop, sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_this_user_may_really_not_write_there(shared: Path, home: Path) -> None:
    code = (
        "import pathlib, pipemare_edu as p; f = pathlib.Path(p.__file__).parent / 'x'\n"
        "try: f.touch(); print('written', f)\nexcept PermissionError: print('refused', f.parent)"
    )
    said = as_user(shared, home, "-c", code, cwd=home)
    assert said == f"refused {shared / 'pipemare_edu'}\n"


def test_training_in_workers_writes_nothing_at_all(shared: Path, home: Path) -> None:
    before = listed(shared)
    train = ("-m", "pipemare_edu", "train", "digits", "--steps", "20", "--workers", "2")
    assert "done" in as_user(shared, home, *train, cwd=shared / "pipemare_edu" / "notebooks")
    assert listed(shared) == before
    assert listed(home) == []


def test_a_lesson_runs_in_a_folder_that_cannot_be_written_to(shared: Path, home: Path) -> None:
    before = listed(shared)
    book = shared / "pipemare_edu" / "notebooks" / f"{lessons()[0]}.ipynb"
    assert int(as_user(shared, home, "-c", LESSON, str(book), cwd=book.parent)) > 10
    assert listed(shared) == before
    assert {path.partition("/")[0] for path in listed(home)} <= {".ipython", ".local", ".jupyter"}


def test_a_user_gets_a_copy_of_their_own(shared: Path, home: Path) -> None:
    said = as_user(shared, home, "-m", "pipemare_edu", "lessons", cwd=home)
    assert said.endswith("files are new\n")
    mine = home / "pipemare_lessons" / f"{lessons()[0]}.ipynb"
    assert mine.stat().st_mode & stat.S_IWUSR
    version = as_user(shared, home, "-m", "pipemare_edu", "--version", cwd=home)
    assert version.strip() == pipemare_edu.__version__
