"""What a notebook must keep to, so that it can be read, run, and used in a class."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

from .first_cell import first_cell

MAX_BYTES = 500_000
MAX_CODE_CELLS, MAX_CODE_LINES, MAX_CELL_LINES, SHORT_CELL_LINES = 24, 120, 20, 6
# A 50-minute lesson has 1,500 to 2,200 words.  A shorter one has fewer: at 200 words a minute,
# reading takes at most a third of the time.  Folded answers do not count.
WORDS_PER_MINUTE, MAX_WORDS = (30, 67), 2200

OPENING = {
    "what the learner will do": r"\*\*You will do\*\*",
    "what the learner will learn": r"\*\*You will learn\*\*",
    "what the learner needs": r"\*\*You need\*\*",
    "the minutes": r"\*\*\d+ minutes\*\*",
    "the measured machine time": r"under \d+ seconds on one core",
}
CLOSING = {
    "take-aways": r"^## Take-aways$",
    "a quiz": r"^## Quiz$",
    "what was not shown": r"^## Not shown$",
    "what comes next": r"^## Next$",
}
NETWORK = re.compile(
    r"\b(requests|urllib|httpx|wget|curl)\b|https?://|^\s*[!%]+\s*(pip|conda)\b", re.MULTILINE
)
FIGURE = ("application/vnd.plotly.v1+json", "image/png", "image/svg+xml", "image/jpeg")
MIN_DESCRIPTION = 40  # characters that say what a figure shows

Rule = Callable[[Any], Iterator[str]]


def lint(path: Path) -> list[str]:
    """What is wrong with an executed notebook file; empty if nothing is."""
    problems = []
    if (size := path.stat().st_size) >= MAX_BYTES:
        problems.append(f"the file has {size:,} bytes, the limit is {MAX_BYTES:,}")
    text = path.read_text(encoding="utf-8")
    problems += _ids(json.loads(text)["cells"])  # nbformat gives new ones in place of doubles
    book = nbformat.reads(text, as_version=4)
    # Not the lesson's; the limit of cells leaves it room.
    book.cells = [cell for cell in book.cells if cell.source != first_cell()]
    return problems + [problem for rule in RULES for problem in rule(book)]


def _code(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def _texts(book: Any) -> list[str]:
    return [cell.source for cell in book.cells if cell.cell_type == "markdown"]


def _outputs(book: Any) -> Iterator[tuple[int, Any]]:
    for n, cell in enumerate(book.cells):
        for output in cell.get("outputs", ()):
            yield n, output


def opening_and_closing(book: Any) -> Iterator[str]:
    texts = _texts(book) or [""]
    for what, pattern in OPENING.items():
        if not re.search(pattern, texts[0]):
            yield f"the first cell does not say {what}"
    for what, pattern in CLOSING.items():
        if not re.search(pattern, "\n".join(texts), re.MULTILINE):
            yield f"there is no section with {what}"
    quiz = _unfolded("\n".join(texts)).partition("## Quiz\n")[2].partition("\n## ")[0]
    if (count := len(re.findall(r"^\d+\. ", quiz, re.MULTILINE))) != 5:
        yield f"the quiz has {count} questions, not five"


def _unfolded(text: str) -> str:
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def words(book: Any) -> Iterator[str]:
    text = _unfolded("\n".join(_texts(book)))
    minutes = re.search(r"\*\*(\d+) minutes\*\*", text)
    low, high = (int(minutes[1]) * rate if minutes else 0 for rate in WORDS_PER_MINUTE)
    count = len(re.findall(r"\b[\w'’-]*[^\W\d_][\w'’-]*", text))
    if minutes and not low <= count <= min(high, MAX_WORDS):
        yield f"it has {count} words; {minutes[1]} minutes ask for {low} to {min(high, MAX_WORDS)}"


def code_sizes(book: Any) -> Iterator[str]:
    cells = _code(book)
    lines = [_visible_lines(cell.source) for cell in cells]
    if len(cells) > MAX_CODE_CELLS:
        yield f"it has {len(cells)} code cells of its own, the limit is {MAX_CODE_CELLS}"
    if sum(lines) > MAX_CODE_LINES:
        yield f"it has {sum(lines)} lines of code, the limit is {MAX_CODE_LINES}"
    if 2 * sum(count >= SHORT_CELL_LINES for count in lines) > len(lines):
        yield f"most code cells have {SHORT_CELL_LINES} lines or more"
    for cell, count in zip(cells, lines, strict=True):
        if count > MAX_CELL_LINES and "exercise" not in cell.metadata.get("tags", ()):
            yield f"a code cell has {count} lines, the limit is {MAX_CELL_LINES}"


def _visible_lines(source: str) -> int:
    return sum(1 for line in source.splitlines() if line.strip())


def code_between_texts(book: Any) -> Iterator[str]:
    kinds = ["code", *(cell.cell_type for cell in book.cells), "code"]
    for n, cell in enumerate(book.cells):
        if cell.cell_type == "code" and "code" in (kinds[n], kinds[n + 2]):
            yield f"cell {n} is code without text before and after it"


def code_contents(book: Any) -> Iterator[str]:
    for cell in _code(book):
        if "FigureWidget" in cell.source:
            yield "a cell makes a FigureWidget: use go.Figure, or a panel"
        if NETWORK.search(cell.source):
            yield "a cell reaches for the network"
        if cell.execution_count is None:
            yield "a code cell was not executed"


def _ids(cells: Sequence[dict[str, Any]]) -> Iterator[str]:
    known = [cell.get("id") for cell in cells]
    if None in known or len(set(known)) < len(known):
        yield "cell ids are missing or not unique"


def no_state(book: Any) -> Iterator[str]:
    if "widgets" in book.metadata:
        yield "it holds the state of widgets"
    if any("execution" in cell.metadata for cell in book.cells):
        yield "it holds times of execution"
    for n, output in _outputs(book):
        if "application/vnd.jupyter.widget-view+json" in output.get("data", {}):
            yield f"cell {n} refers to a widget that needs a kernel"
        if output.output_type == "error":
            yield f"cell {n} raised {output.ename}"
        if output.output_type == "stream" and output.name == "stderr":
            yield f"cell {n} wrote to stderr"


def descriptions(book: Any) -> Iterator[str]:
    for n, output in _outputs(book):
        data = output.get("data", {})
        said = str(data.get("text/plain", ""))
        if any(kind in data for kind in FIGURE) and _says_nothing(said):
            yield f"cell {n} shows a figure without a description"
        if "<script src=" in str(data.get("text/html", "")):
            yield f"cell {n} loads a script from the network"
    for text in _texts(book):
        if re.search(r"!\[\s*\]\(|<img(?![^>]*\balt=\"[^\"]+\")", text):
            yield "an image has no alternative text"


def _says_nothing(text: str) -> bool:
    return len(text) < MIN_DESCRIPTION or text.startswith(("Figure(", "<Figure", "FigureWidget("))


RULES: tuple[Rule, ...] = (
    opening_and_closing,
    words,
    code_sizes,
    code_between_texts,
    code_contents,
    no_state,
    descriptions,
)
