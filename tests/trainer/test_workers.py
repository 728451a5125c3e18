"""Worker processes: the same operations, the same bits, and an orderly end of every run."""

import functools
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest
import torch
from torch import nn

import pipemare_edu as pm
from pipemare_edu.trainer import session
from pipemare_edu.trainer.checkpoint import collect

N, STAGES, STEPS = 3, 4, 11


class Noisy(nn.Module):
    """Defined here, in a test file that workers cannot import as __main__: travels by value."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.calls += 1
        return nn.functional.dropout(self.norm(self.linear(x)).relu(), 0.2, self.training)


def trainer(method, workers, optimizer, stages=STAGES, clip=0.5, width=6, **options):
    torch.manual_seed(0)
    layers = [*(Noisy() for _ in range(4)), nn.Linear(width, 3)]
    loss = nn.functional.cross_entropy
    return pm.Trainer(
        layers, loss, optimizer, method, stages, N, clip=clip, workers=workers, **options
    )


def batches():
    g = torch.Generator().manual_seed(1)
    sizes = [10, 11, 7]  # uneven microbatches and a short minibatch
    return [(torch.randn(n, 6, generator=g), torch.randint(0, 3, (n,), generator=g)) for n in sizes]


def sgd(named):
    return torch.optim.SGD(named, lr=0.05, momentum=0.9, weight_decay=1e-3)


def adam(named):
    optimizer = torch.optim.Adam(named, lr=0.01)
    return optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 7], 0.5)


def nadam(named):
    return torch.optim.NAdam(named, lr=0.01)


METHODS = {
    "sequential": pm.Sequential(),
    "gpipe": pm.GPipe(),
    "1f1b": pm.OneFOneB(),
    "pipedream": pm.PipeDream(),
    "naive": pm.PipeMare("async-1f1b"),
    "all": pm.PipeMare(t1=4, t2=0.2, t3=2),
}


def same(a, b):
    for name, tensor in a.items():
        assert torch.equal(tensor, b[name]), name
    assert a.keys() == b.keys()


class Placed(nn.Linear):
    """Notes on which cores it may run."""

    def __init__(self):
        super().__init__(6, 6)
        self.register_buffer("cores", torch.zeros(256))

    def forward(self, x):
        self.cores[list(os.sched_getaffinity(0))] = 1
        return super().forward(x)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_keep_to_cores_of_their_own(workers):
    layers, usable = [Placed(), Placed()], os.sched_getaffinity(0)
    x = torch.ones(4, 6)
    pm.Trainer(layers, nn.functional.mse_loss, sgd, stages=2, workers=workers).fit([(x, x)], 2)
    first, last = (set(layer.cores.nonzero().flatten().tolist()) for layer in layers)
    assert first | last == usable
    assert not first & last if workers == 2 <= len(usable) else first == last


@pytest.mark.parametrize("optimizer", [sgd, adam, nadam])
@pytest.mark.parametrize("name", METHODS)
def test_every_engine_gives_the_same_bits(name, optimizer):
    """Weights, buffers, optimizer state, losses, metrics, staleness and counted memory."""
    accuracy = {"right": lambda y, t: (y.argmax(1) == t).float().mean()}
    runs = []
    for workers in (0, 1, 2, 3) if optimizer is sgd else (0, 2):
        made = trainer(METHODS[name], workers, optimizer)
        run = made.fit(batches(), STEPS, evaluate=batches()[:2], every=4, metrics=accuracy)
        second = made.fit(batches(), 3)  # goes on where the first ended
        runs.append((made, run, second))
    (first, run, second), *others = runs
    assert run.status == "done" and len(run.losses) == STEPS
    for other, its_run, its_second in others:
        same(
            collect(first.stages, first.optimizers).tensors,
            collect(other.stages, other.optimizers).tensors,
        )
        assert (its_run.losses, its_run.metrics) == (run.losses, run.metrics)
        assert its_second.losses == second.losses
        assert (its_run.staleness, its_run.memory) == (run.staleness, run.memory)
        assert other.step == STEPS + 3
    assert all(int(layer.calls) > 0 for layer in first.layers[:4])


def test_the_trace_is_the_plan_on_one_clock():
    run = trainer(METHODS["all"], 2, sgd).fit(batches(), STEPS, evaluate=batches()[:1])
    lists = run.plan.lists(STEPS)
    for i in range(STAGES):
        assert run.trace.operations(i) == lists[i]
    starts = {(e.stage, e.kind, e.index): e.start for e in run.trace.events}
    for e in run.trace.events:
        neighbour = {"F": e.stage - 1, "B": e.stage + 1}.get(e.kind)
        assert e.start > starts.get((neighbour, e.kind, e.index), -1.0)
    assert len(run.utilization.measured) == 2 and all(0 < u <= 1 for u in run.utilization.measured)
    assert len(run.waiting) == STAGES
    whole = run.trace.events[-1].end - run.trace.events[0].start
    for home in (0, 1):
        rows = [w for w, h in zip(run.waiting, run.plan.homes, strict=True) if h == home]
        total = sum(w.compute + w.transfer + w.wait for w in rows)
        assert 0.3 * whole < total < 1.01 * whole  # what comes before the first operation is out


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loader_and_a_generator_feed_workers_like_the_kernel(workers):
    def seen(workers, data):
        torch.manual_seed(5)
        made = trainer(pm.PipeMare(), workers, sgd)
        return made.fit(data(), 5).losses

    inputs, targets = torch.randn(60, 6), torch.randint(0, 3, (60,))
    pairs = torch.utils.data.TensorDataset(inputs, targets)

    def loader():
        return torch.utils.data.DataLoader(pairs, 12, shuffle=True)

    def generator():
        return (pair for pair in batches() * 2)

    for data in (loader, generator):
        assert seen(workers, data) == seen(0, data)


def test_a_diverged_run_ends_alike_in_every_engine():
    ends = []
    for workers in (0, 2, 3):
        made = trainer(pm.PipeMare(), workers, lambda n: torch.optim.SGD(n, lr=1e4), clip=None)
        run = made.fit(batches(), 40)
        assert run.status == "diverged"
        weights = torch.cat([f.weights for s in made.stages for f in s.flats])
        ends.append((run.diverged, str(run.losses), made.step, str(weights.tolist())))
    assert ends[0] == ends[1] == ends[2]


def test_a_cancelled_run_is_a_shorter_run(monkeypatch):
    monkeypatch.setattr(session, "DRAIN_SECONDS", 20.0)  # this machine may be busy
    made = trainer(METHODS["all"], 2, sgd)
    for run in made.chunks(batches(), 100_000):
        if run.steps > 40:
            run.cancel()
    assert run.status == "cancelled" and run.steps == made.step
    other = trainer(METHODS["all"], 0, sgd)
    assert other.fit(batches(), run.steps).losses == run.losses
    same(
        collect(made.stages, made.optimizers).tensors,
        collect(other.stages, other.optimizers).tensors,
    )


def test_leaving_the_loop_ends_the_run():
    made = trainer(pm.PipeMare(), 2, sgd)
    for run in made.chunks(batches(), 100_000):
        if run.steps:
            break
    del run
    assert made.fit(batches(), 3).status == "done"


def test_two_trainings_at_once():
    alone = trainer(pm.PipeMare(), 0, sgd).fit(batches(), 30).losses
    pair = [trainer(pm.PipeMare(), 2, sgd).chunks(batches(), 30, seconds=0.01) for _ in range(2)]
    runs = [None, None]
    while pair[0] is not None or pair[1] is not None:
        for i in (0, 1):
            if pair[i] is not None:
                try:
                    runs[i] = next(pair[i])
                except StopIteration:
                    pair[i] = None
    assert runs[0].losses == alone and runs[1].losses == alone


def test_warnings_of_a_worker_reach_the_caller():
    class Squared(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.eye(6))

        def forward(self, x):
            return x @ (self.w * self.w)

    made = pm.Trainer(
        [nn.Linear(6, 6), Squared(), nn.Linear(6, 3)],
        nn.functional.cross_entropy, sgd, pm.PipeMare(), 3, workers=2,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.fit(batches(), 2)
    assert any(issubclass(w.category, pm.WeightSemanticsWarning) for w in caught)


def test_large_minibatches_travel_a_few_at_a_time():
    """The caller's data is read a bounded number of minibatches ahead of the first stage."""
    read = []

    def endless():
        k = 0
        while True:
            read.append(k)
            k += 1
            yield torch.randn(3000, 600), torch.randn(3000, 1)

    made = pm.Trainer(
        [nn.Linear(600, 600), nn.Linear(600, 1)], nn.functional.mse_loss, sgd, pm.PipeMare(), 2,
        workers=2,
    )  # fmt: skip
    for run in made.chunks(endless(), 1000):
        assert len(read) <= run.steps + 12
        if run.steps > 5:
            run.cancel()
    assert run.status == "cancelled"


