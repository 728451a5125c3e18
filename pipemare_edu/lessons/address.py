"""Where the course is published, and the links that follow from it.

    python -m pipemare_edu.lessons.address README.md

REPOSITORY is the one place for the address: whoever moves or forks the course changes it here, and
the command rewrites every link to it in the files that are named.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

REPOSITORY = "pipemare-edu/pipemare_edu"  # owner/name on GitHub
SITE = f"https://github.com/{REPOSITORY}"

BINDER = "https://mybinder.org"
LOGO = f"{BINDER}/badge_logo.svg"
COURSE, DEMO = "notebooks/00_find_your_way.ipynb", "notebooks/demo_recipe_board.ipynb"
SITES = r"(?:github\.com|mybinder\.org/v2/gh|colab\.research\.google\.com/github)/"
LINK = re.compile(rf"({SITES})[\w.-]+/pipemare[_-]edu\b")


def binder(path: str) -> str:
    """The address that starts a machine on Binder and opens `path` of its Jupyter server."""
    return f"{BINDER}/v2/gh/{REPOSITORY}/HEAD?urlpath={quote(path)}"


def badges() -> tuple[str, str]:
    """For a Markdown page: the course in JupyterLab, and the board of lesson 06 without code."""
    places = {
        "Open the course in JupyterLab on Binder": f"lab/tree/{COURSE}",
        "Open the recipe board alone on Binder": f"voila/render/{DEMO}",
    }
    lab, board = (f"[![{what}]({LOGO})]({binder(path)})" for what, path in places.items())
    return lab, board


def moved(text: str) -> str:
    """`text` with every link to the repository, whoever's it was, at REPOSITORY."""
    return LINK.sub(lambda found: found[1] + REPOSITORY, text)


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the links in files."""
    for name in sys.argv[1:] if argv is None else argv:
        file = Path(name)
        file.write_text(moved(file.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
