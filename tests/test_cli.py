"""The command line: plain errors before any work, one JSON line, a clean Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pipemare_edu as pm
from pipemare_edu import cli
from pipemare_edu.trainer import registry
from pipemare_edu.trainer.session import Session

ROOT = str(Path(pm.__file__).resolve().parent.parent)


def run(capfd, *argv: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command, in this process."""
    try:
        status = cli.main(argv)
    except SystemExit as end:
        status = end.code
    out, err = capfd.readouterr()
    return status, out, err


def no_work(monkeypatch) -> list[str]:
    """Runs and processes cannot start; the list says which was tried."""
    worked: list[str] = []

    def refuse(what):
        def refused(*_):
            worked.append(what)
            raise ValueError(f"{what} started")

        return refused

    monkeypatch.setattr(Session, "chunks", refuse("a run"))
    monkeypatch.setattr("multiprocessing.get_context", refuse("processes"))
    return worked


BAD = {
    "unknown task": ("digit", "unknown task 'digit': did you mean 'digits'"),
    "another task": ("mnist", "unknown task 'mnist'.*digits"),
    "unknown network": ("digits --network mpl", "unknown network.*'mpl': did you mean 'mlp'"),
    "stages > layers": ("digits --stages 13", "12 layers cannot fill 13 stages"),
    "counts": ("digits --stages 5,5", "sum to 10.*12 layers"),
    "an empty stage": ("digits --stages 0,12", "'0'.*whole number"),
    "no stages": ("digits --stages 0", "'0'.*whole number"),
    "words": ("digits --stages many", "'many'.*whole number"),
    "a number left out": ("digits --stages 6,,6", "''.*whole number"),
    "N > batch": ("digits --microbatches 60", "microbatches is 60.*50"),
    "one sample before batch norm": ("digits --microbatches 50", "BatchNorm"),
    "no microbatches": ("digits --microbatches 0", "'0'.*whole number"),
    "rate 0": ("digits --rate 0", "rate is 0"),
    "rate -1": ("digits --rate -1", "rate is -1"),
    "rate nan": ("digits --rate nan", "rate is nan"),
    "rate inf": ("digits --rate inf", "rate is inf: give a finite number above 0$"),
    "rate word": ("digits --rate fast", "'fast'"),
    "batch 0": ("digits --batch 0", "'0'.*whole number"),
    "batch > samples": ("digits --batch 1301", "batch is 1301.*1300"),
    "steps 0": ("digits --steps 0", "'0'.*whole number"),
    "eval 0": ("digits --eval-every 0", "'0'.*whole number"),
    "increasing depths": ("digits --stages 3 --depth 1,2,0", "not increase along the pipe"),
    "too few depths": ("digits --stages 3 --depth 1,0", "2 depths for 3 stages"),
    "negative depths": ("digits --stages 2 --depth=-1,-1", "stage 1 has depth -1"),
    "unknown depth": ("digits --depth fast", "unknown schedule 'fast'"),
    "unknown option": ("digits --speed 3", "speed"),
}


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_plain_line_before_any_work(
    command, arguments, message, capfd, monkeypatch
) -> None:
    worked = no_work(monkeypatch)
    status, out, err = run(capfd, command, *arguments.split())
    assert not worked
    assert status == 2 and out == ""
    assert re.search(message, err), err
    assert [line for line in err.splitlines() if line] == [err.strip()]
    assert err.startswith("error: ")


MORE = {
    "unknown method": ("train digits --method pipemare-t12", "unknown method.*did you mean"),
    "unknown methods": ("compare digits --methods gpipe,gpip", "unknown method 'gpip'.*'gpipe'"),
    "a method twice": ("compare digits --methods gpipe,gpipe", "method gpipe is named twice"),
    "depth of none": ("train digits --method gpipe --depth lockstep", "gpipe has none, being sync"),
    "depth of no method": ("compare digits --methods gpipe,1f1b --depth lockstep", "synchronous"),
    "no methods": ("compare digits --methods ,", "method"),
    "seeds 0": ("compare digits --seeds 0", "'0'.*whole number"),
    "jobs 0": ("compare digits --jobs 0", "'0'.*whole number"),
    "seed -1": ("train digits --seed -1", "seed is -1"),
    "seed word": ("train digits --seed x", "'x'"),
    "seed too large": ("train digits --seed 99999999999999999999999", "seed is 9999"),
    "unknown preset": ("reproduce --preset ful", "unknown preset 'ful': did you mean 'full'"),
    "reproduce nothing": ("reproduce --task word", "unknown task 'word': did you mean 'words'"),
    "reproduce no seeds": ("reproduce --seeds 0", "'0' is neither a number nor a list"),
    "reproduce a seed twice": ("reproduce --seeds 10,10", "'10,10' names a seed twice"),
    "reproduce a seed": ("reproduce --seeds 1,99999999999999999999", "seed is 9999"),
    "share": ("reproduce --share 95", "'95' is not a share"),
    "reproduce in a file": ("reproduce --out /dev/null", "/dev/null"),
    "paper without files": ("reproduce --preset paper-cifar10", "cifar10:FOLDER, a folder with"),
    "no task": ("train", "task"),
    "no command": ("", "command"),
    "unknown command": ("trian digits", "trian"),
    "rounds 0": ("bench engine --rounds 0", "'0'.*whole number"),
    "a folder as a file": ("train digits --steps 2 --save .", r"\. is a folder"),
    "a folder for the trace": ("train digits --steps 2 --trace .", "is a folder"),
    "a device as a file": ("train digits --steps 2 --save /dev/null", "/dev/null is a device"),
    "a folder as a checkpoint": (
        "train digits --save-every 5 --checkpoint . --steps 20",
        "is a folder",
    ),
    "a file that cannot be": ("train digits --steps 2 --save /dev/null/run.json", "/dev/null"),
}


