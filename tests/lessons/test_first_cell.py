"""The cell that installs the course where a notebook comes alone, in kernels made of fakes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from pipemare_edu.lessons.address import SITE
from pipemare_edu.lessons.first_cell import first_cell

ROOT = Path(__file__).parents[2]


def magics_of_the_cell() -> list[tuple[str, str]]:
    """Run the cell as IPython would; returns the magics that it called."""
    called: list[tuple[str, str]] = []
    shell = SimpleNamespace(run_line_magic=lambda *magic: called.append(magic))
    code = TransformerManager().transform_cell(first_cell())
    exec(compile(code, "cell", "exec"), {"get_ipython": lambda: shell})
    return called


def test_it_does_and_says_nothing_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert magics_of_the_cell() == []
    assert capsys.readouterr().out == ""


def test_on_colab_it_installs_the_course_and_says_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    ((name, line),) = magics_of_the_cell()
    assert name == "pip"
    assert re.fullmatch(r'install --quiet "pipemare-edu @ git\+https://\S+/pipemare_edu"', line)
    assert capsys.readouterr().out.count(".") == 1


def test_pip_understands_what_it_is_given() -> None:
    from packaging.requirements import Requirement

    wanted = re.search(r'"(.+ @ .+)"', first_cell())
    assert wanted is not None
    assert Requirement(wanted[1]).url == f"git+{SITE}"
