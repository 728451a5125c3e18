"""Lesson 02's panels as a learner meets them: in JupyterLab, clicked on and walked over by keys."""

from __future__ import annotations

from typing import Any

from test_live import (
    CLICK_UNTIL,
    ERRORS,
    RUN_CELL,
    open_notebook,
    press_right,
    shoot,
    status_is,
    write_notebook,
)

CELLS = [
    "from pipemare_edu.panels import VersionLadder\nladder = VersionLadder()\nladder",
    "from pipemare_edu.panels import MeasuredStaleness\n"
    "measured = MeasuredStaleness(steps=100000)\nmeasured",
]
PLOT = ".pipemare-figure .js-plotly-plot"
# How many bars are outlined as chosen, in the first figure.
LIT = f"""() => document.querySelector('{PLOT}').data.filter(t => t.type === 'bar')
  .flatMap(t => t.marker.line.color).filter(c => c === '#CC79A7').length"""
LABEL = f"() => document.querySelector('{PLOT}').getAttribute('aria-label')"
AXIS = f"() => document.querySelector('{PLOT}').layout.xaxis.title.text"
# The middle of a bar on the page: [x, y] of the operation with this id.
MIDDLE = f"""id => {{
  const plot = document.querySelector('{PLOT}');
  const trace = plot.data.findIndex(t => (t.ids ?? []).includes(id));
  const n = plot.data[trace].ids.indexOf(id);
  const all = [...plot.querySelectorAll('.barlayer .trace.bars')];
  const box = all[trace].querySelectorAll('.point')[n].getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}}"""
TRACES = f"() => [...document.querySelectorAll('{PLOT}')].at(-1).data.map(t => t.name)"
ROWS = f"() => [...document.querySelectorAll('{PLOT}')].at(-1).calcdata[0].length"


def open_lesson(lab: Any, page: Any) -> None:
    write_notebook(lab, "lesson02.ipynb", CELLS)
    open_notebook(lab, page, "lesson02.ipynb")


def test_version_ladder(lab, page, tmp_path):
    open_lesson(lab, page)
    page.evaluate(RUN_CELL, 0)
    page.wait_for_selector(PLOT, timeout=60_000)
    assert page.evaluate(LIT) == 0

    # A click on a forward: itself, its backward, and seven updates.
    x, y = page.evaluate(MIDDLE, "0 F8")
    page.mouse.click(x, y)
    page.wait_for_function(f"() => ({LIT})() === 9")
    page.wait_for_function(status_is("Stage 1, forward of microbatch 8: 7 updates, 1 to 7"))
    assert "so τ = 7" in page.evaluate(LABEL)
    shoot(page, tmp_path, "ladder")

    # The keys: the chart has the focus now, and the notebook's own shortcuts leave it alone.
    page.keyboard.press("ArrowDown")
    page.wait_for_function(status_is("Stage 2, forward of microbatch"))
    page.keyboard.press("ArrowRight")
    page.wait_for_function(status_is("Stage 2, backward of microbatch"))
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(status_is("Stage 2, forward of microbatch"))
    page.wait_for_function("() => document.querySelector('.pipemare-goal').innerText.includes('✔')")
    page.keyboard.press("Escape")
    page.wait_for_function(f"() => ({LIT})() === 0")
    assert page.evaluate("() => document.activeElement.getAttribute('role')") == "application"

    # A slider by keyboard: the ladder follows on paper, and Run stamps it.
    press_right(page, "stages")
    page.wait_for_function(f"() => ({LABEL})().includes('those of stage 5 up to 1')")
    assert "counted from the lists" in page.evaluate(AXIS)
    page.evaluate(CLICK_UNTIL, ["Run", status_is("Done")])
    page.wait_for_function(f"() => ({AXIS})().includes('stamped by a real run')")
    assert page.evaluate(ERRORS) == [] and page.problems == []


def test_the_ladder_is_reached_by_tab_alone(lab, page):
    open_lesson(lab, page)
    page.evaluate(RUN_CELL, 0)
    page.wait_for_selector(PLOT, timeout=60_000)
    page.locator(".jp-OutputArea button", has_text="Run").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.getAttribute('role')") == "application":
            break
    page.keyboard.press("End")
    page.wait_for_function(status_is("Stage 1, forward of microbatch 0"))
    page.keyboard.press("End")
    page.wait_for_function(status_is("Stage 1, update 11: makes version 12"))
    assert page.problems == []


def test_measured_staleness(lab, page, tmp_path):
    open_lesson(lab, page)
    page.evaluate(RUN_CELL, 1)
    page.wait_for_selector(PLOT, timeout=60_000)
    assert page.evaluate(TRACES) == ["implied by the schedule", "formula τ"]
    press_right(page, "stages")
    page.wait_for_function(f"() => ({ROWS})() === 5")
    page.evaluate(CLICK_UNTIL, ["Run", status_is("Running")])
    page.wait_for_timeout(300)
    page.evaluate(CLICK_UNTIL, ["Cancel", status_is("Cancelled")])
    page.wait_for_function(f"() => ({TRACES})().includes('measured')")
    shoot(page, tmp_path, "measured")
    press_right(page, "microbatches")
    page.wait_for_function(f"() => !({TRACES})().includes('measured')")
    assert page.evaluate(ERRORS) == [] and page.problems == []
