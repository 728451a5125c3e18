"""From a source to its two notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipemare_edu.lessons import source

TEXT = """\
# ruff: noqa: E402
# %% [markdown]
# # 77 · Made up
# **5 minutes**; {{machine time}}.

# %%
1 + 1

# %% [markdown]
# Text.

# %% tags=["exercise"]
def half(x):
    # BEGIN SOLUTION
    return x / 2
    # STUB
    # return ...
    # END SOLUTION


# BEGIN SOLUTION
text = "F0"
more = text
# STUB
# text = ...
# END SOLUTION
check("7.1", text)

# %%
1 + 1
"""


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(source, "SOURCES", tmp_path)
    path = tmp_path / "77_made_up.py"
    path.write_text(TEXT)
    return path


def test_student_and_solution(lesson: Path) -> None:
    student, solved = (source.notebook("77_made_up", flag, 10) for flag in (False, True))
    assert student.cells[4].source == (
        'def half(x):\n    return ...\n\n\ntext = ...\ncheck("7.1", text)'
    )
    assert "    # BEGIN SOLUTION\n    return x / 2\n    # END SOLUTION" in solved.cells[4].source
    assert '# BEGIN SOLUTION\ntext = "F0"\nmore = text\n# END SOLUTION' in solved.cells[4].source
    assert "STUB" not in solved.cells[4].source
    assert [cell.id for cell in student.cells] == [cell.id for cell in solved.cells]
    assert student.cells[4].metadata == {"tags": ["exercise"]}


def test_machine_time_and_stamp(lesson: Path) -> None:
    book = source.notebook("77_made_up", False, 10)
    assert "under 10 seconds on one core" in book.cells[0].source
    assert book.metadata.pipemare_edu.seconds == 10
    assert set(book.metadata.pipemare_edu) == {"lesson", "seconds", "version"}


def test_ids_are_unique_and_stay_when_another_cell_changes(lesson: Path) -> None:
    before = [cell.id for cell in source.notebook("77_made_up", False, 0).cells]
    assert len(set(before)) == 6
    lesson.write_text(TEXT.replace("# Text.", "# Other text."))
    after = [cell.id for cell in source.notebook("77_made_up", False, 0).cells]
    changed = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert changed == [3]


def test_lessons_are_listed_by_their_files(lesson: Path) -> None:
    assert source.lessons() == ["77_made_up"]
