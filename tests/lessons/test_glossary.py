"""Glossary and guide agree with the lessons: words, links, equations, exercises, minutes."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from pipemare_edu.lessons.build import NOTEBOOKS
from pipemare_edu.lessons.exercises import every
from pipemare_edu.lessons.source import SOURCES

PAGES = ("GLOSSARY.md", "INSTRUCTOR.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#([^)\s]+))?\)")
ROW = re.compile(r"^\| \*\*(.+?)\*\* \|.*\| (\[.*\)) \|$", re.MULTILINE)
NUMBER = r"(\d+(?:\.\d+)?)"


def prose(path: Path) -> str:
    """The text of a page, or of a notebook's text cells."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def sections(text: str) -> dict[str, str]:
    """What stands under each heading, by the name that Jupyter gives to the heading."""
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        heading.replace(" ", "-"): " ".join(below.split())
        for heading, below in zip(parts[::2], parts[1::2], strict=True)
    }


def words() -> list[tuple[str, str]]:
    return ROW.findall((NOTEBOOKS / "GLOSSARY.md").read_text(encoding="utf-8"))


def listed() -> set[tuple[str, str]]:
    """(lesson, number) of every equation in the glossary."""
    text = (NOTEBOOKS / "GLOSSARY.md").read_text(encoding="utf-8")
    return set(re.findall(rf"^\| (\d\d) \| \({NUMBER}\) \|", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = LINK.findall((NOTEBOOKS / page).read_text(encoding="utf-8"))
    assert links
    for target, anchor in links:
        if "://" in target:
            continue
        path = NOTEBOOKS / target
        assert path.exists(), target
        assert not anchor or unquote(anchor) in sections(prose(path)), f"{target}#{anchor}"


@pytest.mark.parametrize(("word", "link"), words(), ids=[word for word, _ in words()])
def test_a_word_stands_where_its_link_leads(word: str, link: str) -> None:
    [(target, anchor)] = LINK.findall(link)
    text = prose(NOTEBOOKS / target)
    where = sections(text)[unquote(anchor)] if anchor else text
    assert re.search(re.escape(word), where, re.IGNORECASE), f"{word}: {link}"


def test_words_are_listed_once() -> None:
    names = [word.lower() for word, _ in words()]
    assert len(names) > 50 and len(names) == len(set(names))


@pytest.mark.parametrize("source", sorted(SOURCES.glob("*.py")), ids=lambda path: path.stem)
def test_every_equation_of_a_lesson_is_listed(source: Path) -> None:
    lesson, text = source.stem[:2], source.read_text(encoding="utf-8")
    given = set(re.findall(rf"\\qquad\s+\({NUMBER}\)", text))
    assert {number for home, number in listed() if home == lesson} == given


@pytest.mark.parametrize("source", sorted(SOURCES.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_lesson_cites_is_listed(source: Path) -> None:
    text = re.sub(r"\n# ", " ", source.read_text(encoding="utf-8"))
    numbers = re.findall(rf"[Ee]quations? \(?{NUMBER}\)?", text)
    numbers += re.findall(rf"(?:by|form|sum|polynomial|Write) \({NUMBER}\)", text)
    known = {number for home, number in listed() if "." in number or home == source.stem[:2]}
    assert set(numbers) <= known


def guide() -> str:
    return (NOTEBOOKS / "INSTRUCTOR.md").read_text(encoding="utf-8")


def test_every_exercise_has_wrong_answers_in_the_guide() -> None:
    rows = re.findall(r"^\| (\d+\.\d+) \|", guide(), re.MULTILINE)
    assert sorted(rows) == sorted(exercise.id for exercise in every())


@pytest.mark.parametrize(("heading", "total"), [("90 minutes", 90), ("3 hours", 180)])
def test_plans_add_up_and_know_the_lessons_minutes(heading: str, total: int) -> None:
    plan = guide().partition(f"\n## {heading}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d\d|break) \| (\d+)(?: of (\d+))? \|", plan, re.MULTILINE)
    assert sum(int(minutes) for _, minutes, _ in rows) == total
    overview = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    for lesson, _, whole in rows:
        assert lesson == "break" or re.search(rf"\| {lesson} \| \[.*\) \| {whole} \|", overview)


def test_exercises_that_a_plan_names_exist() -> None:
    named = set(re.findall(r"\b(\d\.\d)\b(?! %| MB)", guide().partition("## Common")[0]))
    assert named <= {exercise.id for exercise in every()}


def test_sections_that_a_plan_names_exist() -> None:
    pages = [prose(path) for path in NOTEBOOKS.glob("*.ipynb")]
    headings = set(re.findall(r"^## (.+)$", "\n".join(pages), re.MULTILINE))
    plans = guide().partition("\n## 90 minutes")[2].partition("\n## Common")[0]
    named = set(re.findall(r'"([A-Z][^"]+)"', plans))
    assert named and named <= headings
