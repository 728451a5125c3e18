"""A JupyterLab of its own for each of these tests, and a page that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.server import Server, new_page, serving


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def page(lab: Server) -> Iterator[Any]:
    with new_page() as page:
        yield page
