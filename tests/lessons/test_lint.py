"""Each rule of the lint, on a notebook that keeps to all and on one that breaks one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from pipemare_edu.lessons.first_cell import first_cell
from pipemare_edu.lessons.lint import lint

OPENING = (
    "# 77 · Made up\n**5 minutes**; under 10 seconds on one core. "
    "**You will do** it. **You will learn** it. **You need** it."
)
CLOSING = """\
## Take-aways
## Quiz
1. a
2. b
3. c
4. d
5. e
<details>1. not counted</details>
## Not shown
## Next
"""
PLOTLY = "application/vnd.plotly.v1+json"
DESCRIPTION = "A chart of four stages: every one of them is idle for half of the time."


def figure(text: str = DESCRIPTION, **more: Any) -> Any:
    return new_output("execute_result", {PLOTLY: {}, "text/plain": text, **more}, execution_count=1)


def code(source: str = "1 + 1", **more: Any) -> Any:
    return new_code_cell(source, execution_count=1, **more)


def good() -> Any:
    filler = "word " * 200
    cells = [new_markdown_cell(OPENING), code(outputs=[figure()]), new_markdown_cell(filler)]
    return new_notebook(cells=[*cells, code(), new_markdown_cell(CLOSING)])


@pytest.fixture
def problems(tmp_path: Path) -> Callable[[Any], list[str]]:
    def of(book: Any) -> list[str]:
        path = tmp_path / "book.ipynb"
        nbformat.write(book, path)
        return lint(path)

    return of


def test_nothing_to_say_about_a_good_one(problems: Callable[[Any], list[str]]) -> None:
    assert problems(good()) == []


def test_the_builders_own_cell_may_reach_for_the_network(
    problems: Callable[[Any], list[str]],
) -> None:
    book = good()
    book.cells.insert(1, new_code_cell(first_cell()))
    assert problems(book) == []
    book.cells[1].source += "\n    %pip install another"
    assert "reaches for the network" in "\n".join(problems(book))


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ((0, "**You need**", ""), "does not say what the learner needs"),
        ((0, "**5 minutes**", ""), "does not say the minutes"),
        ((0, "under 10 seconds", ""), "does not say the measured machine time"),
        ((4, "## Next", ""), "no section with what comes next"),
        ((4, "5. e", ""), "the quiz has 4 questions"),
        ((2, "word " * 200, ""), "it has 29 words; 5 minutes ask for 150 to 335"),
        ((2, "word", "word word"), "it has 429 words"),
        ((2, "word", "![](chart.png)"), "an image has no alternative text"),
        ((2, "word", "<img src='x'>"), "an image has no alternative text"),
        ((3, "1 + 1", "\n".join("1" * 21)), "a code cell has 21 lines"),
        ((3, "1 + 1", "go.FigureWidget()"), "a FigureWidget"),
        ((3, "1 + 1", "%pip install x"), "reaches for the network"),
        ((3, "1 + 1", 'open("https://x")'), "reaches for the network"),
    ],
)
def test_what_a_cell_says(
    problems: Callable[[Any], list[str]], where: tuple[int, str, str], says: str
) -> None:
    book = good()
    n, old, new = where
    book.cells[n].source = book.cells[n].source.replace(old, new)
    assert says in "\n".join(problems(book))


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (figure("Figure({'data': [" + "x" * 60), "a figure without a description"),
        (figure("short"), "a figure without a description"),
        (figure(**{"text/html": '<script src="x">'}), "loads a script from the network"),
        (
            figure(**{"application/vnd.jupyter.widget-view+json": {}}),
            "a widget that needs a kernel",
        ),
        (new_output("error", ename="ValueError", evalue="", traceback=[]), "raised ValueError"),
        (new_output("stream", name="stderr", text="careful"), "wrote to stderr"),
    ],
)
def test_what_a_cell_gave(problems: Callable[[Any], list[str]], output: Any, says: str) -> None:
    book = good()
    book.cells[3].outputs = [output]
    assert says in "\n".join(problems(book))


def change(**more: Any) -> Any:
    book = good()
    book.update(more)
    return book


def with_cell(n: int, **more: Any) -> Any:
    book = good()
    book.cells[n].update(more)
    return book


@pytest.mark.parametrize(
    ("book", "says"),
    [
        (change(metadata={"widgets": {}}), "the state of widgets"),
        (change(cells=[*good().cells, code()]), "code without text before and after"),
        (change(cells=[code() for _ in range(26)]), "26 code cells"),
        (change(cells=[code("\n".join("1" * 18)) for _ in range(7)]), "126 lines"),
        (change(cells=[code("\n".join("1" * 6))]), "most code cells have 6 lines or more"),
        (with_cell(1, execution_count=None), "was not executed"),
        (with_cell(1, metadata={"execution": {}}), "times of execution"),
        (with_cell(1, outputs=[figure("x" * 500_000)]), "the limit is 500,000"),
    ],
)
def test_what_a_notebook_is(problems: Callable[[Any], list[str]], book: Any, says: str) -> None:
    assert says in "\n".join(problems(book))


def test_two_cells_with_one_id(tmp_path: Path) -> None:
    book = good()
    book.cells[0].id = book.cells[1].id
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps(book))
    with pytest.warns(Warning, match="Non-unique cell id"):
        assert lint(path) == ["cell ids are missing or not unique"]


def test_an_exercise_may_be_longer(problems: Callable[[Any], list[str]]) -> None:
    book = good()
    book.cells[3].source = "\n".join("1" * 21)
    book.cells[3].metadata = {"tags": ["exercise"]}
    assert problems(book) == []
