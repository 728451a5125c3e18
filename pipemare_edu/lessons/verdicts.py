"""A file of verdicts, for whoever runs a notebook from outside: one JSON object a line.

`check` appends to it only where VARIABLE names it, so a learner's kernel writes nothing.  A line is
complete when `check` returns, and stays if the kernel dies afterwards.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .exercise import Verdict

VARIABLE = "PIPEMARE_EDU_VERDICTS"


class Written(NamedTuple):
    """A verdict and when it was spoken (seconds since the epoch)."""

    id: str
    outcome: str
    detail: str
    when: float


def write(verdict: Verdict) -> None:
    """Append a verdict, if somebody outside wants to know."""
    if path := os.environ.get(VARIABLE):
        line = json.dumps(Written(verdict.id, verdict.outcome, verdict.detail, time.time()))
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def read(path: Path) -> dict[str, Written]:
    """The latest verdict on each exercise, by its id; none if there is no file.

    A line that is no verdict, such as one that a killed kernel left half-written, is passed over.
    """
    found = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            verdict = Written(*json.loads(line))
            found[str(verdict.id)] = verdict
    return found
