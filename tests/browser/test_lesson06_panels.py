"""Lesson 06's board as a learner meets it: in JupyterLab, by keyboard and by mouse."""

from __future__ import annotations

from test_live import (
    CLICK_UNTIL,
    ERRORS,
    RUN_CELL,
    open_notebook,
    shoot,
    status_is,
    write_notebook,
)

CELLS = ["from pipemare_edu.panels import RecipeBoard\nboard = RecipeBoard(stages=4)\nboard"]
PLOT = ".pipemare-figure .js-plotly-plot"
TITLE = f"() => document.querySelector('{PLOT}').layout.title.text"
# The id of the framed cell, and the middle of a cell on the page.
FRAMED = f"""() => {{
  const cells = document.querySelector('{PLOT}').data[0];
  return cells.ids.filter((_, n) => cells.marker.line.width[n] > 0).join();
}}"""
MIDDLE = f"""id => {{
  const plot = document.querySelector('{PLOT}');
  const n = plot.data[0].ids.indexOf(id);
  const bar = plot.querySelector('.barlayer .trace.bars').querySelectorAll('.point')[n];
  const box = bar.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}}"""
LINES = f"() => [...document.querySelectorAll('{PLOT}')].at(-1).data.map(t => t.name)"
POINTS = f"() => [...document.querySelectorAll('{PLOT}')].at(-1).data.at(-1).x.length"


def framed(id: str) -> str:
    return f"() => ({FRAMED})() === {id!r}"


def test_the_recipe_board(lab, page, tmp_path):
    write_notebook(lab, "lesson06.ipynb", CELLS)
    open_notebook(lab, page, "lesson06.ipynb")
    page.evaluate(RUN_CELL, 0)
    page.wait_for_selector(PLOT, timeout=60_000)
    page.wait_for_function(framed("3 1"), timeout=20_000)  # T2 at 0.2

    # A check box by keyboard: T1 joins T2.
    box = page.locator(".widget-checkbox:has-text('T1') input").first
    box.focus()
    box.press("Space")
    page.wait_for_function(framed("5 1"))
    page.wait_for_function(status_is("T1+T2, P=4, rate 0.2: 5 seeds end between"))

    # A click on a cell, and arrow keys from there.
    x, y = page.evaluate(MIDDLE, "1 3")
    page.mouse.click(x, y)
    page.wait_for_function(framed("1 3"))
    assert not box.is_checked()
    page.wait_for_function(status_is("no fix, P=4, rate 0.8: 5 of 5 seeds diverged"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.wait_for_function(framed("3 3"))

    # One more run, drawn over the shipped ones, and cancelled.
    page.evaluate(CLICK_UNTIL, ["Run", status_is("Training T2, P=4, rate 0.8, seed 0")])
    page.wait_for_function(f"() => ({LINES})().includes('live, seed 0') && ({POINTS})() > 1")
    page.evaluate(CLICK_UNTIL, ["Cancel", status_is("Cancelled after step")])
    page.evaluate(CLICK_UNTIL, ["Run", status_is("Done: T2, P=4, rate 0.8, seed 0 ended at")])
    page.wait_for_function(f"() => ({POINTS})() === 16")
    assert "they agree" in page.locator(".pipemare-status").first.inner_text()
    shoot(page, tmp_path, "board")
    assert page.evaluate(ERRORS) == [] and page.problems == []
