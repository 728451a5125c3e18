"""Make the notebooks of the lessons from their sources, executed, and the map of notebooks/.

    python -m pipemare_edu.lessons.build [--check] [lesson ...]

--check executes nothing: it says where the notebooks have drifted from the sources.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from .lint import lint
from .source import lessons, machine_time, notebook

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
WIDGET, PLOTLY = "application/vnd.jupyter.widget-view+json", "application/vnd.plotly.v1+json"
CELL_SECONDS = 120


def path_of(lesson: str, solved: bool) -> Path:
    """Where a lesson's notebook is."""
    return NOTEBOOKS / ("solutions" if solved else "") / f"{lesson}.ipynb"


def build(lesson: str) -> list[str]:
    """Make and execute a lesson's two notebooks and write them; returns what the lint says."""
    drafts = {solved: notebook(lesson, solved, 0) for solved in (False, True)}
    took = max(execute(draft, solved) for solved, draft in drafts.items())
    problems = []
    for solved, draft in drafts.items():
        made = notebook(lesson, solved, 5 * max(1, math.ceil(took / 5)))
        for cell, run in zip(made.cells, draft.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = run.outputs, run.execution_count
        path = path_of(lesson, solved)
        path.parent.mkdir(exist_ok=True)
        nbformat.write(made, path)
        problems += [f"{path.relative_to(NOTEBOOKS)}: {problem}" for problem in lint(path)]
    return problems


def execute(
    book: Any, strict: bool, there: Mapping[str, str] | None = None, patience: int = CELL_SECONDS
) -> float:
    """Run a notebook in place, in the ci profile and on one core; returns the processor seconds it
    took, which do not depend on what else the machine does.

    there     environment variables of its kernel
    patience  seconds after which a cell is given up
    """
    env = {
        **os.environ,
        "PIPEMARE_EDU_PROFILE": "ci",
        "PIPEMARE_EDU_STRICT": "1" if strict else "0",
        "PLOTLY_RENDERER": "plotly_mimetype",
        **(there or {}),
    }
    client = NotebookClient(
        book,
        timeout=patience,
        kernel_name="python3",
        store_widget_state=False,  # megabytes, and of no use without a kernel
        record_timing=False,
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    start = children_seconds()
    with one_core():
        client.execute(env=env)
    seconds = children_seconds() - start
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            _keep_readable(output.get("data", {}))
    return seconds


def _keep_readable(data: dict[str, Any]) -> None:
    """Leave out what needs a kernel or the network, so that a page shows the text or figure."""
    data.pop(WIDGET, None)
    if PLOTLY in data:
        data.pop("text/html", None)


def children_seconds() -> float:
    """Processor time of child processes that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


@contextmanager
def one_core() -> Iterator[None]:
    """What starts in here may use one core, where the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def drift(lesson: str) -> list[str]:
    """Where a lesson's committed notebooks differ from what its source would give."""
    seconds = 0
    found = []
    for solved in (False, True):
        path = path_of(lesson, solved)
        name = path.relative_to(NOTEBOOKS)
        if not path.exists():
            return [f"{name} is missing"]
        book = nbformat.read(path, as_version=4)
        seconds = seconds or book.metadata.get("pipemare_edu", {}).get("seconds", 0)
        expected = notebook(lesson, solved, seconds)
        found += [f"{name}: {what}" for what in _differences(book, expected)]
    return found


def _differences(book: Any, expected: Any) -> Iterator[str]:
    if book.metadata != expected.metadata:
        yield "its metadata differ"
    if len(book.cells) != len(expected.cells):
        yield f"it has {len(book.cells)} cells, its source {len(expected.cells)}"
    for n, (cell, source) in enumerate(zip(book.cells, expected.cells, strict=False)):
        kept = ("cell_type", "id", "metadata", "source")
        if any(cell.get(key) != source.get(key) for key in kept):
            yield f"cell {n} differs: {source.source.splitlines()[0][:60]}"


def readme(text: str) -> str:
    """The map of notebooks/ with the row of every built lesson brought up to date."""
    for lesson in lessons():
        number = lesson.partition("_")[0]
        row = re.compile(rf"^\| {number} \|.*$", re.MULTILINE)
        if not row.search(text):
            raise ValueError(f"notebooks/README.md has no row for lesson {number}")
        text = row.sub(_row(lesson, number), text)
    return text


def _row(lesson: str, number: str) -> str:
    book = nbformat.read(path_of(lesson, solved=False), as_version=4)
    opening = book.cells[0].source
    title = re.search(rf"^# {number} · (.+)$", opening, re.MULTILINE)
    minutes = re.search(r"\*\*(\d+) minutes\*\*", opening)
    if title is None or minutes is None:
        raise ValueError(f'{lesson} does not open with "# {number} · title" and **n minutes**')
    time = machine_time(book.metadata.pipemare_edu.seconds)
    return f"| {number} | [{title[1]}]({lesson}.ipynb) | {minutes[1]} | {time} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if something has drifted or the lint has something to say."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.lessons.build")
    parser.add_argument("lesson", nargs="*", help=f"of {', '.join(lessons())}; all if none")
    parser.add_argument("--check", action="store_true", help="execute nothing, report drift")
    args = parser.parse_args(argv)
    if unknown := set(args.lesson) - set(lessons()):
        parser.error(f"there is no lesson {unknown.pop()!r}")
    page = NOTEBOOKS / "README.md"
    problems = []
    for lesson in args.lesson or lessons():
        problems += drift(lesson) if args.check else build(lesson)
    if not args.check:
        page.write_text(readme(page.read_text()))
    elif not problems and readme(page.read_text()) != page.read_text():
        problems.append("README.md differs from the notebooks' own titles and times")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
