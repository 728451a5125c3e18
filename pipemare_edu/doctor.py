"""What this machine has, and whether the course will work on it.  Imports torch only to ask it
about a GPU that is really there.

    report()    {topic: value}, in words
    problems()  what stands in the way, with the way out; empty if nothing does
    text()      both, for a terminal
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata

from .limits import cpus, memory

# The versions that were tried together; constraints.txt pins the same ones (a test compares).
TRIED = {
    "torch": "2.13.0",
    "numpy": "2.4.6",
    "plotly": "7.1.0",
    "ipywidgets": "8.1.9",
    "anywidget": "0.11.0",
    "jupyterlab": "4.6.6",
}
PYTHONS = ((3, 11), (3, 13))
NEEDED_BYTES = 10**9  # a lesson stays under 700 MB, and JupyterLab wants its share

_NOTEBOOKS = {  # where, by an environment variable that only it sets; the first match counts
    "Colab": ("COLAB_RELEASE_TAG", "COLAB_GPU"),
    "Binder": ("BINDER_SERVICE_HOST", "BINDER_LAUNCH_HOST", "BINDER_REPO_URL"),
    "JupyterLab": ("JPY_SESSION_NAME",),
    "VS Code": ("VSCODE_PID", "VSCODE_CWD"),
}
COLAB = "google.colab"  # a module that every kernel there has loaded
_NO_NOTEBOOK = "none: a plain Python process"


def report() -> dict[str, str]:
    """What is here, one line a topic."""
    place = notebook()
    return {
        "python": f"{platform.python_version()} ({_judged_python()})",
        **{name: _package(name) for name in TRIED},
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": f"{cpus():g} of {os.cpu_count()}",
        "memory": _gigabytes(memory()),
        "gpu": gpu(),
        "engines": "; ".join(f"{name}: {state}" for name, state in engines().items()),
        "notebook": place,
        "widgets": widgets(place),
    }


def problems() -> list[str]:
    """What would keep a lesson from working here."""
    found = []
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        found.append(f"Python is {platform.python_version()}: the course needs 3.11, 3.12 or 3.13.")
    missing = [name for name in TRIED if _version(name) is None]
    if missing:
        found.append(f"Not installed: {', '.join(missing)}. Run `make setup` once.")
    limit = memory()
    if limit is not None and limit < NEEDED_BYTES:
        found.append(
            f"Memory is {_gigabytes(limit)}: close other notebooks, a lesson wants up to 700 MB."
        )
    if may_not_draw():
        found.append(f"Panels may not draw here. {widgets(notebook())}")
    return found


def text() -> str:
    """The report and the problems, for a terminal."""
    lines = [f"{topic:<11} {value}" for topic, value in report().items()]
    found = problems()
    return "\n".join([*lines, "", *(found or ["Everything this course needs is here."])])


def gpu() -> str:
    """The GPUs, and whether torch can use them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "none, and none is needed"
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=False)
    names = [line.partition(" (UUID")[0] for line in listed.stdout.splitlines() if line]
    if not names:
        return "none that answers, and none is needed"
    import torch

    usable = "usable" if torch.cuda.is_available() else "not usable by the torch installed here"
    return f"{', '.join(names)}: {usable}"


def engines() -> dict[str, str]:
    """Where a pipeline can run here."""
    if importlib.util.find_spec("pipemare_edu.trainer.workers") is None:
        workers = "not in this version"
    elif os.name == "nt":
        workers = "not on Windows, which has no forkserver; every lesson runs in the kernel"
    else:
        workers = "yes"
    return {"kernel (workers=0)": "yes", "worker processes": workers}


def notebook() -> str:
    """Where the notebook runs that we are in."""
    if "ipykernel" not in sys.modules:
        return _NO_NOTEBOOK
    if COLAB in sys.modules:
        return "Colab"
    places = (p for p, names in _NOTEBOOKS.items() if any(os.environ.get(n) for n in names))
    return next(places, "a Jupyter kernel")


def may_not_draw() -> bool:
    """Whether this is a place where some installations do not draw widgets."""
    return notebook() in ("Colab", "VS Code")


def widgets(place: str) -> str:
    """Whether panels can be expected to draw in such a notebook."""
    match place:
        case "JupyterLab" | "Binder":
            return "expected to draw"
        case "Colab" | "VS Code":
            return "Use the plain call with the panel's name: the same figure without widgets."
        case _ if place == _NO_NOTEBOOK:
            return "nothing to draw on here"
    return "unknown; the plain call with the panel's name gives the same figure"


def _package(name: str) -> str:
    version = _version(name)
    if version is None:
        return "not installed"
    tried = version.partition("+")[0] == TRIED[name]
    return f"{version} ({'as tried' if tried else f'tried with {TRIED[name]}'})"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _judged_python() -> str:
    return "as tried" if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1] else "tried: 3.11-3.13"


def _gigabytes(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.1f} GiB"