@pytest.mark.parametrize(("arguments", "message"), MORE.values(), ids=MORE)
def test_more_bad_input(arguments, message, capfd, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    worked = no_work(monkeypatch)
    status, out, err = run(capfd, *arguments.split())
    assert not worked
    assert status == 2 and out == ""
    assert re.search(message, err), err
    assert [line for line in err.splitlines() if line] == [err.strip()]
    assert err.startswith("error: ")


def strict(text: str) -> dict:
    """JSON as others read it: no NaN, no Infinity."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


RUN_KEYS = """method seed status steps loss metrics diverged staleness utilization memory
    seconds""".split()


def test_train_ends_with_one_json_line(capfd, tmp_path) -> None:
    path = tmp_path / "run.json"
    status, out, err = run(
        capfd, *"train regression --steps 12 --stages 3 --microbatches 2".split(),
        *"--method pipemare --seed 4 --eval-every 5 --json --save".split(), str(path),
    )  # fmt: skip
    assert status == 0 and "Traceback" not in err
    line = strict(out.splitlines()[-1])
    assert list(line) == ["command", "version", "config", "runs"]
    assert line["command"] == "train" and line["version"] == pm.__version__
    assert line["config"]["steps"] == 12 and line["config"]["task"] == "regression"
    [record] = line["runs"]
    assert list(record) == RUN_KEYS
    assert (record["method"], record["seed"], record["status"]) == ("pipemare", 4, "done")
    assert record["steps"] == 12 and [k for k, _ in record["metrics"]["loss"]] == [5, 10, 12]
    assert len(record["staleness"]["forward"]) == len(record["memory"]) == 3
    saved = pm.load(path)
    assert saved.losses[-1] == record["loss"] and saved.steps == 12
    assert "staleness" in out and "utilization" in out


def test_a_diverged_run_is_said_plainly_and_its_numbers_are_null(capfd) -> None:
    status, out, _ = run(
        capfd, *"train regression --steps 60 --stages 8 --rate 1e30 --json".split(),
        *"--method gpipe".split(),
    )  # fmt: skip
    assert status == 0
    assert re.search(r"diverged at step \d+, stage \d: the loss", out)
    [record] = strict(out.splitlines()[-1])["runs"]
    assert record["status"] == "diverged" and record["diverged"]["stage"] >= 1
    assert record["loss"] is None or record["loss"] > 1e4


def test_compare_prints_a_table_and_one_json_line(capfd) -> None:
    status, out, err = run(
        capfd, *"compare regression --methods gpipe,pipemare-naive --seeds 2 --steps 20".split(),
        *"--stages 4 --jobs 1 --depth async-1f1b --json".split(),
    )  # fmt: skip
    assert status == 0 and "Traceback" not in err
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["method", "mean", "spread", "diverged"]
    assert lines[2].startswith("gpipe ") and lines[3].startswith("pipemare-naive ")
    result = strict(lines[-1])
    assert [(r["method"], r["seed"]) for r in result["runs"]] == [
        ("gpipe", 0), ("gpipe", 1), ("pipemare-naive", 0), ("pipemare-naive", 1),
    ]  # fmt: skip
    delays = result["runs"][2]["staleness"]["forward"]
    assert [d["mean"] for d in delays] == [3.0, 2.0, 1.0, 0.0]
    assert all(set(RUN_KEYS) == set(r) for r in result["runs"])


def test_reproduce_writes_a_report_and_ends_with_one_json_line(capfd, tmp_path) -> None:
    status, out, err = run(
        capfd, *"reproduce --task regression --seeds 10,12 --steps 6 --jobs 1 --json".split(),
        "--out", str(tmp_path),
    )  # fmt: skip
    assert status == 0 and "Traceback" not in err
    assert all((tmp_path / f"report.{kind}").stat().st_size for kind in ("md", "csv", "html"))
    line = strict(out.splitlines()[-1])
    assert list(line) == ["command", "version", "config", "runs"]
    assert line["command"] == "reproduce" and line["config"]["preset"] == "quick"
    assert [(r["task"], r["seed"]) for r in line["runs"]] == [
        ("regression", s) for s in (10, 12)
    ] * 6
    assert set(line["runs"][0]) == {"task", *RUN_KEYS}
    assert "preset quick: 12 runs to do, 1 at a time" in err
    assert f"report: {tmp_path}" in out and "pipemare-t1t2" in out and "interrupted" not in out


def test_an_error_in_reproduce_leaves_a_report_and_is_one_line(
    capfd, tmp_path, monkeypatch
) -> None:
    original, count = Session.chunks, []

    def second_fails(self, *args):
        count.append(1)
        if len(count) == 2:
            raise pm.PipelineError("the second run failed")
        return original(self, *args)

    monkeypatch.setattr(Session, "chunks", second_fails)
    arguments = "reproduce --task regression --seeds 1 --steps 6 --jobs 1 --out".split()
    status, _, err = run(capfd, *arguments, str(tmp_path))
    assert status == 1 and err.splitlines()[-1] == "error: the second run failed"
    assert "1 of 6 runs" in (tmp_path / "report.md").read_text()


def test_a_method_registered_outside_is_known_by_name(capfd, monkeypatch) -> None:
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    pm.register("mine", pm.PipeMare(t2=0.3, depth="async-1f1b"))
    arguments = "regression --steps 8 --stages 3 --json".split()
    status, out, _ = run(capfd, "train", *arguments, "--method", "mine")
    assert status == 0 and strict(out.splitlines()[-1])["runs"][0]["method"] == "mine"
    status, out, _ = run(
        capfd, "compare", *arguments, "--methods", "gpipe,mine", "--seeds", "1", "--jobs", "1"
    )
    assert [r["method"] for r in strict(out.splitlines()[-1])["runs"]] == ["gpipe", "mine"]


def test_version_and_help(capfd) -> None:
    status, out, _ = run(capfd, "--version")
    assert status == 0 and out.strip() == pm.__version__
    status, out, _ = run(capfd, "train", "--help")
    assert status == 0 and "--microbatches" in out and "--rate" in out


def children(group: int) -> list[str]:
    """Commands of the processes still in a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def interrupted(
    command: str, until: str, again: float | None = None
) -> tuple[int, str, str, list[str]]:
    """Run a command as a terminal would, and send Ctrl-C to its whole process group once stderr
    (the progress bar) matches `until`, and once more so many seconds later."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pipemare_edu", *command.split()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"PYTHONPATH": ROOT, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        seen = b""
        while not re.search(until.encode(), seen):
            part = os.read(process.stderr.fileno(), 4096)
            assert part, (seen, process.stdout.read())
            seen += part
        os.killpg(process.pid, signal.SIGINT)
        if again is not None:
            time.sleep(again)
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    end = time.monotonic() + 5
    while (left := children(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    return process.returncode, out.decode(), (seen + err).decode(), left


# Ctrl-C, so long after the server that loads torch for the workers was started.
LOADING = """
import os, signal, threading
from pipemare_edu.cli import main
from pipemare_edu.trainer.members import warm_up

if __name__ == "__main__":
    warm_up()
    threading.Timer({seconds}, os.killpg, (0, signal.SIGINT)).start()
    raise SystemExit(main("train digits --workers 2 --steps 500000".split()))
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.mark.parametrize("text, stages", [("12", 12), (" 3, 3,6 ", [3, 3, 6])])
def test_stages_are_a_number_or_numbers_with_or_without_spaces(text, stages) -> None:
    assert cli.parser().parse_args(["train", "digits", "--stages", text]).stages == stages


@needs_proc
def test_ctrl_c_in_train_prints_what_was_reached() -> None:
    status, out, err, left = interrupted("train digits --steps 500000 --json", r"[1-9]\d*/500000")
    assert status == 0 and "Traceback" not in err and not left
    assert re.search(r"cancelled \(stopped after [1-9]\d* steps", out)
    [record] = strict(out.splitlines()[-1])["runs"]
    assert record["status"] == "cancelled" and record["steps"] > 0


@needs_proc
@pytest.mark.parametrize("again", [0.02, 0.1])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_ctrl_c_is_no_traceback(workers: int, again: float) -> None:
    command = f"train digits --steps 500000 --workers {workers}"
    status, out, err, left = interrupted(command, r"[1-9]\d*/500000", again)
    assert status == 0 and "Traceback" not in err and not left
    assert re.search(r"cancelled \(stopped after [1-9]\d* steps", out)


@needs_proc
@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.5, 1.5, 2.5])
def test_ctrl_c_while_the_workers_server_loads_is_no_traceback(seconds: float) -> None:
    command = [sys.executable, "-c", LOADING.format(seconds=seconds)]
    done = subprocess.run(
        command, capture_output=True, text=True, start_new_session=True, timeout=120
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@needs_proc
def test_ctrl_c_in_compare_prints_the_runs_that_ended() -> None:
    command = "compare regression --steps 40 --seeds 400 --methods gpipe --jobs 2 --json"
    status, out, err, left = interrupted(command, r"[1-9]\d*/400")
    assert status == 0 and "Traceback" not in err and not left
    assert re.search(r"interrupted: [1-9]\d* of 400 runs", out)
    assert "gpipe" in out and strict(out.splitlines()[-1])["runs"]


@needs_proc
def test_ctrl_c_while_compare_starts_its_processes() -> None:
    command = "compare regression --steps 40 --seeds 400 --methods gpipe --jobs 2"
    status, out, err, left = interrupted(command, r"0/400")
    assert status == 0 and "Traceback" not in err and not left
    assert re.search(r"interrupted: \d+ of 400 runs", out)


@needs_proc
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_in_reproduce_writes_the_report_of_what_there_is(jobs, tmp_path) -> None:
    command = f"reproduce --task regression --steps 40 --seeds 400 --jobs {jobs} --json"
    # parts of the runs that go on count too, so below 3 none may have ended
    status, out, err, left = interrupted(f"{command} --out {tmp_path}", r"([3-9]|\d\d)\.\d of 2400")
    assert status == 0 and "Traceback" not in err and not left
    assert re.search(r"interrupted: [1-9]\d* of 2400 runs are kept; the same command goes on", out)
    kept = len(list((tmp_path / "runs").glob("*.json")))
    assert kept == len(strict(out.splitlines()[-1])["runs"])
    assert f"{kept} of 2400 runs" in (tmp_path / "report.md").read_text()


def test_stdout_closed_early_is_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pipemare_edu", "doctor"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": ROOT},
    )  # fmt: skip
    process.stdout.close()
    err = process.stderr.read().decode()
    process.wait(30)
    process.stderr.close()
    assert "Traceback" not in err and "Exception" not in err


