"""Where a pipeline runs: every choice, on machines that are not here."""

import pytest

from pipemare_edu.trainer.placement import Machine, homes, place

ENV = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
TORCHRUN = ENV | {"MASTER_ADDR": "a", "MASTER_PORT": "1"}
BIG, LITTLE = 50_000_000, 10_000


def machine(gpus=0, cores=4, forkserver=True, env=None):
    return Machine(gpus, cores, forkserver, env or {})


@pytest.mark.parametrize(
    ("workers", "device", "size", "here", "devices", "where"),
    [
        # this process
        (0, "auto", BIG, machine(), ["cpu"], 0),
        (0, "auto", LITTLE, machine(gpus=2), ["cpu"], 0),
        (0, "auto", BIG, machine(gpus=2), ["cuda"], 0),
        (0, "cuda", LITTLE, machine(gpus=1), ["cuda"], 0),
        (0, "cuda:1", LITTLE, machine(gpus=2), ["cuda:1"], 0),
        # so many workers
        (3, "auto", BIG, machine(), ["cpu"] * 3, 3),
        (3, "auto", LITTLE, machine(gpus=8), ["cpu"] * 3, 3),
        (3, "auto", BIG, machine(gpus=8), ["cuda:0", "cuda:1", "cuda:2"], 3),
        (3, "auto", BIG, machine(gpus=2), ["cuda:0", "cuda:1"], 2),
        (3, "cuda", LITTLE, machine(gpus=1), ["cuda:0"], 1),
        (2, "cuda:1", LITTLE, machine(gpus=2), ["cuda:1"], 1),
        (3, "cpu", BIG, machine(gpus=8), ["cpu"] * 3, 3),
        (1, "auto", LITTLE, machine(cores=1), ["cpu"], 1),
        # whatever is here
        ("auto", "auto", LITTLE, machine(cores=4), ["cpu"] * 4, 4),
        ("auto", "auto", LITTLE, machine(cores=64), ["cpu"] * 6, 6),
        ("auto", "auto", LITTLE, machine(cores=1), ["cpu"], 0),
        ("auto", "auto", LITTLE, machine(forkserver=False), ["cpu"], 0),
        ("auto", "auto", BIG, machine(gpus=1), ["cuda"], 0),
        ("auto", "auto", BIG, machine(gpus=4), [f"cuda:{i}" for i in range(4)], 4),
        ("auto", "cuda", LITTLE, machine(gpus=9), [f"cuda:{i}" for i in range(6)], 6),
        ("auto", "auto", LITTLE, machine(gpus=4, cores=2), ["cpu"] * 2, 2),
    ],
)
def test_what_is_chosen(workers, device, size, here, devices, where):
    chosen = place(workers, device, 6, size, here)
    assert (list(chosen.devices), chosen.workers) == (devices, where)
    assert chosen.backend == ("nccl" if "cuda" in devices[0] else "gloo")
    gpus = [d for d in devices if ":" in d]
    assert len(gpus) == len(set(gpus))  # two ranks on one GPU are never chosen
    covered = [i for w in range(max(1, where)) for i in chosen.hosted(w)]
    assert covered == list(range(6)) and chosen.why


def test_why_is_said():
    assert "3 workers were asked for" in place(3, "cuda", 6, BIG, machine(gpus=2)).why
    assert "no GPU is here" in place(2, "auto", 6, BIG, machine()).why
    assert "under a million parameters" in place(0, "auto", 6, LITTLE, machine(gpus=1)).why
    assert "one thread each" in place(2, "auto", 6, BIG, machine()).why
    assert "as asked" in place(0, "cpu", 6, BIG, machine(gpus=1)).why


@pytest.mark.parametrize(
    ("size", "gpus", "device"),
    [(BIG, 0, "cpu"), (BIG, 2, "cuda:1"), (BIG, 1, "cpu"), (LITTLE, 2, "cpu")],
)
def test_under_torchrun(size, gpus, device):
    chosen = place("env", "auto", 6, size, machine(gpus=gpus, env=TORCHRUN))
    assert chosen.distributed and chosen.workers == 0 and chosen.rank == 1
    assert chosen.devices == (device,) * 4 and chosen.homes == homes(6, 4)


@pytest.mark.parametrize(
    ("workers", "device", "here", "said"),
    [
        (7, "auto", machine(), "there are 6 stages"),
        (-1, "auto", machine(), "workers is -1"),
        (True, "auto", machine(), "workers is True"),
        (1.5, "auto", machine(), "workers is 1.5"),
        ("all", "auto", machine(), '"auto" or "env"'),
        (2, "auto", machine(forkserver=False), "Windows"),
        (0, "cuda", machine(), "torch sees no GPU"),
        (0, "cuda:3", machine(gpus=2), "torch sees 2 GPUs"),
        (0, "mps", machine(), 'give "auto", "cpu" or "cuda"'),
        (0, "gpu", machine(), 'give "auto", "cpu" or "cuda"'),
        ("env", "auto", machine(), "start the script with torchrun"),
        ("env", "auto", machine(env=TORCHRUN | {"WORLD_SIZE": "7"}), "7 workers for 6 stages"),
    ],
)
def test_what_is_refused(workers, device, here, said):
    with pytest.raises(ValueError, match=said):
        place(workers, device, 6, LITTLE, here)
