"""The doctor: versions, limits, places, all from made-up machines."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pipemare_edu import doctor

PINS = Path(__file__).parents[2] / "constraints.txt"
PLACES = {name for names in doctor._NOTEBOOKS.values() for name in names}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with memory enough and not in a notebook."""
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "memory", lambda: 8 << 30)


def test_tried_versions_are_the_pinned_ones() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", PINS.read_text(), re.MULTILINE))
    assert {name: pins[name] for name in doctor.TRIED} == doctor.TRIED


@pytest.mark.parametrize(
    ("variable", "place", "draws"),
    [
        ("JPY_SESSION_NAME", "JupyterLab", "expected to draw"),
        ("BINDER_SERVICE_HOST", "Binder", "expected to draw"),
        ("COLAB_RELEASE_TAG", "Colab", "plain call"),
        ("VSCODE_PID", "VS Code", "plain call"),
        ("HOME", "a Jupyter kernel", "plain call"),
    ],
)
def test_places(
    machine: None, monkeypatch: pytest.MonkeyPatch, variable: str, place: str, draws: str
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", doctor)
    monkeypatch.setenv(variable, "something")
    assert doctor.notebook() == place
    assert draws in doctor.widgets(place)
    assert ("Panels may not draw" in "".join(doctor.problems())) == (place in ("Colab", "VS Code"))


def test_colab_is_known_by_its_module_too(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", doctor)
    assert not doctor.may_not_draw()
    monkeypatch.setitem(sys.modules, "google.colab", doctor)
    assert doctor.notebook() == "Colab" and doctor.may_not_draw()


def test_what_is_missing_is_a_problem(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def without_plotly(name: str) -> str:
        if name == "plotly":
            raise metadata.PackageNotFoundError(name)
        return "9.9+local" if name == "torch" else real(name)

    monkeypatch.setattr(metadata, "version", without_plotly)
    monkeypatch.setattr(doctor, "memory", lambda: 500 << 20)
    assert doctor.report()["plotly"] == "not installed"
    assert doctor.report()["torch"] == f"9.9+local (tried with {doctor.TRIED['torch']})"
    missing, memory = doctor.problems()
    assert "Not installed: plotly" in missing and "Memory is 0.5 GiB" in memory
    assert missing in doctor.text()


def test_windows_is_told_about_its_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: name)
    assert doctor.engines()["worker processes"] == "yes"
    monkeypatch.setattr(doctor.os, "name", "nt")
    assert "not on Windows" in doctor.engines()["worker processes"]


def test_a_gpu_that_does_not_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: str(tool))
    assert doctor.gpu() == "none that answers, and none is needed"


@pytest.mark.skipif(doctor.gpu() != "none, and none is needed", reason="this machine has a GPU")
def test_quick_answers_import_no_torch() -> None:
    code = "import sys, pipemare_edu.doctor as d; d.text(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