SCRIPT = """
    import torch, pipemare_edu as pm
    from torch import nn

    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
        def forward(self, x):
            return self.linear(x) * factor()

    def factor():
        return 0.5

    def loss(y, t):
        return ((y - t) ** 2).mean()

    trainer = pm.Trainer([Mine(), Mine()], loss, lambda n: torch.optim.SGD(n, lr=0.1),
                         pm.PipeMare(), 2, workers=2)
    run = trainer.fit([(torch.randn(4, 4), torch.randn(4, 4))], 5)
    print(run.status, run.steps)
"""


def test_a_script_without_a_main_guard_in_a_folder_with_spaces(tmp_path):
    """Classes, functions and losses of the script travel by value; nothing runs twice."""
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "done 5\n", done.stderr


@pytest.mark.parametrize(
    ("unshared", "first"),
    [
        ("--uts", "hostname nowhere.invalid"),  # nothing is looked up
        ("--mount", "mount -t tmpfs -o size=1m tmpfs /dev/shm"),  # and nothing put there
    ],
    ids=["a host name that does not resolve", "a tiny shared-memory folder"],
)
def test_workers_meet_in_a_file_and_talk_over_loopback(unshared, first, tmp_path):
    if subprocess.run(["unshare", unshared, "true"], capture_output=True).returncode:
        pytest.skip("needs network namespaces")
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    command = f"{first} && exec {shlex.quote(sys.executable)} script.py"
    done = subprocess.run(
        ["unshare", unshared, "sh", "-c", command],
        cwd=tmp_path, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == "done 5\n", done.stderr


def test_threads_are_capped():
    class Threads(nn.Module):
        def forward(self, x):
            return x + 0 * torch.get_num_threads() if torch.get_num_threads() == 1 else 1 / 0

    made = pm.Trainer(
        [nn.Linear(6, 6), Threads(), nn.Linear(6, 3)],
        nn.functional.cross_entropy, sgd, pm.PipeMare(), 3, workers=3,
    )  # fmt: skip
    assert made.fit(batches(), 2).status == "done"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda how: how.name)
