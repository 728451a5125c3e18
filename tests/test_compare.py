"""Runs as records, records as a table, runs side by side."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pipemare_edu as pm
from pipemare_edu.compare import compare, final, memory_factor, methods_for, table
from pipemare_edu.runs import Work, finite, record, side_by_side

ROOT = str(Path(pm.__file__).resolve().parent.parent)
SMALL = {"steps": 16, "stages": 4}


def test_jobs_side_by_side_give_the_same_bits() -> None:
    methods = methods_for("regression", ["gpipe", "pipemare"], SMALL)
    key = lambda r: (r["method"], r["seed"])  # noqa: E731
    one = sorted(compare("regression", methods, 2, **SMALL), key=key)
    two = sorted(compare("regression", methods, 2, jobs=2, **SMALL), key=key)
    for r in one + two:
        r.pop("seconds")
    assert one == two and len(one) == 4
    assert one[0]["loss"] != one[1]["loss"], "seeds differ"


def test_a_record_is_json_and_counts_stages_from_one() -> None:
    run = pm.train("regression", method="gpipe", rate=1e30, steps=30)
    values = json.loads(json.dumps(record(run, "gpipe", 3), allow_nan=False))
    assert values["status"] == "diverged" and values["seed"] == 3
    step, stage, what = run.diverged
    assert values["diverged"] == {"step": step, "stage": stage + 1, "what": what}
    assert values["steps"] == run.steps
    assert final(values, "explained") == 0.0


def test_finite_replaces_what_json_cannot_hold() -> None:
    value = {"a": [1.0, math.nan, (math.inf, -math.inf)], "b": {"c": math.nan}, "d": "nan"}
    assert finite(value) == {"a": [1.0, None, [None, None]], "b": {"c": None}, "d": "nan"}


def test_the_table_has_means_spreads_and_divergences() -> None:
    methods = methods_for("regression", ["gpipe", "pipedream"], SMALL)
    records = list(compare("regression", methods, 2, **SMALL))
    records[1] |= {"status": "diverged"}
    text = table(records, "regression")
    head, rule, first, second = text.splitlines()
    assert len({len(line) for line in (head, rule, first, second)}) == 1
    assert "1 of 2" in first and "0 of 2" in second
    score = records[0]["metrics"]["explained"][-1][1]
    assert f"{score / 2:.2f}" in first, "a diverged run counts 0"
    assert "1.00x" in first and memory_factor(records[2]) > 1.5


def test_a_cancelled_run_and_no_run_at_all_make_a_table_too() -> None:
    methods = methods_for("regression", ["gpipe"], SMALL)
    [only] = compare("regression", methods, 1, **SMALL)
    text = table([only | {"status": "cancelled", "metrics": {}}], "regression")
    assert "gpipe" in text and " - " in text
    assert table([], "regression").startswith("method")


def test_comparing_stops_after_a_cancelled_run(monkeypatch) -> None:
    from pipemare_edu import training

    original = training.Job.chunks

    def cancelled(self):
        for run in original(self):
            if run.status == "done":
                run.status = "cancelled"
            yield run

    monkeypatch.setattr(training.Job, "chunks", cancelled)
    methods = methods_for("regression", ["gpipe"], SMALL)
    assert len(list(compare("regression", methods, 3, **SMALL))) == 1


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["gpipe", "nothing"], {}),
        (["gpipe"], {"stages": 99}),
        (["gpipe"], {"rate": -1.0}),
        (["gpipe"], {"microbatches": 51}),
        (["gpipe"], {"network": "nothing"}),
    ],
)
def test_bad_options_are_refused_before_any_run(names, options) -> None:
    with pytest.raises(ValueError, match="nothing|stages|rate|microbatches"):
        compare("regression", methods_for("regression", names, options), 1, **options)


@pytest.mark.parametrize("depth", [(1, 2, 3, 4), (3, 2), "fast"])
def test_an_illegal_depth_is_refused_before_any_run(depth, monkeypatch) -> None:
    monkeypatch.setattr("multiprocessing.get_context", lambda *_: pytest.fail("it started"))
    with pytest.raises(ValueError, match="depth|schedule"):
        list(compare("regression", [("mine", pm.PipeMare(depth=depth))], 1, jobs=2, **SMALL))


SCRIPT = """
from dataclasses import dataclass
import pipemare_edu as pm
from pipemare_edu.compare import compare

@dataclass(frozen=True)
class Mine(pm.Method):
    depth: str = "async-1f1b"
    def rate(self, tau, step):
        {rate}

if __name__ == "__main__":
    try:
        for r in compare("regression", [("mine", Mine())], 2, jobs=2, steps=16, stages=4):
            print(r["method"], r["status"])
    except Exception as error:
        print(type(error).__name__, error)
"""


def script(text: str, file: Path | None) -> str:
    """Standard output of a script in a file, or (as in a notebook) from no file at all."""
    if file is not None:
        file.write_text(text)
    result = subprocess.run(
        [sys.executable, str(file) if file else "-c", *([] if file else [text])],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": ROOT},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_run_that_raises_in_its_process_comes_back_as_the_error(tmp_path) -> None:
    """Not as a parent that waits for ever."""
    out = script(SCRIPT.format(rate="raise LookupError('no rate')"), tmp_path / "mine.py")
    assert "StageError" in out and "no rate" in out


def test_a_process_that_is_ended_from_outside_comes_back_as_an_error(tmp_path) -> None:
    """As when memory runs out."""
    out = script(SCRIPT.format(rate="__import__('os')._exit(9)"), tmp_path / "mine.py")
    assert out.startswith("PipelineError a process that trained was ended from outside")


def test_runs_tell_how_far_they_are_and_then_their_record() -> None:
    [(name, method)] = methods_for("regression", ["gpipe"], SMALL)
    reports = list(side_by_side([Work("regression", name, method, 0, SMALL)], jobs=1))
    *shares, (place, last) = reports
    assert {p for p, _ in reports} == {0} and last["steps"] == 16 and place == 0
    assert [s for _, s in shares] == sorted(s for _, s in shares) and shares[-1][1] == 1.0


def test_case_19_a_method_defined_in_a_cell_works_side_by_side() -> None:
    """In a notebook the class lives in a __main__ that child processes cannot import."""
    assert script(SCRIPT.format(rate="return 0.5"), None).split() == ["mine", "done"] * 2