def test_a_run_is_not_resumed_with_other_schedules(capfd, tmp_path):
    """T1, T3 and the rates were made for the run's own length and method."""
    file = str(tmp_path / "checkpoint")
    first = "train digits --steps 8 --save-every 4 --checkpoint".split()
    assert run(capfd, *first, file)[0] == 0
    for more, said in (
        ("--steps 16", "8, this one has 16"),
        ("--steps 8 --method gpipe", "GPipe"),
        ("--steps 8 --rate 0.3", "with rate 0.2, this one has 0.3"),
        ("--steps 8 --batch 20", "with batch 50, this one has 20"),
    ):
        status, _, err = run(capfd, "train", "digits", *more.split(), "--resume", file)
        assert status == 2 and said in err
    status, out, _ = run(capfd, "train", "digits", "--steps", "8", "--resume", file)
    assert status == 2  # all of its steps are done


def test_under_torchrun_its_ranks_are_the_workers(capfd, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    status, _, err = run(capfd, "train", "digits", "--workers", "2")
    assert status == 2 and "ranks are the workers" in err


BAD_FOR_TRAIN = {
    "one file for two": ("digits --save ./here --trace here", "two of them name one file"),
    "checkpoint alone": ("digits --checkpoint here", "belong together"),
    "save-every alone": ("digits --save-every 5", "belong together"),
    "nothing to resume": ("digits --resume nothere", "resume from nothere: No such file"),
    "workers below 0": ("digits --workers -1", "workers is -1: give a whole number"),
    "no torchrun": ("digits --workers env", "torchrun did not start this process"),
    "a folder to resume": ("digits --resume .", "Is a directory"),
    "too many workers": ("digits --workers 99", "workers is 99.*12 stages"),
    "workers in words": ("digits --workers two", "'two'"),
    "no such device": ("digits --device tpu", '"cuda"'),
    "no time": ("digits --timeout 0", "timeout is 0"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_FOR_TRAIN.values(), ids=BAD_FOR_TRAIN)
def test_bad_engines_are_refused_before_any_work(capfd, monkeypatch, arguments, message):
    worked = no_work(monkeypatch)
    status, out, err = run(capfd, "train", *arguments.split())
    assert status == 2 and not out and not worked and re.search(message, err), err
