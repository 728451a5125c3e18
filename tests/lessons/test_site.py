"""The pages without a kernel, as files: whole, findable, and asking nobody for anything.

tests/browser/test_pages.py opens them.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup

from pipemare_edu.lessons import site
from pipemare_edu.lessons.build import NOTEBOOKS, PLOTLY
from pipemare_edu.lessons.source import lessons

LOADS = {"link": "href", "img": "src", "script": "src", "iframe": "src"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BeautifulSoup]:
    """Every page by its file's name."""
    folder = tmp_path_factory.mktemp("site") / "new"
    made = site.make(folder)
    assert {path.name for path in folder.iterdir()} - {path.name for path in made} == {
        "plotly.min.js", "site.css", "site.js",
    }  # fmt: skip
    return {path.name: BeautifulSoup(path.read_text(), "html.parser") for path in made}


def test_every_lesson_and_no_solution_has_a_page(pages: dict[str, BeautifulSoup]) -> None:
    texts = {"index.html", "GLOSSARY.html", "INSTRUCTOR.html"}
    assert set(pages) == {f"{lesson}.html" for lesson in lessons()} | texts
    for lesson in lessons():
        text = pages[f"{lesson}.html"].get_text()
        assert "BEGIN SOLUTION" not in text and "%pip" not in text


def test_every_page_says_what_it_is_to_a_search_engine(pages: dict[str, BeautifulSoup]) -> None:
    titles = [page.title.get_text() for page in pages.values()]
    said = [page.find("meta", attrs={"name": "description"})["content"] for page in pages.values()]
    assert len(set(titles)) == len(set(said)) == len(pages)
    assert all(15 < len(title) < 90 for title in titles), titles
    assert all(60 < len(words) <= site.MOST for words in said), said
    assert all(page.html["lang"] == "en" and page.h1 for page in pages.values())


@pytest.mark.parametrize("lesson", lessons())
def test_a_page_has_the_figures_of_its_notebook(
    pages: dict[str, BeautifulSoup], lesson: str
) -> None:
    book = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    outputs = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", ())]
    words = [" ".join(data["text/plain"].split()) for data in outputs if PLOTLY in data]
    plots = pages[f"{lesson}.html"].select("figure > .plot")
    assert [" ".join(plot["aria-label"].split()) for plot in plots] == words
    assert len(words) >= 5 and all(words)


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        for tag, attribute in LOADS.items():
            wanted = {found[attribute] for found in page.find_all(tag) if found.get(attribute)}
            own = {"plotly.min.js", "site.js", "site.css"}
            assert all(it in own or it.startswith("data:") for it in wanted), (name, wanted)
    assert "url(" not in site.css() and "@import" not in site.css()


def test_every_image_has_words(pages: dict[str, BeautifulSoup]) -> None:
    assert all(image.get("alt") for page in pages.values() for image in page.find_all("img"))


def test_every_link_leads_somewhere(pages: dict[str, BeautifulSoup]) -> None:
    places = {
        name: {found["id"] for found in page.find_all(id=True)} for name, page in pages.items()
    }
    for name, page in pages.items():
        for link in page.find_all("a"):
            target, _, place = link["href"].partition("#")
            if target.startswith("https:"):
                continue
            assert (target or name) in places, (name, link["href"])
            known = places[target or name]
            assert not place or {place, unquote(place)} & known, (name, link["href"])


def test_pages_follow_one_another(pages: dict[str, BeautifulSoup]) -> None:
    order = [f"{lesson}.html" for lesson in lessons()]
    for before, after in zip(order, order[1:], strict=False):
        assert pages[before].select_one("a[rel=next]")["href"] == after
        assert pages[after].select_one("a[rel=prev]")["href"] == before
    for name, page in pages.items():
        nav = page.find("nav", attrs={"aria-label": "Course"})
        assert {"index.html", "GLOSSARY.html", *order} == {a["href"] for a in nav.find_all("a")}
        assert [a["href"] for a in nav.select("[aria-current]")] == [name] * (
            name in order or name == "GLOSSARY.html"
        )


def test_formulas_are_drawn(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        for part in page.select("math, code, pre, script"):
            part.extract()
        assert "$" not in page.get_text() and "\\" not in page.get_text(), name


def test_the_command_empties_its_folder_and_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(site, "lessons", lambda: [])
    (tmp_path / "README.md").write_text("# Map\n\nThree lines about $x^2$.\n\n[a](a.md) [b](b.txt)")
    (tmp_path / "a.md").write_text("# A\n\n| | |\n|---|---|\n| 1 | [map](README.md#Map) |\n\nText.")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.html").write_text("old")
    assert site.main([str(tmp_path / "out")]) == 0
    assert "2 pages: open" in capsys.readouterr().out
    index = BeautifulSoup((tmp_path / "out" / "index.html").read_text(), "html.parser")
    assert [a["href"] for a in index.main.select("p a")] == ["a.html"]
    assert index.main.math.get_text() == "x2"
    assert 'href="index.html#Map"' in (tmp_path / "out" / "a.html").read_text()
    assert not (tmp_path / "out" / "old.html").exists()
