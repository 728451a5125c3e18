"""A panel under strict nbval: its cells pass, and whatever goes wrong in it fails its cell."""

from __future__ import annotations

import re
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

MAKE = """from pipemare_edu.panels import LiveTraining
panel = LiveTraining(stages=4, steps=20)
panel"""
TEXT = (
    "LiveTraining(task='digits', method='pipemare', stages=4, steps=20, seed=0): controls, Run, "
    "Cancel and three figures, in Jupyter.\nWithout widgets, live_training(task='digits', "
    "method='pipemare', stages=4, steps=20, seed=0) gives the same figures."
)
SHOWN = {"text/plain": TEXT, "application/vnd.jupyter.widget-view+json": {"model_id": "?"}}
RUN = "panel.run.click()\nprint(await panel.wait())"
BROKEN = {
    "trainer": f"""from pipemare_edu.training import Job
chunks, Job.chunks = Job.chunks, lambda *a, **k: 1 / 0
{RUN}""",
    "callback": f"""import pipemare_edu.panels.live as live
Job.chunks, live.curves = chunks, lambda *a, **k: 1 / 0
{RUN}""",
    "task": """from pipemare_edu import tasks
tasks.get = lambda *a, **k: 1 / 0
panel.controls["task"].value = "regression"
await panel.wait()""",
}


def shown(source: str, output: dict) -> dict:
    return new_code_cell(source, outputs=[output], execution_count=1)


def test_a_panel_passes_strict_nbval_and_its_errors_fail(tmp_path):
    view = new_output("execute_result", data=SHOWN, execution_count=1)
    good = [shown(MAKE, view), shown(RUN, new_output("stream", name="stdout", text="done\n"))]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(new_notebook(cells=good, metadata=kernel), tmp_path / "good.ipynb")
    bad = [new_code_cell(source) for source in BROKEN.values()]
    nbformat.write(new_notebook(cells=[good[0], *bad], metadata=kernel), tmp_path / "bad.ipynb")

    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-rA", "-q"]
    command += ["-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=200)
    lines = re.findall(r"^(PASSED|FAILED) .*?(\w+)\.ipynb::Cell (\d)", done.stdout, re.M)
    assert sorted((book, cell, word) for word, book, cell in lines) == [
        ("bad", "0", "PASSED"),
        *(("bad", str(n), "FAILED") for n in (1, 2, 3)),
        ("good", "0", "PASSED"),
        ("good", "1", "PASSED"),
    ], done.stdout[-3000:]
