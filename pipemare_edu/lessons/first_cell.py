"""The first code cell of every notebook: it installs the course where a notebook comes alone.

Only its builder knows the cell; the sources of the lessons do not have it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
TEXT = """\
# On Colab, which has this page alone, it installs the course. Elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    print("Installing the course for this session, about a minute.")
    %pip install --quiet "pipemare-edu @ git+{repository}"
"""


def repository() -> str:
    """The address of the project's repository.  It stands in pyproject.toml, and only there."""
    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["urls"]["Repository"]


@cache
def first_cell() -> str:
    """The source of the cell."""
    return TEXT.format(repository=repository()).rstrip()
