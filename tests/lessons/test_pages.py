"""The pages without a kernel in a browser without a network, from a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Error

from pipemare_edu.lessons import site
from pipemare_edu.lessons.build import NOTEBOOKS, PLOTLY
from pipemare_edu.lessons.previews import chrome

# Figures with something drawn in them: their own axes, and at least one mark.
DRAWN = """() => [...document.querySelectorAll('.plot')].filter(plot =>
  plot.querySelector('.main-svg .bglayer, .main-svg .layer-below') &&
  plot.querySelector('.trace, .point, .js-line, .hm image, .contour') &&
  plot.getBoundingClientRect().height > 100).length"""
FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(chrome())
        except Error:
            pytest.skip("chromium is not installed (apt-get install chromium)")
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.make(folder)
    return folder


def figures(source: str) -> int:
    """How many figures a notebook has."""
    if not source.endswith(".ipynb"):
        return 0
    book = nbformat.read(NOTEBOOKS / source, as_version=4)
    return sum(PLOTLY in out.get("data", {}) for c in book.cells for out in c.get("outputs", ()))


@pytest.mark.parametrize("source", [path.name for path in site.sources()])
def test_a_page_draws_everything_and_asks_nobody(
    browser: Browser, folder: Path, source: str
) -> None:
    problems, asked = [], []
    with browser.new_context(offline=True, viewport={"width": 1100, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(120_000)  # on a busy machine; a page takes a second or two
        page.on("console", lambda said: problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((folder / site.file_of(source)).as_uri(), wait_until="load")
        wanted = figures(source)
        page.wait_for_function(f"n => ({DRAWN})() === n", arg=wanted)
        papers = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            papers.append(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        assert papers == ["rgb(255, 255, 255)", "rgb(17, 19, 21)"]
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function(FITS)
    assert problems == []
    assert all(url.startswith(("file://", "data:", "blob:")) for url in asked), asked
