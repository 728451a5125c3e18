"""Every test starts as a learner's fresh kernel does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipemare_edu.lessons.progress import PROGRESS


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PIPEMARE_EDU_STRICT", raising=False)
    PROGRESS.forget()
    yield
    PROGRESS.forget()


@pytest.fixture
def sanitize() -> list[tuple[str, str]]:
    """The (pattern, replacement) pairs with which outputs of notebooks are compared."""
    text = (Path(__file__).parents[1] / "notebooks" / "sanitize.cfg").read_text()
    return re.findall("^regex: (.*)$\n^replace: (.*)$", text, flags=re.MULTILINE)
