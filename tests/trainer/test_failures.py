"""What goes wrong in a worker: the cause is named, in time, nothing is left, the next run works."""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import pipemare_edu as pm
from pipemare_edu.trainer.members import WorkerLost, temporary_folder

STAGES = 4


class Told(nn.Module):
    """Does what it is told at its `at`-th forward (or in the backward of that one)."""

    def __init__(self, how="", at=5):
        super().__init__()
        self.linear, self.how, self.at, self.calls = nn.Linear(8, 8), how, at, 0

    def forward(self, x):
        self.calls += 1
        y = self.linear(x)
        if self.calls == self.at and self.how == "backward":
            y.register_hook(lambda g: misbehave("raise"))
        elif self.calls == self.at and self.how:
            misbehave(self.how)
        return y


def misbehave(how):
    match how:
        case "raise":
            raise ArithmeticError("as told")
        case "unpicklable":
            raise Unpicklable(threading.Lock())
        case "exit":
            os._exit(3)
        case "sys.exit":
            sys.exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            time.sleep(1000)


class Unpicklable(Exception):
    pass


def batches(steps=1):
    return [(torch.randn(9, 8), torch.randn(9, 8)) for _ in range(3)]


def trainer(told=None, workers=2, loss=nn.functional.mse_loss, optimizer=None, **options):
    layers = [Told(*(told or {}).get(i, ())) for i in range(STAGES)]
    optimizer = optimizer or (lambda named: torch.optim.SGD(named, lr=0.01))
    return pm.Trainer(layers, loss, optimizer, pm.PipeMare(), STAGES, 2, workers=workers, **options)


def failing(made, steps=60):
    """(the error, seconds from the first chunk to it)."""
    before = torch.cat([p.flatten() for layer in made.layers for p in layer.parameters()]).clone()
    start = time.monotonic()
    with pytest.raises(pm.PipelineError) as caught:
        made.fit(batches(), steps)
    seconds = time.monotonic() - start
    after = torch.cat([p.flatten() for layer in made.layers for p in layer.parameters()])
    error = caught.value
    assert error.run.status == "failed" and torch.equal(before, after)
    assert "weights are those from before the run" in error.run.note
    assert "from before the run; a run with save_every" in str(error)  # and what to do about it
    assert nothing_left()
    return error, seconds


def nothing_left():
    """No worker, no file, no shared memory."""
    deadline = time.monotonic() + 2
    while (left := leftovers()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not left


def leftovers():
    folders = [
        *Path(tempfile.gettempdir()).iterdir(),
        *Path(temporary_folder()).glob("pipemare_edu-*"),
    ]
    return [*offspring(), *folders, *(set(os.listdir("/dev/shm")) - SHARED)]


def offspring():
    """The children of this process's fork server: our workers (Linux)."""
    parents = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(pid)] = int(fields[1]), b"forkserver" in command
    servers = {p for p, (up, server) in parents.items() if server and up == os.getpid()}
    return [p for p, (up, _) in parents.items() if up in servers]


SHARED = set(os.listdir("/dev/shm"))


@pytest.fixture(scope="module", autouse=True)
def warm():
    """The server is started once; the first start is not what these tests time."""
    assert trainer().fit(batches(), 2).status == "done"


@pytest.fixture(autouse=True)
def a_folder_for_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture(autouse=True)
def the_next_run_works():
    yield
    assert trainer(workers=3).fit(batches(), 4).status == "done"


@pytest.mark.parametrize("stage", [0, 1, 3])
@pytest.mark.parametrize("how", ["raise", "unpicklable", "backward"])
def test_an_exception_names_stage_microbatch_and_operation(how, stage):
    error, seconds = failing(trainer({stage: (how,)}))
    assert isinstance(error, pm.StageError) and error.stage == stage and seconds < 5
    assert (error.operation, error.index) == ("B" if how == "backward" else "F", 4)
    if how == "unpicklable":
        assert "Unpicklable" in str(error)
    else:
        assert isinstance(error.__cause__, ArithmeticError) and "as told" in str(error)
        assert "in misbehave" in "".join(error.__notes__)  # the traceback where it happened


