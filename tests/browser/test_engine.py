"""LiveTraining on two processes, in a browser: switched by keyboard, cancelled, restarted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from test_live import (
    CLICK_UNTIL,
    ERRORS,
    RUN_CELL,
    more_curves_than,
    open_notebook,
    shoot,
    status_is,
    write_notebook,
)

CELLS = [
    "from pipemare_edu.panels import LiveTraining\n"
    'LiveTraining(stages=4, steps=3000, method="pipemare-t1t2")'
]
RESTART = """async () => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  await kernel.restart();
}"""


def workers(root: int) -> int:
    """Processes forked from a fork server below process `root` (Linux)."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found[int(pid)] = int(fields[1]), b"forkserver" in command
    return sum(
        server and found.get(up, (0, False))[1] and root in ancestors(found, up)
        for up, server in found.values()
    )


def ancestors(found: dict[int, tuple[int, bool]], pid: int) -> set[int]:
    out = set()
    while pid in found:
        out.add(pid)
        pid = found[pid][0]
    return out


def until(condition: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(condition())


def test_the_engine_switch(lab, page, tmp_path):
    root = lab.process.pid
    write_notebook(lab, "engine.ipynb", CELLS)
    open_notebook(lab, page, "engine.ipynb")
    page.evaluate(RUN_CELL, 0)
    assert page.evaluate(ERRORS) == []
    page.wait_for_selector(".pipemare-figure .js-plotly-plot", timeout=60_000)
    menu = page.locator(".widget-inline-hbox:has(label:text-is('engine')) select").first
    menu.focus()
    menu.press("2")  # its first letter chooses "2 processes"
    assert menu.evaluate("m => m.selectedIndex") == 1

    page.evaluate(CLICK_UNTIL, ["Run", more_curves_than(0)])
    assert until(lambda: workers(root) == 2, 10)
    page.evaluate(CLICK_UNTIL, ["Cancel", status_is("Cancelled")])
    assert until(lambda: workers(root) == 0, 5)
    chart = page.locator(".pipemare-figure .gtitle").nth(1)
    assert until(lambda: "in 2 workers" in chart.text_content(), 10)
    shoot(page, tmp_path, "engine")
    assert page.evaluate(ERRORS) == []

    page.evaluate(CLICK_UNTIL, ["Run", status_is("Training")])
    assert until(lambda: workers(root) == 2, 10)
    page.evaluate(RESTART)
    assert until(lambda: workers(root) == 0, 5)
