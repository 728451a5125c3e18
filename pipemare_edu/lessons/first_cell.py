"""The first code cell of every notebook: it installs the course where a notebook comes alone.

Only its builder knows the cell; the sources of the lessons do not have it.
"""

from __future__ import annotations

from .address import SITE

TEXT = """\
# On Colab, which has this page alone, it installs the course. Elsewhere it does nothing.
import sys

if "google.colab" in sys.modules:
    print("Installing the course for this session, about a minute.")
    %pip install --quiet "pipemare-edu @ git+{repository}"
"""


def first_cell() -> str:
    """The source of the cell."""
    return TEXT.format(repository=SITE).rstrip()
