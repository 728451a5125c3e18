"""The grading command, on notebooks that do their worst."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from pipemare_edu.cli import main
from pipemare_edu.lessons import rerun
from pipemare_edu.lessons.build import NOTEBOOKS

IMPORT = "from pipemare_edu.lessons import check"
RIGHT = "check('1.3', 27)"
WRONG = "check('1.4', 3 / 8)"
OPEN = "check('1.3', ...)"
LIMIT = 3


def save(path: Path, *codes: str, lesson: str = "", said: str = "") -> Path:
    """A notebook as a student would hand it in, `said` in the output of its last cell."""
    cells = [nbformat.v4.new_code_cell(code) for code in (IMPORT, *codes)]
    if said:
        cells[-1].outputs = [
            nbformat.v4.new_output("execute_result", {"text/plain": said}, execution_count=1)
        ]
    metadata = {"pipemare_edu": {"lesson": lesson}} if lesson else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def graded(path: Path, seconds: float = 60) -> dict[str, tuple[str, str]]:
    """{exercise: (status, message)}."""
    return {row.exercise: (row.status, row.message) for row in rerun.grade(path, "n", seconds)}


def test_a_folder_becomes_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "ada" / "right.ipynb", RIGHT, WRONG, "check('0.1', 'F0 F1 F2 B0 B1 B2 U0')")
    save(tmp_path / "bob.ipynb", OPEN, "undefined", RIGHT.replace("1.3", "0.2"))
    save(tmp_path / ".ipynb_checkpoints" / "bob-checkpoint.ipynb", RIGHT)
    (tmp_path / "cut.ipynb").write_text('{"cells": [')
    out = tmp_path / "table.csv"
    assert main(["grade", str(tmp_path), "--out", str(out), "--timeout", "60"]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["notebook", "exercise", "status", "message", "seconds"]
    assert [(r["notebook"], r["exercise"], r["status"]) for r in rows] == [
        ("ada/right.ipynb", "1.3", "right"),
        ("ada/right.ipynb", "1.4", "wrong"),
        ("ada/right.ipynb", "0.1", "over the target"),
        ("bob.ipynb", "1.3", "not attempted"),
        ("bob.ipynb", "0.2", "wrong"),
        ("cut.ipynb", "", "unreadable"),
    ]
    assert "0.375 is the overhead" in rows[1]["message"]
    assert all(float(r["seconds"]) >= 0 for r in rows)
    assert "3/3 cut.ipynb: 1 unreadable" in capsys.readouterr().err


def test_a_kernel_that_dies_leaves_what_it_said(tmp_path: Path) -> None:
    crash = "import os; os._exit(1)"
    rows = graded(save(tmp_path / "n.ipynb", f"{RIGHT}\n{crash}", WRONG))
    assert rows["1.3"] == ("right", "")
    assert rows["1.4"] == ("not reached", "The kernel died in code cell 2.")
    assert rows[""] == ("crashed", "The kernel died in code cell 2.")


@pytest.mark.parametrize(
    "endless",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "while True: print('x' * 10000)",
    ],
    ids=["busy", "stubborn", "talkative"],
)
def test_a_notebook_that_never_ends_is_ended(tmp_path: Path, endless: str) -> None:
    start = time.monotonic()
    rows = graded(save(tmp_path / "n.ipynb", RIGHT, endless, WRONG), LIMIT)
    assert time.monotonic() - start < LIMIT + 20  # a kernel starts within 20 s
    assert rows[""][0] == "timed out" and "3 s came in code cell" in rows[""][1]
    assert rows["1.4"][0] == "not reached"


def test_what_a_notebook_started_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    start = (
        f"import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nopen({str(note)!r}, 'w')"
    )
    graded(save(tmp_path / "n.ipynb", f"{start}.write(str(child.pid))", RIGHT))
    pid = int(note.read_text())
    for _ in range(50):
        state = _state(pid)
        if state in ("", "Z"):
            return
        time.sleep(0.1)
    os.kill(pid, 9)
    pytest.fail(f"the notebook's child still runs, state {state}")


def _state(pid: int) -> str:
    """A process's state as /proc has it, or nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_every_exercise_of_a_lesson_has_a_row(tmp_path: Path) -> None:
    rows = graded(save(tmp_path / "n.ipynb", RIGHT, "oops\ncheck('1.4', 1)", lesson="01_pipelines"))
    assert set(rows) == {"1.1", "1.2", "1.3", "1.4", "1.5"}
    assert rows["1.1"] == ("not reached", "No cell checks it any more.")
    assert rows["1.4"] == (
        "not reached",
        "Its cell raised NameError: name 'oops' is not defined.",
    )


def test_what_a_cell_raised_before_is_told_with_the_verdict(tmp_path: Path) -> None:
    rows = graded(save(tmp_path / "n.ipynb", "answer = ...", "answer = (", "check('1.3', answer)"))
    status, message = rows["1.3"]
    assert status == "not attempted" and "Code cell 3 raised SyntaxError:" in message
    assert graded(save(tmp_path / "n.ipynb", "1 +", RIGHT))["1.3"] == ("right", "")


