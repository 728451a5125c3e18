"""What running a notebook costs: time on one core, and memory, in the ci profile."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import nbformat
import pytest

from pipemare_edu.lessons import build
from pipemare_edu.lessons.source import lessons

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="memory is measured on Linux")

SECONDS, MEAN_SECONDS, MEGABYTES = 90, 25, 700
# Not ru_maxrss, which a process inherits from whoever started it.
PEAK = f"print([int(x.split()[1]) // 1024 for x in open('{STATUS}') if x.startswith('VmHWM')][0])"


@pytest.fixture(scope="module")
def costs() -> dict[str, tuple[float, float, int]]:
    """For each lesson, unsolved: processor seconds, seconds, and peak megabytes of its kernel."""
    found = {}
    for lesson in lessons():
        book = nbformat.read(build.path_of(lesson, solved=False), as_version=4)
        book.cells.append(nbformat.v4.new_code_cell(PEAK))
        start = perf_counter()
        busy = build.execute(book, strict=False)
        peak = int(book.cells[-1].outputs[0].text)
        found[lesson] = (busy, perf_counter() - start, peak)
    return found


def test_every_lesson_is_cheap(
    costs: dict[str, tuple[float, float, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        for lesson, (busy, seconds, peak) in costs.items():
            print(f"\n{lesson}: {busy:.1f} s of one core ({seconds:.1f} s), {peak} MB", end="")
    for lesson, (busy, _, peak) in costs.items():
        assert busy < SECONDS, lesson
        assert peak < MEGABYTES, lesson


def test_the_mean_lesson_is_short(costs: dict[str, tuple[float, float, int]]) -> None:
    assert sum(busy for busy, _, _ in costs.values()) / len(costs) < MEAN_SECONDS
