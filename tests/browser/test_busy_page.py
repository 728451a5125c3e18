"""A page so busy that anywidget gives its models up: figures change all the same."""

from __future__ import annotations

from test_live import ERRORS, RUN_CELL, open_notebook, write_notebook

CELLS = [
    "from pipemare_edu.figures import placeholder\n"
    "from pipemare_edu.figures.fig import Fig\n"
    "fig = Fig(placeholder('first', 100))\n"
    "fig",
    "fig.show(placeholder('second', 100))",
]
# anywidget 0.11 waits two seconds for a model's code, and passes on no message to a model whose
# code came later.  A busy page takes that long; here the two seconds are over at once.
BUSY = """() => {
  const timeout = AbortSignal.timeout;
  AbortSignal.timeout = ms => timeout.call(AbortSignal, ms === 2000 ? 0 : ms);
}"""
GIVEN_UP = "[anywidget] Failed to initialize model."
SHOWN = """() => {
  const plot = document.querySelector('.pipemare-figure [role=figure]');
  return [plot?.querySelector('.gtitle')?.textContent, plot?.getAttribute('aria-label')];
}"""


def test_a_figure_changes_though_its_code_came_late(lab, page):
    write_notebook(lab, "busy.ipynb", CELLS)
    page.add_init_script(f"({BUSY})()")
    open_notebook(lab, page, "busy.ipynb")
    for n, title in enumerate(["first", "second"]):
        page.evaluate(RUN_CELL, n)
        page.wait_for_function(f"() => ({SHOWN})()[0] === '{title}'", timeout=30_000)
        assert page.evaluate(SHOWN)[1] == f"{title}. Nothing has run yet."
    assert page.evaluate(ERRORS) == [] and set(page.problems) == {GIVEN_UP}
