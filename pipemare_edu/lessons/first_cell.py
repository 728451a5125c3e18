"""The first code cell of every notebook: it installs the course where a notebook comes alone.

Only its builder knows the cell; the sources of the lessons do not have it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

CITATION = Path(__file__).resolve().parents[2] / "CITATION.cff"
TEXT = """\
# On Colab, which has this page alone, it installs the course. Elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    print("Installing the course for this session, about a minute.")
    %pip install --quiet "pipemare-edu @ git+{repository}"
"""


def repository() -> str:
    """The address of the project's repository, for which CITATION.cff is the one place."""
    return yaml.safe_load(CITATION.read_text(encoding="utf-8"))["repository-code"]


@cache
def first_cell() -> str:
    """The source of the cell."""
    return TEXT.format(repository=repository()).rstrip()
