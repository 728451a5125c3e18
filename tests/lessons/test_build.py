"""Building a small lesson, and finding where its notebooks have drifted from its source."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from pipemare_edu.lessons import build, source

TEXT = """\
# %% [markdown]
# # 77 · Made up
# **5 minutes**; {{machine time}}.

# %%
import os

print(os.environ["PIPEMARE_EDU_PROFILE"], os.environ["PIPEMARE_EDU_STRICT"])

# %% [markdown]
# A widget and a figure.

# %%
from IPython.display import display

display({"application/vnd.jupyter.widget-view+json": {}, "text/plain": "a panel"}, raw=True)
display({"application/vnd.plotly.v1+json": {}, "text/html": "x", "text/plain": "f"}, raw=True)
# BEGIN SOLUTION
x = 1
# STUB
# x = ...
# END SOLUTION
"""
ROW = "| 77 | Made up | 5 | |\n"


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of notebooks with one lesson, built."""
    folder = tmp_path_factory.mktemp("notebooks")
    with pytest.MonkeyPatch.context() as patch:
        _use(folder, patch)
        (folder / "77_made_up.py").write_text(TEXT)
        (folder / "README.md").write_text(ROW)
        build.main([])
    return folder


def _use(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(source, "SOURCES", folder)
    patch.setattr(build, "NOTEBOOKS", folder)


@pytest.fixture
def built(notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    _use(notebooks, monkeypatch)
    return notebooks


def test_both_notebooks_are_executed_in_the_ci_profile(built: Path) -> None:
    for name, strict in (("77_made_up.ipynb", "0"), ("solutions/77_made_up.ipynb", "1")):
        book = nbformat.read(built / name, as_version=4)
        assert book.cells[2].outputs[0].text == f"ci {strict}\n"
        assert [cell.get("execution_count", 0) for cell in book.cells] == [0, 1, 2, 0, 3]


def test_nothing_is_kept_that_needs_a_kernel_or_changes_by_itself(built: Path) -> None:
    book = nbformat.read(built / "77_made_up.ipynb", as_version=4)
    assert [set(output.data) for output in book.cells[4].outputs] == [
        {"text/plain"},
        {"text/plain", "application/vnd.plotly.v1+json"},
    ]
    assert set(book.metadata) == {"kernelspec", "language_info", "pipemare_edu"}
    assert not any(cell.metadata for cell in book.cells)


def test_the_map_names_minutes_and_machine_time(built: Path) -> None:
    book = nbformat.read(built / "77_made_up.ipynb", as_version=4)
    time = source.machine_time(book.metadata.pipemare_edu.seconds)
    row = f"| 77 | [Made up](77_made_up.ipynb) | 5 | {time} |\n"
    assert (built / "README.md").read_text() == row
    assert time in book.cells[0].source
    with pytest.raises(ValueError, match="no row for lesson 77"):
        build.readme("no rows")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("A widget and", "Another widget and", "cell 3 differs: Another widget"),
        ("x = 1", "x = 2", "solutions/77_made_up.ipynb: cell 4 differs"),
        ("# x = ...", "# x = ...  # a number", "77_made_up.ipynb: cell 4 differs"),
        ("# %% [markdown]\n# A", "# %%\n1\n# %% [markdown]\n# A", "it has 5 cells, its source 6"),
    ],
)
def test_drift_is_found(
    built: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    path = built / "77_made_up.py"
    assert build.main(["--check"]) == 0
    path.write_text(TEXT.replace(old, new))
    try:
        assert build.main(["--check"]) == 1
        assert says in capsys.readouterr().err
    finally:
        path.write_text(TEXT)


def test_an_unknown_lesson_is_refused(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build.main(["--check", "78_not_made"])
    assert "there is no lesson '78_not_made'" in capsys.readouterr().err


def test_a_missing_notebook_is_drift(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "NOTEBOOKS", built / "elsewhere")
    assert build.drift("77_made_up") == ["77_made_up.ipynb is missing"]


def test_an_error_in_a_cell_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(tmp_path, monkeypatch)
    (tmp_path / "77_made_up.py").write_text("# %%\n1 / 0\n")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        build.build("77_made_up")
    assert not list(tmp_path.glob("*.ipynb"))
