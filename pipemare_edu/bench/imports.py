"""What importing costs: the package beside torch, and the parts that do without it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

NAMES = "import pipemare_edu as pm; [getattr(pm, name) for name in pm.__all__]"
IMPORTS = {
    "Python alone": "",
    "torch": "import torch",
    "the package, all its names": NAMES,
    "a lesson's first cell": f"{NAMES}; from pipemare_edu import figures, lessons, panels, tasks",
    "schedules": "import pipemare_edu.plan.schedules",
    "clock": "import pipemare_edu.plan.clock",
    "theory": "import pipemare_edu.plan.theory",
    "all on paper": "from pipemare_edu.plan import schedules, clock, theory, scale, ledger",
    "the command": "import pipemare_edu.cli",
}


class Row(NamedTuple):
    """seconds: of the processor, the median; ratio: over importing torch, 0.0 where torch is not
    imported."""

    what: str
    seconds: float
    ratio: float


def cost(code: str) -> float:
    """Processor seconds of a new Python that runs `code`."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    ended = after.children_user + after.children_system
    return ended - before.children_user - before.children_system


def imports(rounds: int = 9) -> Iterator[Row]:
    """Measure everything in turn, a round after the other."""
    took = [{name: cost(code) for name, code in IMPORTS.items()} for _ in range(rounds)]
    torch = statistics.median(round["torch"] for round in took)
    for name, code in IMPORTS.items():
        seconds = statistics.median(round[name] for round in took)
        with_torch = "torch" in code or NAMES in code
        yield Row(name, seconds, seconds / torch if with_torch else 0.0)


def heading(rounds: int) -> str:
    """What the numbers are, and the names of the columns."""
    return (
        f"processor seconds of a new Python, medians of {rounds} rounds; beside importing torch\n"
        f"{'import':28}{'seconds':>8}{'ratio':>8}"
    )


def line(row: Row) -> str:
    """One row as text."""
    ratio = f"{row.ratio:.2f}x" if row.ratio else ""
    return f"{row.what:28}{row.seconds:>8.2f}{ratio:>8}".rstrip()
