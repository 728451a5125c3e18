"""Lesson 03's panels in JupyterLab: a slider moved by keyboard, runs watched, one cancelled."""

from __future__ import annotations

from test_live import ERRORS, RUN_CELL, open_notebook, press_right, shoot, write_notebook

CELLS = [
    "from pipemare_edu.panels import *\npanel = Roots(rate=0.1, tau=10)\npanel",
    'network = NetworkThreshold("deep", guess=0.01)\nnetwork',
]
# The diamond on the map, the largest modulus in the plane, and the swing of the line.
SEEN = """() => {
  const plot = document.querySelector('.pipemare-figure .js-plotly-plot');
  if (!plot?.calcdata) return null;
  const of = axis => plot.calcdata.filter(c => c[0].trace.xaxis === axis).flat();
  const here = plot.calcdata.flat().find(p => p.trace?.marker?.symbol === 'diamond');
  return {
    rate: here.x,
    radius: Math.max(...of('x2').filter(p => p.trace?.mode !== 'lines' && p.x !== undefined)
      .map(p => Math.hypot(p.x, p.y))),
    swing: Math.max(...of('x3').slice(60).map(p => Math.abs(p.y)).filter(Number.isFinite)),
    dots: of('x3').length,
  };
}"""
TITLE = "(n) => document.querySelectorAll('.pipemare-figure .gtitle')[n]?.textContent ?? ''"
STATUS = "(n) => document.querySelectorAll('.pipemare-status')[n]?.innerText.trim() ?? ''"


def test_roots_follow_the_keyboard_and_runs_can_be_cancelled(lab, page, tmp_path):
    write_notebook(lab, "stability.ipynb", CELLS)
    open_notebook(lab, page, "stability.ipynb")
    page.evaluate(RUN_CELL, 0)
    page.wait_for_selector(".pipemare-figure .js-plotly-plot", timeout=60_000)
    page.wait_for_function(f"() => ({SEEN})()", timeout=30_000)
    before = page.evaluate(SEEN)
    assert page.evaluate(TITLE, 0).startswith("Stable")

    for _ in range(20):  # from 0.1 to 0.16: past the edge at 0.149
        press_right(page, "rate")
    page.wait_for_function(
        f"() => ({SEEN})().radius > 1 && ({TITLE})(0).startsWith('Unstable')", timeout=20_000
    )
    after = page.evaluate(SEEN)
    for what in ("rate", "radius", "swing"):  # the map, the roots and the iterate move together
        assert after[what] > before[what], what
    page.locator("button", has_text="Run").first.click()
    page.wait_for_function(f"() => ({STATUS})(0).startsWith('120 real steps')", timeout=20_000)
    page.wait_for_function(f"() => ({SEEN})().dots > {after['dots']} + 100", timeout=20_000)

    page.evaluate(RUN_CELL, 1)
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length === 3")
    page.locator("button", has_text="Run").nth(1).click()
    page.wait_for_function(f"() => ({STATUS})(1).startsWith('At 1 times')", timeout=60_000)
    page.locator("button", has_text="Cancel").nth(1).click()
    page.wait_for_function(f"() => ({STATUS})(1).startsWith('Cancelled')", timeout=20_000)
    marked = "() => [...document.querySelectorAll('.legendtext')].map(e => e.textContent)"
    names = page.evaluate(marked)
    assert "your guess" in names and any(n.startswith("run just now") for n in names)
    shoot(page, tmp_path, "stability")
    assert page.evaluate(ERRORS) == [] and page.problems == []
