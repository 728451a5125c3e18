"""What a wheel and an sdist hold, without making one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

import pipemare_edu
from pipemare_edu.lessons.source import lessons

ROOT = Path(__file__).resolve().parent.parent
BUILDERS = {"wheel": WheelBuilder, "sdist": SdistBuilder}
NOTEBOOKS = {"wheel": "pipemare_edu/notebooks", "sdist": "notebooks"}


def files(kind: str, root: Path = ROOT) -> set[str]:
    """The files that a distribution would hold, by their paths in it."""
    builder = BUILDERS[kind](str(root))
    return {
        Path(file.distribution_path).as_posix()
        for file in builder.recurse_included_files()
        if file.distribution_path
    }


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_lesson_travels_with_its_source_its_notebooks_and_its_cache(kind: str) -> None:
    there, notebooks = files(kind), NOTEBOOKS[kind]
    wanted = {f"pipemare_edu/lessons/sources/{lesson}.py" for lesson in lessons()}
    for folder in (notebooks, f"{notebooks}/solutions"):
        wanted |= {f"{folder}/{lesson}.ipynb" for lesson in lessons()}
    data = ROOT / "pipemare_edu" / "lessons" / "data"
    wanted |= {path.relative_to(ROOT).as_posix() for path in data.iterdir()}
    assert lessons() and len(list(data.iterdir())) > 0
    assert wanted <= there, f"left out: {sorted(wanted - there)}"


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_file_of_the_package_travels(kind: str) -> None:
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "pipemare_edu").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "pipemare_edu/py.typed" in package
    assert package <= files(kind)


def test_the_wheel_holds_the_package_and_nothing_beside_it() -> None:
    there = files("wheel")
    assert {path.partition("/")[0] for path in there} == {"pipemare_edu"}
    assert not [path for path in there if "conftest" in path or "checkpoints" in path]


def test_an_editors_leftovers_stay_at_home(tmp_path: Path) -> None:
    for name in ("pyproject.toml", ".gitignore", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for path in ("pipemare_edu/__init__.py", "notebooks/01.ipynb"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).touch()
    left = tmp_path / "notebooks" / ".ipynb_checkpoints" / "01-checkpoint.ipynb"
    left.parent.mkdir()
    left.touch()
    there = files("wheel", tmp_path)
    assert there == {"pipemare_edu/__init__.py", "pipemare_edu/notebooks/01.ipynb"}


def test_the_sdist_makes_the_wheel() -> None:
    there = files("sdist")
    assert {"pyproject.toml", "README.md", "LICENSE", ".gitignore"} <= there
    assert {path.partition("/")[0] for path in there} >= {"pipemare_edu", "notebooks", "tests"}


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert latest is not None
    assert {project["version"], str(citation["version"]), latest[1]} == {pipemare_edu.__version__}
    assert citation["license"] == project["license"]


def test_the_citation_has_what_its_format_asks_for() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    [paper] = citation["references"]
    assert {"type", "title", "authors"} <= set(paper)
    assert [author["family-names"] for author in paper["authors"]] == [
        "Yang", "Zhang", "Li", "Ré", "Aberger", "De Sa",
    ]  # fmt: skip