def test_an_exception_in_the_loss_and_in_the_optimizer():
    def loss(y, t):
        if float(y.detach().abs().sum()) >= 0 and loss.calls > 6:
            raise ArithmeticError("as told")
        loss.calls += 1
        return nn.functional.mse_loss(y, t)

    loss.calls = 0
    error, _ = failing(trainer(loss=loss))
    assert (error.stage, error.operation, error.index) == (3, "F", 7)

    class Bad(torch.optim.SGD):
        def step(self, closure=None):
            raise ArithmeticError("as told")

    error, _ = failing(trainer(optimizer=lambda named: Bad(named, lr=0.1)))
    assert (error.operation, error.index) == ("U", 0)


@pytest.mark.parametrize("stage", [0, 2])
@pytest.mark.parametrize(("how", "said"), [("kill", "killed by SIGKILL"), ("exit", "status 3")])
def test_a_worker_that_ends_is_named(how, said, stage):
    error, seconds = failing(trainer({stage: (how,)}))
    assert isinstance(error, WorkerLost) and said in str(error) and seconds < 5
    assert f"worker {stage // 2} (stages {stage + 1} to {stage + 2})" in str(error)


@pytest.mark.parametrize("stage", [0, 2])
@pytest.mark.parametrize("how", ["hang", "stop"])
def test_a_worker_that_hangs_is_found_within_the_timeout(how, stage):
    error, seconds = failing(trainer({stage: (how, 6)}, timeout=3))
    assert seconds < 5 and "if it is only slow, raise timeout" in str(error)
    if how == "hang":
        assert isinstance(error, pm.StageError) and isinstance(error.__cause__, TimeoutError)
        assert (error.stage, error.operation, error.index) == (stage, "F", 5)
    else:
        assert f"worker {stage // 2}" in str(error) and "does not answer" in str(error)


def test_the_callers_own_pauses_are_no_silence():
    chunks = trainer(timeout=0.5).chunks(batches(), 2000)
    next(chunks)
    time.sleep(1.5)
    for run in chunks:
        if run.steps > 20:
            run.cancel()
    assert run.status == "cancelled"


SHORT = (torch.randn(1, 8), torch.randn(1, 8))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("given", [0, 1, 3, 7])
@pytest.mark.parametrize("how", [ArithmeticError, pm.DataError])
def test_batches_that_fail_end_the_run_after_what_they_gave(how, given, workers):
    data = (batches() * 3)[:given]

    def bad():
        yield from data
        if how is pm.DataError:
            yield SHORT
        raise ArithmeticError("as told")

    made, other = (torch.manual_seed(3) and trainer(workers=workers) for _ in range(2))
    with pytest.raises(how, match=f"as told|minibatch {given} has 1 samples") as caught:
        made.fit(bad(), 10)
    run = caught.value.run
    assert run.status == "failed" and run.steps == made.step == given and nothing_left()
    if how is ArithmeticError:
        asked = f"raised by batches, asked for minibatch {given}"
        assert asked in "".join(caught.value.__notes__)
    if given:
        assert f"the weights are those after step {given}; " in run.note
        assert "dropped" not in run.note
        assert run.losses == other.fit(data, given).losses
    for mine, theirs in zip(made.layers, other.layers, strict=True):
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_fail_leave_the_checkpoints_before(workers, tmp_path):
    def bad():
        yield from (batches() * 2)[:4]
        raise ArithmeticError("as told")

    made = trainer(workers=workers)
    with pytest.raises(ArithmeticError) as caught:
        made.fit(bad(), 10, save_every=2, save_to=tmp_path / "at_{step}")
    assert {p.name for p in tmp_path.glob("at_*")} == {"at_2", "at_4"}
    assert f"{tmp_path / 'at_4'} goes on from step 4" in caught.value.run.note


def test_ctrl_c_returns_the_run_so_far():
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    run = trainer().fit(batches(), 10**7)
    assert run.status == "cancelled" and time.monotonic() - start < 3.5 and nothing_left()


def test_a_second_ctrl_c_ends_it_at_once():
    made = trainer({1: ("hang", 20)})
    for after in (1.0, 1.3):
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        for _ in made.chunks(batches(), 10**7, seconds=10.0):
            pass
    assert caught.value.run.status == "cancelled" and nothing_left()


def test_cancel_does_not_wait_for_a_worker_that_hangs():
    made = trainer({2: ("stop", 9)})
    start, asked = time.monotonic(), None
    for run in made.chunks(batches(), 10**7):
        if time.monotonic() - start > 1.5 and asked is None:
            run.cancel()
            asked = time.monotonic()
    assert run.status == "cancelled" and time.monotonic() - asked < 3
    assert "before the run" in run.note and made.step == 0 and nothing_left()


