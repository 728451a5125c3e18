"""From a lesson's one source to its two notebooks, not yet executed.

A source is a jupytext percent file in sources/.  In a code cell, a region like this one

    # BEGIN SOLUTION
    text = "F0 B0 U0"
    # STUB
    # text = ...
    # END SOLUTION

is `text = ...` in the student's notebook; the solution notebook has it without the stub (nbgrader
reads the same markers).  `{{machine time}}` in a text cell becomes what an execution took.
Below the opening text stands a cell that is the same in all notebooks (first_cell.py).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from .. import __version__
from .first_cell import first_cell

SOURCES = Path(__file__).resolve().parent / "sources"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
}
_REGION = re.compile(
    r"^(?P<begin> *# BEGIN SOLUTION\n)(?P<solution>.*?)"
    r"^ *# STUB\n(?P<stub>.*?)^(?P<end> *# END SOLUTION)$",
    re.MULTILINE | re.DOTALL,
)


def lessons() -> list[str]:
    """The names of all lessons that have a source, such as "00_find_your_way"."""
    return sorted(path.stem for path in SOURCES.glob("*.py"))


def notebook(lesson: str, solved: bool, seconds: int) -> Any:
    """The notebook of a lesson, without outputs.

    seconds  what executing it took, as `machine_time` says it
    """
    book = jupytext.read(SOURCES / f"{lesson}.py", fmt="py:percent")
    cells = [cell for cell in book.cells if not _for_tools_only(cell.source)]
    cells.insert(1, nbformat.v4.new_code_cell(first_cell()))
    made: dict[str, int] = {}
    for cell in cells:
        cell.id = _id(cell.source, made)
        if cell.cell_type == "code":
            cell.source = variant(cell.source, solved)
            cell.outputs, cell.execution_count = [], None
        else:
            cell.source = cell.source.replace("{{machine time}}", machine_time(seconds))
        cell.metadata = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
    about = {"lesson": lesson, "seconds": seconds, "version": __version__}
    return nbformat.v4.new_notebook(cells=cells, metadata={**METADATA, "pipemare_edu": about})


def variant(code: str, solved: bool) -> str:
    """A code cell with its solution or with its stub."""
    if solved:
        return _REGION.sub(lambda m: m["begin"] + m["solution"] + m["end"], code)
    return _REGION.sub(lambda m: _uncommented(m["stub"]), code)


def _uncommented(lines: str) -> str:
    return re.sub(r"^( *)# ?", r"\1", lines, flags=re.MULTILINE).rstrip()


def machine_time(seconds: int) -> str:
    """In words; `seconds` is rounded up to whole fives, so that it seldom changes."""
    return f"under {seconds} seconds on one core"


def _id(text: str, made: dict[str, int]) -> str:
    """An id that depends on the cell alone, so that an edit elsewhere does not change it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    made[digest] = made.get(digest, 0) + 1
    return digest if made[digest] == 1 else f"{digest}-{made[digest]}"


def _for_tools_only(text: str) -> bool:
    """A source may begin with comments for linters: they are no cell."""
    return all(line.startswith(("# ruff:", "# mypy:")) for line in text.splitlines())
