"""Every panel with ipykernel 6 and 7 in JupyterLab 4, Notebook 7 and Voila (`make test-matrix`).

One notebook holds them all.  Each draws its figures, runs to its end and draws again; one is
cancelled; and nothing complains, neither in a panel nor in the page nor in the kernel.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser.server import FRONTS, Server, new_page, serving
from every_panel import NAMES, call
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build" / "matrix"
DEMO = ROOT / "notebooks" / "demo_recipe_board.ipynb"
CHOICES = [(kernel, front) for kernel in (6, 7) for front in FRONTS]
pytestmark = pytest.mark.matrix

FIRST = (
    "import ipykernel\nfrom pipemare_edu import panels\nprint('ipykernel', ipykernel.__version__)"
)
LONG = "panels.LiveTraining(stages=4, steps=100_000)"  # to be cancelled
CELLS = [FIRST, *map(call, NAMES), LONG]

# What front ends say of themselves.  Notebook 7.6 says this of an empty notebook, too, before any
# kernel has started: its shortcuts hear of settings that are loaded before their own
# (jupyter/notebook, issue 7862).
NOTEBOOK = "Cannot read properties of undefined (reading 'schema')"
# And anywidget this, of a model whose code took more than two seconds, as on one core some of these
# take: figures bear it (tests/browser/test_busy_page.py).
LATE = "[anywidget] Failed to initialize model."

RUN_ALL = """async () => {
  const app = window.jupyterapp, widget = app.shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  await app.commands.execute('notebook:run-all-cells');
}"""
OPENED = "() => window.jupyterapp?.shell.currentWidget?.context"
ERRORS = "() => [...document.querySelectorAll('[data-mime-type*=error], [role=alert]')]"
ERRORS += ".map(e => e.innerText.trim()).filter(text => text)"
PANELS = "document.querySelectorAll('.pipemare-status')"
# How the n-th panel of the page stands.
STANDS = f"""n => {{
  const status = {PANELS}[n], root = status?.closest('.widget-vbox');
  if (!root) return null;
  const bar = [...root.querySelectorAll('.progress-bar')].map(b => b.className).join(' ');
  const plots = [...root.querySelectorAll('.pipemare-figure .js-plotly-plot')];
  return {{
    says: status.innerText.trim(),
    end: bar.match(/progress-bar-(success|warning|danger)/)?.[1] ?? '',
    figures: plots.length,
    drawn: plots.every(p => p.calcdata?.length >= 0 && p.querySelector('.main-svg')),
  }};
}}"""
BUTTON = f"""([n, which]) => {{
  const root = {PANELS}[n].closest('.widget-vbox');
  const run = root.querySelector('button.mod-primary');
  const button = which === 'run' ? run : run.nextElementSibling;
  if (button.disabled) return false;
  button.click();
  return true;
}}"""


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    kernel, front = request.param
    python = ENVIRONMENTS / f"ipykernel{kernel}" / "bin" / "python"
    with serving(tmp_path, front=front, python=python) as server:
        book = new_notebook(cells=[new_code_cell(source) for source in CELLS])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(book, server.folder / "every.ipynb")
        yield server


def run_all(page: Any, server: Server, notebook: str, panels: int) -> None:
    """Open a notebook and run every cell; Voila does so by itself."""
    page.goto(server.url(notebook), timeout=180_000)
    if server.front is not FRONTS["voila"]:
        page.wait_for_function(OPENED, timeout=60_000)
        page.evaluate(RUN_ALL)
    page.wait_for_function(f"() => {PANELS}.length === {panels}", timeout=180_000)


def stands(page: Any, panel: int, condition: str, seconds: float = 60) -> dict[str, Any]:
    """Wait until the condition holds of `it`, the panel; returns how it stands."""
    page.wait_for_function(
        f"n => {{ const it = ({STANDS})(n); return it && ({condition}); }}",
        arg=panel,
        timeout=1000 * seconds,
    )
    return page.evaluate(STANDS, panel)


def click(page: Any, panel: int, which: str) -> None:
    page.wait_for_function(BUTTON, arg=[panel, which], timeout=20_000)


@contextmanager
def watched(server: Server) -> Iterator[Any]:
    """A page on which nothing complains, nor in the kernel behind it."""
    with new_page() as page:
        said: list[str] = []

        def heard(message: Any) -> None:
            """Voila asks the network for a font of icons, and does without."""
            ours = message.location["url"].startswith(("blob:", server.base))
            if message.type == "error" and ours:
                said.append(f"{message.text} ({message.location})")

        page.on("console", heard)
        yield page
        assert page.evaluate(ERRORS) == []
        own = {LATE, NOTEBOOK} if server.front is FRONTS["notebook"] else {LATE}
        assert [*(problem for problem in page.problems if problem not in own), *said] == []
    assert "Traceback" not in server.log.read_text()


def run_to_its_end(page: Any, panel: int) -> None:
    before = stands(page, panel, "it.figures > 0 && it.drawn")
    click(page, panel, "run")
    after = stands(page, panel, "it.end && it.drawn")
    assert after["end"] == "success", after["says"]
    assert after["figures"] == before["figures"]


@pytest.mark.parametrize(
    "server", CHOICES, indirect=True, ids=["ipykernel{}-{}".format(*c) for c in CHOICES]
)
def test_every_panel_works(server: Server, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with watched(server) as page:
        run_all(page, server, "every.ipynb", len(NAMES) + 1)
        kernel, _ = request.node.callspec.params["server"]
        assert page.get_by_text(f"ipykernel {kernel}.").count() == 1
        for panel in range(len(NAMES)):
            run_to_its_end(page, panel)
        click(page, len(NAMES), "run")
        stands(page, len(NAMES), "it.says.startsWith('Training')")
        click(page, len(NAMES), "cancel")
        stands(page, len(NAMES), "it.end === 'warning' && it.says.startsWith('Cancelled')")
        page.screenshot(path=str(tmp_path / "every.png"), full_page=True)


@pytest.mark.parametrize("server", [(7, "lab"), (7, "voila")], indirect=True, ids=["lab", "voila"])
def test_the_demo_works(server: Server, tmp_path: Path) -> None:
    shutil.copy(DEMO, server.folder)
    with watched(server) as page:
        run_all(page, server, DEMO.name, 1)
        run_to_its_end(page, 0)
        page.screenshot(path=str(tmp_path / "demo.png"), full_page=True)
