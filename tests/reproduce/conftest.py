"""A small study that has run once, for tests to copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipemare_edu.reproduce.presets import choose
from pipemare_edu.reproduce.study import Study

STEPS = 8


def _study(folder: Path, *seeds: int, task: str = "regression", steps: int | None = STEPS) -> Study:
    return Study(choose("quick", [task], seeds or (10, 11)), folder, steps)


@pytest.fixture(scope="session")
def study() -> Callable[..., Study]:
    """study(folder, *seeds, task=, steps=): a small study in a folder."""
    return _study


@pytest.fixture(scope="session")
def done(tmp_path_factory) -> Path:
    """The folder of a finished study: regression, seeds 10 and 11."""
    folder = tmp_path_factory.mktemp("done")
    for _ in _study(folder).run(jobs=1):
        pass
    return folder


@pytest.fixture
def copy(done, tmp_path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(done, tmp_path / "copy")
