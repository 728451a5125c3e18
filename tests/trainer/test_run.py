"""A run is plain values: saved and loaded without pickle."""

from __future__ import annotations

import json
import math
import pickle
import stat
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm

WIDTH = 4


def a_run(method=None, poison: float | None = None, steps: int = 10) -> pm.Run:
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    g = torch.Generator().manual_seed(1)
    batches = [tuple(torch.randn(2, 4, WIDTH, generator=g)) for _ in range(steps)]
    if poison is not None:
        batches[5] = batches[5][0], batches[5][1] * poison
    trainer = pm.Trainer(
        layers,
        mse_loss,
        lambda named: torch.optim.SGD(named, lr=0.01, momentum=0.9),
        method or pm.PipeMare(t2=0.1, t3=2),
        3,
        2,
    )
    metrics = {"mae": lambda o, t: (o - t).abs().mean()}
    return trainer.fit(batches, evaluate=batches[:1], every=4, metrics=metrics)


FIELDS = "config metrics status diverged staleness utilization memory seconds note steps".split()


@pytest.mark.parametrize(
    ("method", "poison"),
    [(None, None), (pm.PipeDream(), None), ("gpipe", None), (None, math.nan), (None, math.inf)],
)
def test_a_loaded_run_equals_the_saved_one(tmp_path, method, poison) -> None:
    run = a_run(method, poison)
    assert (run.status == "diverged") == (poison is not None)
    run.save(tmp_path / "run.json")
    back = pm.load(tmp_path / "run.json")
    for name in FIELDS:
        assert getattr(back, name) == getattr(run, name), name
    assert [repr(x) for x in back.losses] == [repr(x) for x in run.losses]  # nan is not nan
    assert back.trace.events == run.trace.events and back.trace.reads == run.trace.reads
    assert back.trace.first == run.trace.first and back.trace.last == run.trace.last
    assert back.trace.seconds == run.trace.seconds and back.trace.count == run.trace.count
    for i in range(3):
        assert back.trace.operations(i) == run.trace.operations(i)
        assert back.trace.staleness(i) == run.trace.staleness(i)
    back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "run.json").read_bytes()


def test_a_long_run_keeps_its_first_and_last_window(tmp_path) -> None:
    run = a_run("gpipe", steps=250)
    assert run.trace.count > 2 * run.trace.window == 2000
    run.save(tmp_path / "run.json")
    back = pm.load(tmp_path / "run.json")
    assert (back.trace.first, back.trace.last) == (run.trace.first, run.trace.last)
    assert back.trace.count == run.trace.count and back.staleness == run.staleness


def test_a_cancelled_run_is_saved_too(tmp_path) -> None:
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(2)]
    batches = [(torch.zeros(4, WIDTH), torch.zeros(4, WIDTH))] * 40
    trainer = pm.Trainer(layers, mse_loss, lambda n: torch.optim.SGD(n, lr=0.1), "gpipe", 2)
    for run in trainer.chunks(batches, seconds=0.0):
        run.cancel()
    run.save(tmp_path / "run.json")
    back = pm.load(tmp_path / "run.json")
    assert (back.status, back.note, back.losses) == ("cancelled", run.note, run.losses)


def test_a_running_run_can_be_saved(tmp_path) -> None:
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(2)]
    batches = [(torch.zeros(4, WIDTH), torch.zeros(4, WIDTH))] * 40
    trainer = pm.Trainer(layers, mse_loss, lambda n: torch.optim.SGD(n, lr=0.1), "gpipe", 2)
    for number, run in enumerate(trainer.chunks(batches, seconds=0.0)):
        if number in (0, 20):
            run.save(tmp_path / "run.json")
            assert pm.load(tmp_path / "run.json").status == "running"
    assert run.status == "done"
    assert pm.load(tmp_path / "run.json").steps < run.steps


FOREIGN = {
    "empty": b"",
    "text": b"hello",
    "binary": bytes(range(256)),
    "pickle": pickle.dumps({"format": "pipemare_edu run 1"}),
    "number": b"5",
    "string": b'"pipemare_edu run 1"',
    "null": b"null",
    "list": b"[1, 2]",
    "object": b'{"a": 1}',
    "other format": b'{"format": "pipemare_edu run 99"}',
    "hollow": b'{"format": "pipemare_edu run 1"}',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_are_refused_by_name(tmp_path, content) -> None:
    path = tmp_path / "foreign.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="foreign.json is not a saved run"):
        pm.load(path)


@pytest.mark.parametrize("key", ["config", "losses", "metrics", "trace", "staleness", "memory"])
def test_a_file_that_lacks_a_part_is_refused(tmp_path, key) -> None:
    path = tmp_path / "run.json"
    a_run().save(path)
    values = json.loads(path.read_bytes())
    del values[key]
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match="not a saved run"):
        pm.load(path)


def test_a_file_whose_events_are_nonsense_is_refused(tmp_path) -> None:
    path = tmp_path / "run.json"
    a_run().save(path)
    values = json.loads(path.read_bytes())
    values["trace"]["events"][0][0] = 17  # a stage that is not there
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match="not a saved run"):
        pm.load(path)


def test_a_missing_file_says_so(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        pm.load(tmp_path / "nowhere")


def test_a_link_stays_and_what_is_no_file_is_refused(tmp_path) -> None:
    run, real, link = a_run(), tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    run.save(link)
    assert link.is_symlink() and pm.load(real).losses == run.losses
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(ValueError, match="is a (folder|device)"):
            run.save(path)
        with pytest.raises(ValueError, match="is a (folder|device)"):
            run.save_trace(path)


def test_save_makes_the_folder_and_leaves_no_other_file(tmp_path) -> None:
    path = tmp_path / "a" / "b" / "run.json"
    a_run().save(path)
    a_run().save(str(path))
    assert [p.name for p in path.parent.iterdir()] == ["run.json"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
