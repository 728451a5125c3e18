"""One saved notebook, run again to hear its verdicts.

It runs in a fresh kernel and an empty folder of its own; `check` tells its verdicts through a file
(verdicts.py), so that those spoken before a crash or a time limit count.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from .exercise import ACCEPTED
from .exercises import every
from .verdicts import VARIABLE, read

ENVIRONMENT = {
    "PIPEMARE_EDU_STRICT": "0",  # a wrong answer must not keep the next one from being judged
    "PLOTLY_RENDERER": "plotly_mimetype",
}
_CHECK = re.compile(r"""^[^#\n]*\bcheck\(\s*["'](\d+\.\d+)["']""", re.MULTILINE)
_SAVED = {
    "right, but over the target": "over the target",
    "right": "right",
    "not right yet": "wrong",
    "not attempted yet": "not attempted",
}


class Grade(NamedTuple):
    """A row of the table; without an exercise it is about the whole notebook.

    status   right, over the target, wrong, not attempted, not reached; of a whole notebook:
             crashed, timed out, unreadable, no exercise
    message  why, in words
    seconds  how long the notebook had been running
    """

    notebook: str
    exercise: str
    status: str
    message: str
    seconds: float


@dataclass(frozen=True)
class Saved:
    """What a saved notebook asks for.

    codes   the text of its code cells
    asked   for each exercise the code cell that checks it, or None if the cell is gone
    spoken  for each exercise the outcome in the saved outputs
    """

    codes: tuple[str, ...]
    asked: dict[str, int | None]
    spoken: dict[str, str]


@dataclass(frozen=True)
class Run:
    """How an execution ended: `end` and `why` are empty if it came to the last cell.

    errors  by number of code cell
    """

    end: str
    why: str
    errors: dict[int, str]


def load(path: Path) -> Saved:
    """Read a notebook of any nbformat.  Raises whatever nbformat raises if it cannot be read."""
    text = path.read_bytes().decode()
    if not isinstance(json.loads(text), dict):
        raise ValueError("Its JSON is no object.")
    book = nbformat.reads(text, as_version=4)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    lesson = re.match(r"\d+", str(book.metadata.get("pipemare_edu", {}).get("lesson", "")))
    ids = [e.id for e in every() if lesson and int(e.id.partition(".")[0]) == int(lesson[0])]
    asked: dict[str, int | None] = dict.fromkeys(ids)
    spoken = {}
    for n, cell in enumerate(cells):
        asked |= dict.fromkeys(_CHECK.findall(cell.source), n)
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            for id, said in re.findall(rf"Exercise (\d+\.\d+): ({'|'.join(_SAVED)})\b", text):
                spoken[id] = _SAVED[said]
    return Saved(tuple(cell.source for cell in cells), asked, spoken)


class Client(NotebookClient):
    """Keeps errors only: what a notebook prints without end must not fill the memory."""

    def output(self, outs: Any, msg: Any, display_id: Any, cell_index: Any) -> Any:
        if msg["msg_type"] == "error":
            return super().output(outs, msg, display_id, cell_index)
        return None


async def run(codes: tuple[str, ...], folder: Path, verdicts: Path, seconds: float) -> Run:
    """Execute code cells in a fresh kernel, all of them even if some raise, for so many seconds at
    most.  Nothing that the kernel started in its own process group outlives it."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    deadline = time.monotonic() + seconds
    client = Client(
        book,
        timeout_func=lambda _: max(0.1, deadline - time.monotonic()),
        allow_errors=True,
        kernel_name="python3",
        shutdown_kernel="immediate",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    env = {"PIPEMARE_EDU_PROFILE": "ci"} | os.environ | ENVIRONMENT | {VARIABLE: str(verdicts)}
    n = 0
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    async with client.async_setup_kernel(env=env, **quiet):
        if sys.platform != "win32":  # they shall end the grading, as they do there
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().remove_signal_handler(number)
        group = getattr(getattr(client.km, "provisioner", None), "pgid", None)
        try:
            for n, cell in enumerate(book.cells):
                await client.async_execute_cell(cell, n)
            end, why = "", ""
        except CellTimeoutError:
            end, why = "timed out", f"The time limit of {seconds:g} s came in code cell {n + 1}."
        except DeadKernelError:
            end, why = "crashed", f"The kernel died in code cell {n + 1}."
        finally:
            if group:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
    return Run(end, why, {i: error for i, c in enumerate(book.cells) if (error := _error(c))})


def _error(cell: Any) -> str:
    """The error that a cell raised, in a line, or nothing."""
    raised = [output for output in cell.outputs if output.output_type == "error"]
    return f"{raised[-1].ename}: {raised[-1].evalue}" if raised else ""


def grade(path: Path, name: str, seconds: float) -> list[Grade]:
    """The rows of one notebook, called `name` in them.  Whatever is in the file is no error."""
    start = time.time()
    try:
        saved = load(path)
    except Exception as error:  # each nbformat version has its own
        told = isinstance(error, ValueError | OSError | nbformat.ValidationError)
        why = error if told else "Its cells are not as Jupyter writes them."
        return [_row(name, "", "unreadable", f"This is no notebook. {why}", start)]
    if not saved.asked:
        return [_row(name, "", "no exercise", "No cell calls check with an exercise's id.", start)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder, verdicts = Path(place) / "notebook", Path(place) / "verdicts.jsonl"
        folder.mkdir()
        try:
            ran = asyncio.run(run(saved.codes, folder, verdicts, seconds))
        except Exception as error:  # a kernel that will not start, or one whose messages are broken
            ran = Run("crashed", f"The kernel failed with {type(error).__name__}: {error}", {})
        spoken = read(verdicts)
    rows = []
    for id, at in saved.asked.items():
        if id in spoken:
            _, status, message, when = spoken[id]
            if status not in ACCEPTED:
                message = f"{message} {_raised_before(at, ran)}".strip()
        else:
            status, message, when = "not reached", _why_not(at, ran), time.time()
        if saved.spoken.get(id, status) != status:
            message += f' The saved page says "{saved.spoken[id]}".'
        rows.append(_row(name, id, status, message, start, when))
    return rows + ([_row(name, "", ran.end, ran.why, start)] if ran.end else [])


def _raised_before(at: int | None, ran: Run) -> str:
    """The last error of a cell up to the one that checks an exercise, which may have kept the
    answer from being what it says."""
    cells = [n for n in ran.errors if at is None or n <= at]
    return f"Code cell {max(cells) + 1} raised {ran.errors[max(cells)]}." if cells else ""


def _row(
    name: str, id: str, status: str, message: str, start: float, when: float | None = None
) -> Grade:
    seconds = round((when or time.time()) - start, 1)
    message = " ".join(message.split())[:1000]
    return Grade(_encodable(name), id, status, _encodable(message), seconds)


def _encodable(text: str) -> str:
    """Text that a UTF-8 file takes: half characters, as in "\\ud800", become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _why_not(at: int | None, ran: Run) -> str:
    """Why an exercise has no verdict."""
    if at is None:
        return "No cell checks it any more."
    if at in ran.errors:
        return f"Its cell raised {ran.errors[at]}."
    return ran.why or "Its cell ran, and check did not."
