"""nbval compares texts here.  Pictures hold measured times: their descriptions stand for them."""

from __future__ import annotations

import pytest

PICTURES = ("application/vnd.plotly.v1+json", "text/html")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for notebook in {item.parent for item in items}:
        if hasattr(notebook, "skip_compare"):
            notebook.skip_compare += PICTURES
