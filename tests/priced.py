"""A pytest plugin for notebooks under nbval: what each one takes, and an error where that is too
much.

    python -m pytest -p tests.priced --nbval-lax notebooks/*.ipynb

A notebook runs on one core, and its kernel and workers have 1 GiB together, as on Binder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pipemare_edu.lessons import cost
from pipemare_edu.lessons.build import children_seconds

SECONDS, MEAN_SECONDS = 90, 25
BYTES, WITH_WORKERS = 700_000_000, 800_000_000  # two workers and their server stand beside a kernel


class Watched:
    """The notebook whose cells run now."""

    book: Any = None

    def begin(self, book: Any) -> None:
        self.book, self.before, self.watch = book, children_seconds(), cost.Watch()
        self.watch.__enter__()

    def end(self) -> cost.Cost:
        self.watch.__exit__()
        spent = children_seconds() - self.before
        return cost.Cost(spent, self.watch.peak, self.watch.processes)


watched = Watched()
MEASURED = os.path.exists("/proc/self/smaps_rollup")  # memory, on Linux alone
rows: dict[str, list[Any]] = {}  # notebook: its cost, in the process that hears of all


def pytest_sessionstart() -> None:
    """A core for each process that runs tests."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker[2:]) % len(cores)]})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    if MEASURED and item.parent is not watched.book:
        watched.begin(item.parent)  # nbval starts the kernel before the first cell ...
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    ends = nextitem is None or nextitem.parent is not item.parent
    if MEASURED and ends:  # ... and ends it after the last
        found = watched.end()
        item.user_properties.append((item.path.stem, list(found)))
        assert found.seconds < SECONDS
        assert found.peak < (BYTES if found.processes == 1 else WITH_WORKERS)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        rows.update(p for p in report.user_properties if isinstance(p[1], list))


def mean() -> float:
    return sum(seconds for seconds, *_ in rows.values()) / max(1, len(rows))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if mean() >= MEAN_SECONDS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for book, found in sorted(rows.items()):
        terminalreporter.line(cost.row(book, cost.Cost(*found)))
    if mean() >= MEAN_SECONDS:
        terminalreporter.line(f"A notebook takes {mean():.0f} s on average, over {MEAN_SECONDS} s")
