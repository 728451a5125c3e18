"""LiveTraining as a learner meets it: in JupyterLab, in a browser, with keyboard and mouse."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

CELLS = [
    "from pipemare_edu.panels import LiveTraining\n"
    'panel = LiveTraining(stages=4, steps=20000, method="pipemare-t1t2")\n'
    "panel",
    'print("answer", 6 * 7)',
    "panel",
]
OPENED = "() => window.jupyterapp?.shell.currentWidget?.context"
READY = """async () => {
  const widget = window.jupyterapp.shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
}"""
RUN_CELL = """async (n) => {
  const nb = window.jupyterapp.shell.currentWidget.content;
  nb.activeCellIndex = n; nb.deselectAll();
  await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter(c => c.outputArea).flatMap(c => c.outputArea.model.toJSON())
  .filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue)"""
# How many curves the first figure has drawn, and how many points they have together.
POINTS = """() => {
  const plot = document.querySelector('.pipemare-figure .js-plotly-plot');
  const lines = (plot?.calcdata ?? []).filter(
    // A curve without points yet counts as one to Plotly, and so does what holds an empty axis.
    c => c[0].trace.x.length && c[0].trace.xaxis !== 'x2' && c[0].trace.hoverinfo !== 'skip');
  return [lines.length, lines.reduce((n, c) => n + c.length, 0)];
}"""
# Click a button as soon as it can be, and wait until a condition holds: milliseconds.
CLICK_UNTIL = """async ([name, condition]) => {
  const button = [...document.querySelectorAll('button')].find(b => b.innerText.trim() === name);
  const until = async (met, start) => {
    while (!met()) {
      if (performance.now() - start > 20000) throw new Error('20 s for ' + name);
      await new Promise(r => setTimeout(r, 4));
    }
    return performance.now() - start;
  };
  await until(() => !button.disabled, performance.now());
  button.click();
  return await until(new Function('return ' + condition)(), performance.now());
}"""
CAN_RUN = """() => [...document.querySelectorAll('button')]
  .some(b => b.innerText.trim() === 'Run' && !b.disabled)"""
ANSWER = """async () => {
  const start = performance.now();
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  await kernel.requestExecute({code: 'print(6 * 7)'}).done;
  return performance.now() - start;
}"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"


def status_is(start: str) -> str:
    return (
        "() => document.querySelector('.pipemare-status')?.innerText.trim()"
        f".startsWith({json.dumps(start)})"
    )


def more_curves_than(n: int) -> str:
    return f"() => ({POINTS})()[0] > {n}"


def write_notebook(lab: Any, name: str, cells: list[str]) -> None:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells], metadata=kernel)
    nbformat.write(notebook, lab.folder / name)


def open_notebook(lab: Any, page: Any, name: str = "live.ipynb") -> None:
    page.goto(lab.url(name))
    page.wait_for_selector(".jp-NotebookPanel .jp-Notebook", timeout=60_000)
    page.wait_for_function(OPENED, timeout=60_000)
    page.evaluate(READY)


def run_and_cancel(page: Any, curves: int) -> dict[str, float]:
    """One run: clicked, watched while other code is answered, cancelled.  Milliseconds."""
    first = page.evaluate(CLICK_UNTIL, ["Run", more_curves_than(curves)])
    before = page.evaluate(POINTS)[1]
    answered = [page.evaluate(ANSWER) for _ in range(5)]
    page.evaluate(RUN_CELL, 1)
    page.wait_for_function(f"([n]) => ({POINTS})()[1] > n", arg=[before], timeout=20_000)
    cancelled = page.evaluate(CLICK_UNTIL, ["Cancel", status_is("Cancelled")])
    return {"first point": first, "answer": median(answered), "cancelled": cancelled}


def drawn(page: Any) -> list[int]:
    """The points, once they are the same in two looks: a page draws after it was told."""
    before = page.evaluate(POINTS)
    for _ in range(20):
        page.wait_for_timeout(250)
        now = page.evaluate(POINTS)
        if now == before:
            break
        before = now
    return before


def press_right(page: Any, label: str) -> None:
    """Move a slider with the keyboard."""
    slider = page.locator(f".widget-inline-hbox:has(label:text-is('{label}')) .noUi-handle").first
    slider.focus()
    slider.press("ArrowRight")


def shoot(page: Any, folder: Path, name: str = "live") -> None:
    for theme in ("Light", "Dark"):
        page.evaluate(THEME, f"JupyterLab {theme}")
        light = str(theme == "Light").lower()
        page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        page.wait_for_timeout(700)  # colours fade over
        page.screenshot(path=str(folder / f"{name}-{theme.lower()}.png"))


def test_live_training(lab, page, tmp_path, record_property):
    write_notebook(lab, "live.ipynb", CELLS)
    open_notebook(lab, page)
    page.evaluate(RUN_CELL, 0)
    assert page.evaluate(ERRORS) == []
    page.wait_for_selector(".pipemare-figure .js-plotly-plot", timeout=60_000)

    times = []
    for n in range(3):
        press_right(page, "rate")
        times.append(run_and_cancel(page, curves=n))
    medians = {name: median(t[name] for t in times) for name in times[0]}
    record_property("medians in ms", json.dumps({k: round(v) for k, v in medians.items()}))
    assert medians["first point"] < 3 * 500
    assert medians["answer"] < 3 * 300
    assert medians["cancelled"] < 3 * 1000

    page.wait_for_function(CAN_RUN, timeout=20_000)
    seen = drawn(page)
    page.wait_for_timeout(500)
    assert page.evaluate(POINTS) == seen, "the curve grew after the run was cancelled"
    page.evaluate(RUN_CELL, 2)
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length === 6")
    shoot(page, tmp_path)

    page.evaluate(SAVE)
    open_notebook(lab, page)
    more = f"n => ({POINTS})()[1] >= n"
    page.wait_for_function(more, arg=seen[1], timeout=30_000)
    assert drawn(page) == seen, "a reload shows something else than the last state"
    page.wait_for_function(status_is("Cancelled"))
    label = page.locator(".pipemare-figure [role=figure]").first.get_attribute("aria-label")
    assert "cancelled after" in label
    assert page.get_by_text("answer 42").count() == 1
    assert page.evaluate(ERRORS) == [] and page.problems == []
