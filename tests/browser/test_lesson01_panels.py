"""The panels of lesson 01 in JupyterLab, in a browser, with the keyboard."""

from __future__ import annotations

from test_live import (
    CLICK_UNTIL,
    ERRORS,
    RUN_CELL,
    open_notebook,
    press_right,
    shoot,
    write_notebook,
)

CELLS = [
    "from pipemare_edu import panels\nlab = panels.ScheduleLab(steps=100000)\nlab",
    "debugger = panels.StepDebugger(['F0 F1 B0 B1 U0', 'F0 F1 B1 B0 U0'])\ndebugger",
]
TITLES = """() => [...document.querySelectorAll('.pipemare-figure .js-plotly-plot')]
  .map(plot => plot.layout?.title?.text ?? '')"""
STATUS = "() => [...document.querySelectorAll('.pipemare-status')].map(s => s.innerText.trim())"


def starts(what: str, n: int, text: str) -> str:
    """A condition: the n-th title or status of the page starts with `text`."""
    return f"() => (({what})()[{n}] ?? '').startsWith({text!r})"


def has(what: str, n: int, text: str) -> str:
    return f"() => (({what})()[{n}] ?? '').includes({text!r})"


def test_the_panels_of_lesson_01(lab, page, tmp_path):
    write_notebook(lab, "lesson01.ipynb", CELLS)
    open_notebook(lab, page, "lesson01.ipynb")
    page.evaluate(RUN_CELL, 0)
    page.wait_for_function(has(TITLES, 0, "3/11"), timeout=60_000)

    press_right(page, "microbatches")  # the charts follow
    page.wait_for_function(has(TITLES, 0, "3/12 = 25.0 %"), timeout=10_000)
    page.wait_for_function(has(STATUS, 0, "N=9: idle 25.0 %"), timeout=10_000)

    page.evaluate(CLICK_UNTIL, ["Measure", starts(TITLES, 1, "GPipe, P=4, N=9, measured")])
    page.evaluate(CLICK_UNTIL, ["Cancel", starts(STATUS, 0, "Cancelled: ")])
    shoot(page, tmp_path, "lab")

    page.evaluate(RUN_CELL, 1)
    page.wait_for_function(starts(TITLES, 3, "Nothing has run yet"), timeout=30_000)
    press_right(page, "event")
    page.wait_for_function(starts(TITLES, 3, "Event 1 of "), timeout=10_000)
    forward = page.locator("button:has-text('Forward')")
    forward.focus()
    forward.press("Enter")
    page.wait_for_function(starts(TITLES, 3, "Event 2 of "), timeout=10_000)
    page.evaluate(CLICK_UNTIL, ["Back", starts(TITLES, 3, "Event 1 of ")])
    page.evaluate(CLICK_UNTIL, ["Play", starts(TITLES, 3, "Deadlock after")])
    page.wait_for_function(starts(TITLES, 4, "Waiting for ever: stage 1 at B0"), timeout=10_000)
    page.locator(".pipemare-figure").nth(3).scroll_into_view_if_needed()
    shoot(page, tmp_path, "debugger")
    assert page.evaluate(ERRORS) == [] and page.problems == []