def test_a_checkpoint_is_what_is_left_of_a_run_that_is_dropped(tmp_path):
    made = trainer({2: ("kill", 2 * 17)})
    with pytest.raises(WorkerLost) as caught:
        made.fit(batches(), 100, save_every=5, save_to=tmp_path / "at_{step}")
    assert "checkpoint at step 15" in caught.value.run.note and made.step == 15
    assert f"(--resume) {tmp_path / 'at_15'} goes on from step 15" in str(caught.value)
    other = trainer()
    other.restore(tmp_path / "at_15")
    mine = torch.cat([p.flatten() for layer in made.layers for p in layer.parameters()])
    theirs = torch.cat([p.flatten() for layer in other.layers for p in layer.parameters()])
    assert torch.equal(mine, theirs)


def test_fifty_runs_with_a_random_failure_each_leave_nothing():
    rng = random.Random(0)
    for _ in range(50):
        how = rng.choice(["raise", "backward", "kill", "exit", "unpicklable", "hang", "cancel"])
        workers, stage = rng.randint(1, 4), rng.randrange(STAGES)
        made = trainer({stage: (how, rng.randint(1, 12))}, workers=workers, timeout=1.0)
        try:
            for run in made.chunks(batches(), 40 if how != "cancel" else 10**7):
                if how == "cancel":
                    run.cancel()
            assert how == "cancel" and run.status == "cancelled"
        except pm.PipelineError:
            assert how != "cancel"
    assert nothing_left()


class Picky(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first}-{second}")


def test_an_exception_with_arguments_of_its_own_comes_back_as_itself():
    class Raises(nn.Module):
        def forward(self, x):
            raise Picky("a", "b")

    layers = [Told(), Raises(), Told()]
    made = pm.Trainer(layers, nn.functional.mse_loss, plain, pm.PipeMare(), 3, workers=3)
    with pytest.raises(pm.StageError, match="Picky: a-b") as caught:
        made.fit(batches(), 3)
    assert isinstance(caught.value.__cause__, Picky) and caught.value.stage == 1


def plain(named):
    return torch.optim.SGD(named, lr=0.01)


def test_long_healthy_operations_are_no_silence():
    """A forward of most of the time-out, and an evaluation much longer than it."""

    class Slow(nn.Module):
        def forward(self, x):
            time.sleep(0.3 if not self.training else 1.4 if len(x) == 5 else 0)
            return x

    layers = [Told(), Slow(), Told()]
    made = pm.Trainer(
        layers, nn.functional.mse_loss, plain, pm.PipeMare(), 3, 2, workers=3, timeout=2
    )
    run = made.fit(batches()[:1], 1, evaluate=batches() * 4)
    assert run.status == "done" and run.metrics["loss"]


def test_losses_known_before_an_error_are_reported():
    error, _ = failing(trainer({3: ("raise", 2 * 6)}))
    assert error.run.steps == 5


@pytest.mark.parametrize("workers", [0, 2])
def test_a_layer_that_leaves_python_takes_nobody_along(workers):
    made = trainer({1: ("sys.exit", 5)}, workers)
    with pytest.raises(pm.StageError, match="stage 2, microbatch 4, forward") as caught:
        made.fit(batches(), 60)
    assert isinstance(caught.value.__cause__, SystemExit)
    assert f"the weights are those {'from before the run' if workers else 'after step'}" in str(
        caught.value
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loss_that_no_weight_moves_is_an_error(workers):
    made = trainer(loss=lambda y, t: nn.functional.mse_loss(y.detach(), t), workers=workers)
    with pytest.raises(pm.StageError, match="stage 4, microbatch 0.*the loss depends on no weight"):
        made.fit(batches(), 60)


@pytest.mark.parametrize("inside", [[nn.Linear(8, 8)], []], ids=["weights", "no weights"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stage_that_nothing_trains_is_a_warning(workers, inside):
    class Cut(nn.Sequential):
        def forward(self, x):
            return super().forward(x).detach()

    layers = [nn.Linear(8, 8), Cut(*inside), nn.Linear(8, 8)]
    made = pm.Trainer(
        layers, nn.functional.mse_loss, lambda named: torch.optim.SGD(named, lr=0.01),
        pm.GPipe(), 3, 2, workers=workers,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="stage 2: what it returns depends on no weight"):
        assert made.fit(batches(), 3).status == "done"
