"""An error anywhere fails the test of a notebook: nobody has to read a log to learn of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

SET_UP = """\
import torch
import pipemare_edu as pm
from pipemare_edu import panels, tasks
from torch.nn.functional import mse_loss

class Broken(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError("this layer is broken")
"""
TRAINER = """\
layers, x = [torch.nn.Linear(2, 2), Broken()], torch.ones(4, 2)
sgd = lambda named: torch.optim.SGD(named, lr=0.1)
pm.Trainer(layers, mse_loss, sgd, stages=2).fit([(x, x)])
"""
CALLBACK = """\
panel = panels.LiveTraining("regression", method="gpipe", steps=3)
panel.controls["rate"].observe(panel.guarded(lambda _: {}["this callback is broken"]), "value")
panel.controls["rate"].value = 0.01
print(await panel.wait())
"""
TASK = """\
def broken(output, target):
    raise KeyError("this loss is broken")

object.__setattr__(tasks.get("regression"), "loss", broken)
panel = panels.LiveTraining("regression", method="gpipe", steps=3)
panel.run.click()
print(await panel.wait())
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What nbval says about a notebook whose last three cells go wrong."""
    path = tmp_path_factory.mktemp("broken") / "broken.ipynb"
    cells = [new_code_cell(source) for source in (SET_UP, TRAINER, CALLBACK, TASK)]
    nbformat.write(new_notebook(cells=cells), path)
    options = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=60"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(path)],
        cwd=path.parent,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


@pytest.mark.parametrize(
    "message",
    [
        "StageError: stage 2, microbatch 0, forward: RuntimeError: this layer is broken",
        "KeyError: 'this callback is broken'",
        "forward: KeyError: 'this loss is broken'",
    ],
    ids=["trainer", "callback", "task"],
)
def test_an_error_fails_the_notebook_and_is_shown(said: str, message: str) -> None:
    assert message in said


def test_nothing_else_fails(said: str) -> None:
    assert "3 failed, 1 passed" in said
