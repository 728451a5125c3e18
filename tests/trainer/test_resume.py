"""Checkpoints at drains: resuming is bitwise the run that was never interrupted."""

import io
import json

import pytest
import torch
from test_workers import METHODS, STAGES, adam, batches, same, sgd, trainer
from torch import nn

import pipemare_edu as pm
from pipemare_edu.trainer.checkpoint import collect
from pipemare_edu.trainer.waiting import waiting


def state(made):
    return {k: v.clone() for k, v in collect(made.stages, made.optimizers).tensors.items()}


def loader():
    """Shuffled with the global random state, which a checkpoint holds."""
    torch.manual_seed(7)
    pairs = torch.utils.data.TensorDataset(torch.randn(50, 6), torch.randint(0, 3, (50,)))
    return torch.utils.data.DataLoader(pairs, 10, shuffle=True)


@pytest.mark.parametrize("optimizer", [sgd, adam])
@pytest.mark.parametrize("name", ["1f1b", "pipedream", "all"])
@pytest.mark.parametrize(("first", "then"), [(0, 0), (0, 2), (2, 0), (2, 3)])
def test_resumed_and_uninterrupted_runs_are_the_same(first, then, name, optimizer, tmp_path):
    data = loader()
    random = torch.get_rng_state()
    whole = trainer(METHODS[name], first, optimizer)
    run = whole.fit(data, 13, save_every=4, save_to=tmp_path / "at_{step}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["at_12", "at_4", "at_8"]
    for step in (4, 8, 12):
        torch.manual_seed(99)  # restore brings the random state back
        again = trainer(METHODS[name], then, optimizer)
        again.restore(tmp_path / f"at_{step}")
        rest = again.fit(data, 13 - step, save_every=4, save_to=tmp_path / "again")
        assert rest.losses == run.losses[step:]
        same(state(whole), state(again))
    assert not torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_checkpoint_goes_on_on_another_number_of_stages(workers, tmp_path):
    """Not the same bits, because staleness differs; all-zero depths are the same everywhere."""
    whole = trainer(pm.Sequential(), 0, sgd)
    whole.fit(batches(), 6, save_every=3, save_to=tmp_path / "at_{step}")
    other = trainer(pm.Sequential(), workers, sgd, stages=2)
    other.restore(tmp_path / "at_3")
    other.fit(batches(), 3, save_every=3, save_to=tmp_path / "x")
    same(state(whole), state(other))


def test_a_drain_is_part_of_what_is_trained(tmp_path):
    """A pipe that drains fills again: staleness climbs from 0 after every checkpoint."""
    losses = [
        trainer(pm.PipeMare(), 0, sgd).fit(batches(), 12, save_every=every, save_to=tmp_path / "x")
        for every in (0, 4)
    ]
    assert losses[0].losses[:4] == losses[1].losses[:4] and losses[0].losses != losses[1].losses
    run = losses[1]
    assert [list(run.trace.operations(i)) for i in range(STAGES)] == [
        list(ops) for ops in run.plan.lists(12)
    ]
    for d in run.staleness.forward:
        assert (d.mean, d.max) == (d.implied_mean, d.implied_max)


def test_save_every_without_a_file_is_refused():
    with pytest.raises(ValueError, match="save_to"):
        trainer(pm.PipeMare(), 0, sgd).fit(batches(), 4, save_every=2)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unwritable_file_ends_the_run_with_its_name(workers, tmp_path):
    (tmp_path / "file").mkdir()

    def data():
        (tmp_path / "file").rmdir()
        (tmp_path / "file").write_text("")
        while True:
            yield from batches()

    made = trainer(pm.PipeMare(), workers, sgd)
    with pytest.raises(OSError, match="file"):
        made.fit(data(), 8, save_every=2, save_to=tmp_path / "file" / "checkpoint")


@pytest.mark.parametrize("name", [None, 3, "", "nosuch/x", "nosuch/at_{step}", "file/x", "."])
def test_a_checkpoint_that_cannot_be_written_is_refused_before_anything_runs(
    name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    made = trainer(pm.PipeMare(), 0, sgd)
    with pytest.raises(ValueError, match="name of a file|no folder|save_to|is a folder"):
        made.fit(batches(), 8, save_every=2, save_to=name)
    assert made.step == 0 and [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("path", [None, 3, b"state", ""])
def test_what_is_no_name_of_a_file_is_refused(path):
    made = trainer(pm.PipeMare(), 0, sgd)
    for use in (made.save, made.restore, pm.load):
        with pytest.raises(ValueError, match="is no name of a file"):
            use(path)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "torch's"])
def test_a_damaged_file_is_refused_and_changes_nothing(damage, tmp_path):
    path = tmp_path / "checkpoint"
    made = trainer(pm.PipeMare(), 2, adam)
    made.fit(batches(), 4, save_every=4, save_to=path)
    data, other = path.read_bytes(), io.BytesIO()
    torch.save({"weight": torch.ones(3)}, other)
    damaged = {"truncated": data[:-50], "foreign": b"PK" + data, "empty": b""}
    path.write_bytes(damaged.get(damage, other.getvalue()))
    before = state(made)
    with pytest.raises(ValueError, match=r"checkpoint: empty, cut short, or not written by \S+ or"):
        made.restore(path)
    same(before, state(made))
    assert made.step == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_a_trace_opens_in_perfetto(workers, tmp_path):
    """Trace Event Format: complete events in microseconds on named threads of named processes."""
    run = trainer(pm.PipeMare(), workers, sgd).fit(batches(), 5)
    run.save_trace(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = {r["args"]["name"] for r in rows if r["ph"] == "M"}
    assert named == {f"worker {w}" for w in range(max(1, workers))} | {
        f"stage {i + 1}" for i in range(STAGES)
    }
    drawn = [r for r in rows if r["ph"] == "X"]
    assert len(drawn) == run.trace.count and all(r["ts"] >= -1000 and r["dur"] >= 0 for r in drawn)
    first = [r["name"] for r in sorted(drawn, key=lambda r: r["ts"]) if r["tid"] == 1]
    assert first == list(map(str, run.trace.operations(0)))


def test_waiting_is_split_by_when_the_message_was_sent():
    """Two workers by hand: B's second forward waits 3 for A, then 1 for the message."""
    events = [
        pm.simulate(["F0 F1", "F0 F1"]).events[0][0]._replace(**e)
        for e in (
            {"stage": 0, "index": 0, "start": 0.0, "end": 1.0},
            {"stage": 0, "index": 1, "start": 1.0, "end": 7.0},
            {"stage": 1, "index": 0, "start": 2.0, "end": 4.0},
            {"stage": 1, "index": 1, "start": 8.0, "end": 9.0},
        )
    ]
    a, b = waiting([events], (0, 1))
    assert (a.compute, a.transfer, a.wait) == (7.0, 0.0, 0.0)
    assert (b.compute, b.transfer, b.wait) == (3.0, 1.0, 3.0)


def test_layers_keep_buffers_that_are_in_no_state_dict():
    """A worker sends them back: see test_workers.Noisy.calls; here, through a file."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 6)
            self.register_buffer("seen", torch.zeros(()), persistent=False)

        def forward(self, x):
            self.seen += len(x)
            return self.linear(x)

    made = pm.Trainer([Counting(), nn.Linear(6, 3)], nn.functional.cross_entropy, sgd, "gpipe", 2)
    made.fit(batches(), 3)
    assert float(made.layers[0].seen) == sum(len(x) for x, _ in batches())
