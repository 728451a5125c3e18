"""The committed notebooks: as their sources say, and as the course promises.

`make test` also runs them all under nbval: the students' as they are, the solved ones with their
texts compared.
"""

from __future__ import annotations

import pytest

from pipemare_edu.lessons import build
from pipemare_edu.lessons.lint import lint
from pipemare_edu.lessons.source import lessons

DEMO = "demo_recipe_board"  # a page for visitors, without a source
AGAIN = "python -m pipemare_edu.lessons.build"


@pytest.mark.parametrize("lesson", lessons())
def test_notebooks_agree_with_their_source(lesson: str) -> None:
    assert build.drift(lesson) == [], f"make them again: {AGAIN} {lesson}"


@pytest.mark.parametrize("solved", [False, True], ids=["student", "solution"])
@pytest.mark.parametrize("lesson", lessons())
def test_notebooks_keep_to_the_rules(lesson: str, solved: bool) -> None:
    assert lint(build.path_of(lesson, solved)) == []


def test_every_notebook_but_the_demo_has_a_source() -> None:
    found = {path.stem for path in build.NOTEBOOKS.rglob("*.ipynb")}
    assert found == {*lessons(), DEMO}


def test_the_map_is_up_to_date() -> None:
    text = (build.NOTEBOOKS / "README.md").read_text()
    assert build.readme(text) == text, f"make it again: {AGAIN}"
