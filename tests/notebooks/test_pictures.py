"""Every figure of the committed notebooks has a picture, for pages that run no code."""

from __future__ import annotations

from shutil import which

import nbformat
import pytest

from pipemare_edu.lessons import build
from pipemare_edu.lessons.previews import CHROMES, PNG
from pipemare_edu.lessons.source import lessons

pytestmark = pytest.mark.skipif(
    not any(map(which, CHROMES)), reason="chromium is not installed (apt-get install chromium)"
)
DRAW = "draw them: python -m pipemare_edu.lessons.previews"


@pytest.mark.parametrize("solved", [False, True], ids=["student", "solution"])
@pytest.mark.parametrize("lesson", lessons())
def test_every_figure_has_a_picture(lesson: str, solved: bool) -> None:
    book = nbformat.read(build.path_of(lesson, solved), as_version=4)
    outputs = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", ())]
    figures = [data for data in outputs if build.PLOTLY in data]
    assert figures and all(PNG in data for data in figures), DRAW
