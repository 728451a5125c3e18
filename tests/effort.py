"""How much a call does, the same on every machine: its calls of functions, counted.

A test of the clock fails on a slow machine, and passes on a fast one what is slow elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

QUICK = 250_000  # what drawing makes in 50 ms: most are Plotly's questions about a value's type


def calls(action: Callable[[], Any]) -> int:
    """Functions called by `action`, Python's and C's."""
    count = 0

    def hear(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
