"""JupyterLab on the course's notebooks: on this machine only, with nothing to click away first."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import handout

SETTINGS = Path(__file__).resolve().parent  # JupyterLab looks for labconfig/ in it
COPY = "pipemare_lessons"


def folder(start: Path) -> Path:
    """What JupyterLab opens when it is started in `start`: with an installed wheel, the copy of
    its lessons there; in a checkout, its notebooks; else `start`."""
    if handout.PACKAGED.is_dir():
        return copy_in(start)
    notebooks = start / "notebooks"
    return notebooks if notebooks.is_dir() else start


def copy_in(start: Path) -> Path:
    """Where a learner's copy of the lessons is, for a command given in `start`."""
    return start if start.name == COPY else start / COPY


def can_open_browser() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def arguments(argv: Sequence[str]) -> list[str]:
    """JupyterLab's arguments; argv is passed on to it (``--port=9000``, ``--no-browser`` ...).

    No port is named here: JupyterLab starts at its usual one, 8888, and moves on while it is taken.
    """
    options = [
        "--ip=127.0.0.1",
        f"--ServerApp.root_dir={folder(Path.cwd())}",
        "--ServerApp.answer_yes=True",  # the first Ctrl-C stops it
        "--Application.log_level=WARN",  # leaves the address, and what went wrong
        "--LabApp.extension_manager=readonly",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    if not can_open_browser():
        options.append("--no-browser")
    return [*options, *argv]


def main(argv: Sequence[str] | None = None) -> int:
    """Run JupyterLab in this process until it is stopped; it prints its address with the token.
    The copy that a wheel's learner works in is brought up to date before."""
    from jupyterlab.labapp import LabApp

    if handout.PACKAGED.is_dir():
        for line in handout.said(handout.hand_out(folder(Path.cwd()))):
            print(line, file=sys.stderr)
    paths = [str(SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    if os.name == "posix":
        # Without a terminal JupyterLab cleans up after SIGTERM only.
        signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    LabApp.launch_instance(arguments(sys.argv[1:] if argv is None else argv))
    return 0


if __name__ == "__main__":
    sys.exit(main())