@pytest.mark.parametrize("processes", [3, 5], ids=["while workers start", "while they work"])
def test_a_kernel_that_is_killed_leaves_nothing(processes, how, tmp_path):
    script = (
        textwrap.dedent(SCRIPT)
        .replace("5)\n", "10**6)\n")
        .replace("run = ", "print('go', flush=True); run = ")
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "go\n"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(members(process.pid)) < processes:
        time.sleep(0.05)  # the process, the server, a resource tracker, two workers
    time.sleep(0.5)
    process.send_signal(how)
    process.communicate()
    deadline = time.monotonic() + 20  # a server that is still loading torch ends after that
    while time.monotonic() < deadline and members(process.pid):
        time.sleep(0.05)
    assert members(process.pid) == []
    assert [*tmp_path.glob("pymp-*"), *tmp_path.rglob("pipemare_edu-*")] == []


def test_what_cannot_travel_is_named_before_any_process_starts():
    lock = threading.Lock()
    layers = [nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)]
    made = pm.Trainer(layers, nn.functional.cross_entropy, sgd, pm.PipeMare(), 3, workers=2)
    layers[2].lock = lock
    with pytest.raises(ValueError, match="layer 2 cannot travel to a worker"):
        made.fit(batches(), 2)
    layers[2].lock = None
    assert made.fit(batches(), 2).status == "done"
    loss = functools.partial(lambda lock, *pair: nn.functional.cross_entropy(*pair), lock)
    made = pm.Trainer(layers, loss, sgd, pm.PipeMare(), 3, workers=2)
    with pytest.raises(ValueError, match="loss cannot travel to a worker"):
        made.fit(batches(), 2)


def members(leader):
    """The processes of a session (Linux)."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(pid))
    return found
