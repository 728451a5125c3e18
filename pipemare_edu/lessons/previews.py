"""Pictures for places that show notebooks and run no code, such as the pages of a repository.

    python -m pipemare_edu.lessons.previews [lesson ...]

A built notebook keeps a figure as a value, which only Jupyter draws.  This adds a PNG beside every
figure that has none.  JupyterLab shows the picture, too, in its own size, and draws the value once
the pointer is there: so a picture is as high as its figure and no wider than a cell.  Chrome draws
them; where there is none the notebooks stay as they are.
"""

from __future__ import annotations

import argparse
import base64
import io
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image
from playwright.sync_api import Browser, Error, sync_playwright
from plotly.offline import get_plotlyjs

from .build import PLOTLY, path_of
from .lint import lint
from .source import lessons

PNG = "image/png"
WIDTH, HEIGHT = 720, 450  # pixels; HEIGHT where a figure has none of its own
COLOURS = 64  # a picture in so few has a sixth of the bytes and looks the same
CHROMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DRAW = """([figure, width, height]) =>
  Plotly.toImage(figure, { format: "png", width, height })"""

Draw = Callable[[dict[str, Any]], bytes]


@contextmanager
def chrome() -> Iterator[Browser]:
    """A headless Chrome or Chromium.  Raises playwright's Error where there is none."""
    found = next(filter(None, map(shutil.which, CHROMES)), None)  # else playwright's own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


def drawing(browser: Browser) -> Draw:
    """What draws a figure, given as a value, as a PNG."""
    page = browser.new_page()
    page.add_script_tag(content=get_plotlyjs())

    def draw(figure: dict[str, Any]) -> bytes:
        shown = {key: figure[key] for key in ("data", "layout")}
        url = page.evaluate(DRAW, [shown, WIDTH, _height(figure)])
        return base64.b64decode(url.partition(",")[2])

    return draw


def _height(figure: dict[str, Any]) -> int:
    return figure["layout"].get("height", HEIGHT)


def small(png: bytes) -> bytes:
    """The picture in a palette of COLOURS, transparent where it was."""
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    few = picture.quantize(
        COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )  # the one method that keeps transparency
    file = io.BytesIO()
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def add(book: Any, draw: Draw) -> int:
    """Give every figure of a notebook that has no picture one; returns how many it gave."""
    bare = [
        output
        for cell in book.cells
        for output in cell.get("outputs", ())
        if PLOTLY in output.get("data", {}) and PNG not in output.data
    ]
    for output in bare:
        figure = output.data[PLOTLY]
        output.data[PNG] = base64.b64encode(small(draw(figure))).decode("ascii")
        output.metadata[PNG] = {"width": WIDTH, "height": _height(figure)}
    return len(bare)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 if the lint has something to say about a notebook with pictures."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.lessons.previews")
    parser.add_argument("lesson", nargs="*", help=f"of {', '.join(lessons())}; all if none")
    args = parser.parse_args(argv)
    if unknown := set(args.lesson) - set(lessons()):
        parser.error(f"there is no lesson {unknown.pop()!r}")
    paths = [path_of(name, solved) for name in args.lesson or lessons() for solved in (False, True)]
    try:
        with chrome() as browser:
            draw = drawing(browser)
            problems = [problem for path in paths for problem in _update(path, draw)]
    except Error as error:
        first = str(error).splitlines()[0]
        sys.stderr.write(f"No Chrome, so no pictures, and the notebooks stay as is. ({first})\n")
        return 0
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


def _update(path: Path, draw: Draw) -> list[str]:
    """Add pictures to a notebook file; returns what the lint says."""
    book = nbformat.read(path, as_version=4)
    if not add(book, draw):
        return []
    nbformat.write(book, path)
    sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")
    return [f"{path.name}: {problem}" for problem in lint(path)]


if __name__ == "__main__":
    sys.exit(main())
