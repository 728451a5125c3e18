"""torchrun starts the workers: on one machine, and on two hosts made of network namespaces."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import pytest

TRAIN = ["-m", "pipemare_edu", "train", "digits", "--stages", "8", "--json"]


def torchrun(*arguments):
    return [sys.executable, "-m", "torch.distributed.run", *arguments]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def record(output):
    """The run in the last line, without what depends on the clock."""
    [one] = json.loads(output.strip().splitlines()[-1])["runs"]
    return {k: one[k] for k in ("loss", "metrics", "staleness", "memory", "status", "steps")}


@pytest.fixture(scope="module")
def alone():
    """The same training in one process."""
    done = run([sys.executable, *TRAIN, "--steps", "60"])
    return record(done.stdout)


def test_the_command_line_under_torchrun_is_the_same_trainer(alone):
    where = ["--standalone", "--nproc-per-node=2", "--local-addr=127.0.0.1"]
    done = run(torchrun(*where, *TRAIN, "--steps", "60"))
    assert done.returncode == 0, done.stderr
    assert record(done.stdout) == alone  # rank 0 alone prints


SCRIPT = """
    import os, sys, torch, pipemare_edu as pm
    from torch import nn

    class Bad(nn.Module):
        calls = 0
        def forward(self, x):
            self.calls += 1
            if self.calls == 3 and "BAD" in os.environ:
                raise ArithmeticError("as told")
            return x + 0

    torch.manual_seed(0)
    layers = [nn.Linear(4, 4), nn.Linear(4, 4), Bad(), nn.Linear(4, 4)]
    trainer = pm.Trainer(layers, nn.functional.mse_loss, lambda n: torch.optim.SGD(n, lr=0.1),
                         pm.PipeMare(t1=5, t2=0.2), 4, workers=sys.argv[1], timeout=20)
    torch.manual_seed(int(os.environ["RANK"]))  # ranks that disagree about the order of the data
    pairs = torch.utils.data.TensorDataset(torch.arange(80.0).view(20, 4) / 80, torch.randn(20, 4))
    loader = torch.utils.data.DataLoader(pairs, 5, shuffle=True)
    for _ in range(2):
        run = trainer.fit(loader, save_every=3, save_to=sys.argv[2])
    total = sum(float(p.detach().double().sum()) for layer in layers for p in layer.parameters())
    line = f"{run.status} {run.losses} {total!r} {run.plan.homes} {len(run.utilization.measured)}"
    os.write(1, (line + chr(10)).encode())
"""


def test_workers_env_in_a_script_of_ones_own(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    where = ["--standalone", "--nproc-per-node=2", "--local-addr=127.0.0.1"]
    command = torchrun(*where, "script.py", "env", "checkpoint")
    done = run(command, cwd=tmp_path)
    first, second = sorted(done.stdout.splitlines())
    assert first == second and first.startswith("done"), done.stderr  # every rank has it all
    assert (tmp_path / "checkpoint").exists()
    failed = run(command, cwd=tmp_path, env=os.environ | {"BAD": "1"})
    assert failed.returncode and failed.stderr.count("stage 3, microbatch 2, forward") >= 2


def test_env_without_torchrun_is_refused():
    done = run([sys.executable, "-m", "pipemare_edu", "train", "digits", "--workers", "env"])
    assert done.returncode == 2 and "torchrun" in done.stderr


@pytest.fixture
def hosts():
    """Two network namespaces joined by a cable: (name, address) each."""
    names = [f"pipemare{os.getpid()}{side}" for side in "ab"]
    setup = []
    for name in names:
        setup.append(["ip", "netns", "add", name])
    setup.append(["ip", "link", "add", "cable-a", "netns", names[0], "type", "veth", "peer",
                  "name", "cable-b", "netns", names[1]])  # fmt: skip
    for name, side, address in zip(names, "ab", ("10.77.0.1", "10.77.0.2"), strict=True):
        inside = ["ip", "-n", name]
        setup.append([*inside, "addr", "add", f"{address}/24", "dev", f"cable-{side}"])
        setup.append([*inside, "link", "set", f"cable-{side}", "up"])
        setup.append([*inside, "link", "set", "lo", "up"])
    try:
        for command in setup:
            try:
                made = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                pytest.skip("needs network namespaces")
            if made.returncode:
                pytest.skip(f"needs network namespaces: {made.stderr.strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(hosts, *arguments, workers=2):
    """torchrun with two nodes of so many workers; the two processes."""
    processes = []
    for node, name in enumerate(hosts):
        where = [
            "--nnodes=2", f"--nproc-per-node={workers}", f"--node-rank={node}",
            "--master-addr=10.77.0.1", "--master-port=29533",
        ]  # fmt: skip
        environment = os.environ | {"GLOO_SOCKET_IFNAME": f"cable-{'ab'[node]}"}
        processes.append(
            subprocess.Popen(
                ["ip", "netns", "exec", name, *torchrun(*where, *TRAIN, *arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,
            )  # fmt: skip
        )
    return processes


def kill(host):
    """Everything that runs on a host; torchrun's workers lead sessions of their own."""
    listed = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True)
    for pid in map(int, listed.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop(hosts, processes):
    for host, process in zip(hosts, processes, strict=True):
        kill(host)
        process.communicate()


def test_two_hosts_with_two_workers_each_give_the_same_run(hosts, alone):
    processes = start(hosts, "--steps", "60")
    try:
        first, second = [p.communicate(timeout=120) for p in processes]
        assert processes[0].returncode == processes[1].returncode == 0, first[1] + second[1]
        assert record(first[0]) == alone and not second[0]
    finally:
        stop(hosts, processes)


@pytest.mark.parametrize(("how", "limit"), [("kill", 5), ("cut", 12)])
def test_a_host_that_goes_away_is_named_with_its_stages(hosts, how, limit, tmp_path):
    """Killed, it is noticed at once; behind a cut cable, when the time-out has passed."""
    checkpoint = ["--save-every", "5", "--checkpoint", str(tmp_path / "checkpoint")]
    processes = start(hosts, "--steps", "1000000", "--timeout", "5", *checkpoint)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "checkpoint").exists():  # then both hosts train
            assert time.monotonic() < deadline and processes[0].poll() is None
            time.sleep(0.1)
        gone = time.monotonic()
        if how == "kill":
            kill(hosts[1])
        else:
            subprocess.run(["ip", "-n", hosts[0], "link", "set", "cable-a", "down"], check=True)
        _, errors = processes[0].communicate(timeout=60)
        assert time.monotonic() - gone < limit
        assert "worker 1 lost worker 2 (stages 5 to 6)" in errors, errors
    finally:
        stop(hosts, processes)