def test_an_earlier_table_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "n.ipynb", "1")
    (out := tmp_path / "table.csv").write_text("mine")
    assert main(["grade", str(tmp_path), "--out", str(out)]) == 0
    assert (tmp_path / "table.earlier.csv").read_text() == "mine"
    assert "table.earlier.csv" in capsys.readouterr().err and "no exercise" in out.read_text()


def test_the_latest_verdict_counts(tmp_path: Path) -> None:
    assert graded(save(tmp_path / "n.ipynb", "check('1.3', 3)", RIGHT)) == {"1.3": ("right", "")}


def test_a_page_that_says_something_else_is_mentioned(tmp_path: Path) -> None:
    path = save(tmp_path / "n.ipynb", "check('1.3', 26)", said="Exercise 1.3: right.")
    status, message = graded(path)["1.3"]
    assert status == "wrong" and message.endswith('The saved page says "right".')
    path = save(tmp_path / "n.ipynb", RIGHT, said="Exercise 1.3: right, but over the target. x")
    assert graded(path)["1.3"] == ("right", 'The saved page says "over the target".')


def test_verdicts_that_no_file_can_hold_are_mended(tmp_path: Path) -> None:
    odd = "check('0.1', 'F0 \\ud800')"
    garbage = "import os\nopen(os.environ['PIPEMARE_EDU_VERDICTS'], 'ab').write(b'\\xff{\\n[1]\\n')"
    save(tmp_path / "n.ipynb", odd, garbage, RIGHT)
    out = tmp_path / "table.csv"
    assert main(["grade", str(tmp_path), "--out", str(out)]) == 0
    rows = out.read_text(encoding="utf-8").splitlines()
    assert rows[1].startswith("n.ipynb,0.1,wrong,") and rows[2].startswith("n.ipynb,1.3,right")


def test_notebooks_do_not_see_one_another(tmp_path: Path) -> None:
    leave = "open('left', 'w').close()"
    save(tmp_path / "a.ipynb", leave, RIGHT)
    rows = graded(tmp_path / "a.ipynb")
    look = "import os\ncheck('1.3', 27 if not os.listdir() else 1)"
    assert rows["1.3"] == graded(save(tmp_path / "b.ipynb", look))["1.3"] == ("right", "")
    assert not (tmp_path / "left").exists()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "3", "null", '{"nbformat": 4, "cells": 7}', "\x00", "[" * 100_000],
    ids=["empty", "object", "list", "number", "null", "cells", "nul", "deep"],
)
def test_what_is_no_notebook_is_unreadable(tmp_path: Path, text: str) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    [row] = rerun.grade(path, "n", 10)
    assert row.status == "unreadable" and row.message.startswith("This is no notebook.")
    assert "Error" not in row.message


def test_a_notebook_without_exercises_says_so(tmp_path: Path) -> None:
    rows = graded(save(tmp_path / "n.ipynb", "1 / 0", "# check('1.3', 27)"))
    assert rows == {"": ("no exercise", "No cell calls check with an exercise's id.")}


def test_old_and_plain_notebooks_are_read(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": [RIGHT], "language": "python", "outputs": []}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [cell]}]}
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(old))
    assert rerun.load(path).asked == {"1.3": 0}


def test_bad_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(tmp_path)]) == 2
    assert "no notebook" in capsys.readouterr().err
    save(tmp_path / "n.ipynb", RIGHT)
    assert main(["grade", str(tmp_path), "--out", str(tmp_path / "no" / "x.csv")]) == 2
    assert "--out" in capsys.readouterr().err
    for seconds in ("0", "-1", "nan", "inf", "soon"):
        with pytest.raises(SystemExit) as stop:
            main(["grade", str(tmp_path), "--timeout", seconds])
        assert stop.value.code == 2


def test_student_notebooks_ask_for_all_their_exercises() -> None:
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        saved = rerun.load(path)
        assert saved.asked and None not in saved.asked.values(), path.name
        assert set(saved.spoken) == set(saved.asked), path.name
        assert set(saved.spoken.values()) == {"not attempted"}, path.name


def test_ctrl_c_keeps_the_rows_that_there_are(tmp_path: Path) -> None:
    save(tmp_path / "a.ipynb", "1")
    started = tmp_path / "started"
    save(tmp_path / "b.ipynb", f"open({str(started)!r}, 'w').close()\nwhile True: pass", RIGHT)
    out = tmp_path / "table.csv"
    command = [sys.executable, "-m", "pipemare_edu", "grade", str(tmp_path), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            if started.exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0 and err.endswith("interrupted\n") and "Traceback" not in err
    assert out.read_text().splitlines()[1].startswith("a.ipynb,,no exercise")
