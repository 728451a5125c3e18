"""The bench measures what it says; how fast anything is, no test says."""

import subprocess
import sys

import pytest

from pipemare_edu.bench import imports
from pipemare_edu.bench.engine import CASES, METHODS, _stash, engine, heading, line, linear


@pytest.mark.parametrize("case", [c for c in CASES if c.stages <= 16], ids=lambda c: c.name)
def test_stashed_bytes_are_the_schedules(case):
    counted, expected = _stash(case)
    assert counted == expected > 0


def test_every_contestant_is_measured_against_plain_pytorch():
    tiny = CASES[0]._replace(name="tiny", stages=2, width=4, batch=3, layer=linear)
    [row] = engine(rounds=1, cases=[tiny])
    assert row.plain > 0 and set(row.ratios) == set(METHODS)
    assert all(ratio > 0 for ratio in row.ratios.values())
    assert row.stash == row.expected_stash
    assert len(line(row)) == len(heading(1).splitlines()[1])


def test_imports_stand_beside_torch(monkeypatch):
    asked = {"torch": "import json as torch", "pair": "import json as torch, wave", "none": ""}
    monkeypatch.setattr(imports, "IMPORTS", asked)
    rows = {row.what: row for row in imports.imports(rounds=1)}
    assert rows["torch"].ratio == 1 and rows["pair"].ratio > 0 and rows["none"].ratio == 0
    assert imports.line(rows["none"]).endswith(f"{rows['none'].seconds:.2f}")


@pytest.mark.parametrize("what", ["schedules", "clock", "theory", "all on paper", "the command"])
def test_parts_on_paper_import_no_torch(what):
    code = f"{imports.IMPORTS[what]}; import sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
