"""Every run is done once, kept at once, and the same however it was come by."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pipemare_edu as pm
from pipemare_edu import runs
from pipemare_edu.reproduce import study as studies
from pipemare_edu.reproduce.presets import METHODS
from pipemare_edu.trainer.methods import PipeMare

ROOT = str(Path(pm.__file__).resolve().parent.parent)


STEPS = 8  # of every run


def records(study) -> list:
    return study.records(study.cases[0])


def test_every_method_over_every_seed_in_the_order_of_the_report(study, done):
    assert [(r["method"], r["seed"]) for r in records(study(done))] == [
        (method, seed) for method in METHODS for seed in (10, 11)
    ]
    assert all(r["status"] == "done" and r["steps"] == STEPS for r in records(study(done)))
    assert len(list((done / "runs").iterdir())) == 12


def test_synchronous_training_is_one_method():
    assert list(METHODS) == [
        "gpipe", "pipedream", "pipemare-naive", "pipemare-t1", "pipemare-t1t2", "pipemare",
    ]  # fmt: skip


def test_a_study_cut_short_has_all_methods_on_its_first_seeds(study, tmp_path):
    assert [a.work.seed for a in study(tmp_path).asked] == [10] * 6 + [11] * 6


def test_fixes_keep_their_share_of_another_length(study, tmp_path):
    [case] = study(tmp_path, steps=400).cases
    fixes = pm.training.scaled(pm.tasks.get("regression").setting(), 400)
    assert case.methods["pipemare"] == PipeMare(t1=fixes.t1, t2=fixes.t2, t3=fixes.t3)


def test_a_second_call_does_only_what_is_missing(study, copy, monkeypatch):
    asked = study(copy).asked[3]
    study(copy).store.file(asked.config).unlink()
    seen = []

    def watched(work, jobs):
        seen.extend(work)
        return runs.side_by_side(work, jobs)

    monkeypatch.setattr(studies, "side_by_side", watched)
    reports = list(study(copy).run(jobs=2))
    assert seen == [asked.work] and reports[-1][0] == 1.0
    seen.clear()
    assert list(study(copy).run(jobs=2)) == [] and not seen


def test_another_seed_is_added_to_what_is_there(study, copy):
    assert [a.work.seed for a in study(copy, 11, 12).missing()] == [12] * 6


@pytest.mark.parametrize("other", [{"steps": STEPS + 1}, {"task": "digits"}])
def test_another_setting_has_runs_of_its_own(study, copy, other):
    assert len(study(copy, **other).missing()) == 12


def test_another_version_has_runs_of_its_own(study, copy, monkeypatch):
    monkeypatch.setattr(studies, "__version__", "0.0.0")
    assert len(study(copy).missing()) == 12


def test_what_has_ended_is_kept_when_the_study_is_left(study, tmp_path):
    reports = study(tmp_path, 10).run(jobs=1)
    ended = 0
    while ended < 2:
        done, record = next(reports)
        ended += record is not None
        assert ended <= done <= ended + 1
    reports.close()
    assert len(records(study(tmp_path))) == 2


def test_side_by_side_gives_the_same_records(study, done, tmp_path):
    for _ in study(tmp_path).run(jobs=2):
        pass
    without = lambda rows: [{k: v for k, v in r.items() if k != "seconds"} for r in rows]  # noqa: E731
    assert without(records(study(tmp_path))) == without(records(study(done)))


def test_a_cancelled_run_is_not_kept(study, tmp_path, monkeypatch):
    original = pm.training.Job.chunks

    def cancelled(self):
        for run in original(self):
            if run.status == "done":
                run.status = "cancelled"
            yield run

    monkeypatch.setattr(pm.training.Job, "chunks", cancelled)
    assert all(record is None for _, record in study(tmp_path).run(jobs=1))
    assert not records(study(tmp_path))


def test_bad_input_is_refused_before_any_run(study, tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "side_by_side", lambda *_: pytest.fail("it started"))
    with pytest.raises(ValueError, match="unknown task 'word': did you mean 'words'"):
        study(tmp_path, task="word")
    with pytest.raises(ValueError, match="steps is 0"):
        study(tmp_path, steps=0).run(jobs=1)


def alive(session: int) -> list[int]:
    """Processes of a session, zombies aside."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_after_a_kill_the_same_command_goes_on(tmp_path):
    """Nothing half written, nothing done twice, and no process that goes on alone."""
    command = [
        *f"-m pipemare_edu reproduce --task regression --seeds 2 --steps {STEPS}".split(),
        *f"--jobs 2 --json --out {tmp_path}".split(),
    ]  # fmt: skip
    call = [sys.executable, *command]
    env = os.environ | {"PYTHONPATH": ROOT}
    first = subprocess.Popen(
        call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=env
    )
    end = time.monotonic() + 60
    while not list((tmp_path / "runs").glob("*.json")) and time.monotonic() < end:
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    while alive(first.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(first.pid)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").glob("*.json")}
    assert 0 < len(kept) < 12
    again = subprocess.run(call, capture_output=True, text=True, timeout=60, env=env)
    assert again.returncode == 0, again.stderr
    assert len(json.loads(again.stdout.splitlines()[-1])["runs"]) == 12
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items())
