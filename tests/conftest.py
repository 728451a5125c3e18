"""Which tests mostly wait: for workers, kernels, browsers or limits in seconds.

`make test` runs them beside their like, two files at a time, and so the others, which compute.
trainer/test_failures.py counts shared memory: what has pools of processes is among the others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
WAITING = {
    HERE / name
    for name in (
        "browser",
        "lessons/test_grade.py",
        "models/test_timed.py",
        "test_bench.py",
        "test_lab.py",
        "trainer/test_failures.py",
        "trainer/test_torchrun.py",
        "trainer/test_workers.py",
    )
}


FIRST = "test_wires.py"  # the longest file, which would else be the last one running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != FIRST)
    for item in items:
        if WAITING & {item.path, item.path.parent}:
            item.add_marker("waits")
