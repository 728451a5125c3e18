"""What running a notebook takes in the binder profile on one core, under a limit that is real.

`make test` measures every lesson where it runs them under nbval (tests/priced.py).
"""

from __future__ import annotations

import os

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from pipemare_edu.lessons.source import lessons

if not os.path.exists("/proc/self/smaps_rollup"):
    pytest.skip("memory is measured on Linux", allow_module_level=True)

from pipemare_edu.lessons import cost

MB = 1 << 20
CHILDREN = """\
import sys, time
from subprocess import PIPE, Popen

code = "held = bytearray(b'x') * ({size} << 20); print('here', flush=True); input()"
new = lambda: Popen([sys.executable, "-S", "-c", code], stdin=PIPE, stdout=PIPE)
children = [new() for _ in range(3)]
for child in children:
    child.stdout.readline()
time.sleep(2)
[child.communicate(b"go") for child in children]
print(sorted(child.returncode for child in children))
"""


def book(source: str) -> nbformat.NotebookNode:
    return new_notebook(cells=[new_code_cell(source)])


def test_the_limit_is_real_for_one_process() -> None:
    with pytest.raises(CellExecutionError, match="MemoryError"):
        cost.run(book("import time; time.sleep(1); bytearray(400 << 20)"), limit=300 * MB)


def test_all_processes_count_and_their_sum_is_limited() -> None:
    fits = book(CHILDREN.format(size=100))
    found = cost.run(fits, limit=800 * MB)
    assert fits.cells[0].outputs[0].text == "[0, 0, 0]\n"
    assert found.processes == 4 and 350 * MB < found.peak < 600 * MB
    too_much = book(CHILDREN.format(size=200))
    cost.run(too_much, limit=500 * MB)
    assert "-9" in too_much.cells[0].outputs[0].text


def test_it_runs_as_on_binder() -> None:
    asks = book(
        "import os; from pipemare_edu.lessons import profile; from pipemare_edu import limits\n"
        "print(profile().name, limits.processes(), limits.memory())"
    )
    cost.run(asks, limit=500 * MB)
    assert asks.cells[0].outputs[0].text == f"binder 1 {500 * MB}\n"


def test_a_row_takes_the_place_of_the_older_one_of_its_lesson() -> None:
    text = "\n".join(["before", *cost.MARKS, "after"])
    one, two = cost.Cost(5, 400 * 10**6, 1), cost.Cost(7, 500 * 10**6, 3)
    text = cost.merged(text, [cost.row("01", one), cost.row("00", one)])
    text = cost.merged(text, [cost.row("01", two)])
    assert text.startswith("before\n") and text.endswith("after")
    rows = [line for line in text.splitlines() if line.startswith("| 0")]
    assert [line.rpartition("| 20")[0] for line in rows] == [
        "| 00 | 5 s | 400 MB | 1 ",
        "| 01 | 7 s | 500 MB | 3 ",
    ]
    with pytest.raises(ValueError, match="has no <!--"):
        cost.merged("nothing", [])


def test_lessons_are_chosen_by_name_or_number() -> None:
    assert cost.chosen([]) == lessons()
    assert cost.chosen(["01", "00_find_your_way"]) == lessons()[:2]
    with pytest.raises(ValueError, match="there is no lesson '77'"):
        cost.chosen(["00", "77"])
