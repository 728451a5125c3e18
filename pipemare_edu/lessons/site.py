"""The lessons as pages that need no kernel and no network: a folder to open or to put on a server.

    python -m pipemare_edu.lessons.site [folder]

Every student's notebook becomes a page with the outputs that are committed in it, and every text
beside the notebooks another.  One copy of plotly.js draws all figures; formulas are MathML, which
browsers draw by themselves.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup
from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from plotly.offline import get_plotlyjs
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from .build import NOTEBOOKS, PLOTLY, path_of
from .first_cell import first_cell
from .source import lessons

HERE = Path(__file__).resolve().parent
COURSE = "PipeMare, a course that you run"
INDEX = "README.md"
MOST = 160  # characters of a description that search engines show
LIGHT, DARK = "friendly", "github-dark"  # Pygments' names of colours for code


@dataclass(frozen=True)
class Page:
    """A page of the site.

    source   the notebook or text that it is made from, in notebooks/
    heading  what it calls itself
    about    what it says of itself, in a sentence or two
    """

    source: Path
    heading: str
    about: str

    @property
    def file(self) -> str:
        return file_of(self.source.name)

    @property
    def number(self) -> str:
        """Of a lesson, such as "03"."""
        return self.source.name.partition("_")[0]

    @property
    def title(self) -> str:
        return COURSE if self.source.name == INDEX else f"{self.heading} · {COURSE}"

    @property
    def description(self) -> str:
        return textwrap.shorten(self.about, MOST, placeholder=" ...")


def sources() -> list[Path]:
    """What pages are made from: the lessons in their order, then the texts beside them."""
    return [path_of(lesson, solved=False) for lesson in lessons()] + sorted(NOTEBOOKS.glob("*.md"))


def file_of(source: str) -> str:
    """The file of the page that is made from a notebook or text of that name."""
    return "index.html" if source == INDEX else f"{Path(source).stem}.html"


class Renderer(IPythonRenderer):
    """Markdown as a page wants it: formulas in MathML, and links that stay on the site."""

    def inline_math(self, body: str) -> str:
        return convert(body)

    def block_math(self, body: str) -> str:
        return f'<div class="formula">{convert(body, display="block")}</div>'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        name, mark, place = url.partition("#")
        if name and not re.match(r"[a-z]+:", name):
            if name not in {source.name for source in sources()}:
                return text  # of the repository, and not on the site
            url = file_of(name) + mark + place
        return super().link(text, url, title)


class Exporter(HTMLExporter):
    """nbconvert's HTML, with this course's template and `Renderer`."""

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        renderer = Renderer(escape=False, embed_images=True, path=str(NOTEBOOKS))
        return MarkdownWithMath(renderer=renderer).render(source)


def exporter() -> Exporter:
    shown = [PLOTLY, "text/html", "image/png", "text/plain"]
    config = Config({"NbConvertBase": {"display_data_priority": shown}})
    return Exporter(config=config, extra_template_basedirs=[str(HERE)], template_name="page")


def read(source: Path) -> Any:
    """A notebook without the cell that is for kernels alone, or a text as one."""
    if source.suffix == ".ipynb":
        book = nbformat.read(source, as_version=4)
        book.cells = [cell for cell in book.cells if cell.source != first_cell()]
        return book
    cell = nbformat.v4.new_markdown_cell(source.read_text(encoding="utf-8"))
    return nbformat.v4.new_notebook(cells=[cell])


def page(source: Path) -> Page:
    """What a notebook or text says of itself: its heading, and what one will learn, or else its
    first paragraph."""
    opening = MarkdownWithMath(renderer=Renderer(escape=False)).render(read(source).cells[0].source)
    soup = BeautifulSoup(opening, "html.parser")
    for mark in soup.select(".anchor-link"):
        mark.decompose()
    texts = [" ".join(part.get_text().split()) for part in soup.find_all("p")]
    about = next((text for text in texts if text.startswith("You will learn")), texts[0])
    if source.name == INDEX:
        about = metadata.metadata("pipemare-edu")["Summary"]
    return Page(source, soup.select("h1")[0].get_text().strip(), about)


def make(folder: Path) -> list[Path]:
    """Write the site into `folder`, which is emptied first; returns its pages."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pages = [page(source) for source in sources()]
    course = [one for one in pages if one.source.suffix == ".ipynb"]
    html = exporter()
    for one in pages:
        n = course.index(one) if one in course else None
        resources = {
            "course": COURSE,
            "lessons": course,
            "plotly": PLOTLY,
            "page": one,
            "before": course[n - 1] if n else None,
            "after": course[n + 1] if n is not None and n + 1 < len(course) else None,
        }
        written, _ = html.from_notebook_node(read(one.source), resources)
        (folder / one.file).write_text(written, encoding="utf-8")
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    shutil.copy(HERE / "page" / "site.js", folder)
    (folder / "site.css").write_text(css(), encoding="utf-8")
    return [folder / one.file for one in pages]


def css() -> str:
    """The look of the pages, with the colours of code for light and dark."""
    light, dark = (
        HtmlFormatter(style=name, nobackground=True).get_style_defs(".highlight")
        for name in (LIGHT, DARK)
    )
    own = (HERE / "page" / "site.css").read_text(encoding="utf-8")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{own}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.lessons.site")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/site"))
    folder = parser.parse_args(argv).folder
    made = make(folder)
    sys.stdout.write(f"{len(made)} pages: open {folder / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
