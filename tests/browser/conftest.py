"""One JupyterLab for these tests, and a page for each that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser.server import Server, new_page, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def lab(server: Server) -> Iterator[Server]:
    yield server
    server.end_kernels()


@pytest.fixture
def page(lab: Server) -> Iterator[Any]:
    with new_page() as page:
        yield page
