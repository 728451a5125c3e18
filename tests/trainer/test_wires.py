"""The same interpreter in several processes: same operations, same bits."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch import nn

import pipemare_edu as pm
from pipemare_edu.errors import PipelineError
from pipemare_edu.trainer.checkpoint import collect
from pipemare_edu.trainer.evaluation import Evaluation
from pipemare_edu.trainer.feed import Feed
from pipemare_edu.trainer.packing import HEADER, from_bytes, read_header, to_bytes
from pipemare_edu.trainer.placement import homes
from pipemare_edu.trainer.randomness import Sandbox
from pipemare_edu.trainer.run import Plan
from pipemare_edu.trainer.wires import Wires

STEPS, N, STAGES = 9, 2, 4
METHODS = [
    pm.GPipe(),
    pm.OneFOneB(),
    pm.PipeDream(),
    pm.PipeMare("async-1f1b", t1=4, t2=0.2, t3=2),
    pm.PipeMare(t2="theory"),
    pm.PipeMare(t2="theory", t3=2, recompute=3),  # a segment over several workers
]


class Split(nn.Module):
    """x -> (f(x), x, row numbers, None): a tuple with an integer tensor and a hole in it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return self.linear(x), x, torch.arange(len(x)), None


class Join(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, value):
        h, x, order, _ = value
        return self.linear(h)[order] + x


def setting(method):
    torch.manual_seed(0)
    layers = [
        nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.2)),
        Split(),
        Join(),
        nn.Linear(6, 3),
    ]
    trainer = pm.Trainer(
        layers,
        nn.functional.cross_entropy,
        lambda named: torch.optim.Adam(named, lr=0.01),
        method,
        STAGES,
        N,
        clip=0.5,
    )
    g = torch.Generator().manual_seed(1)
    sizes = [9, 9, 7] * 3  # uneven microbatches, and a short minibatch: messages change size
    data = [(torch.randn(n, 6, generator=g), torch.randint(0, 3, (n,), generator=g)) for n in sizes]
    return trainer, data


def work(rank, world, folder, number):
    """One worker: its share of the stages, over gloo."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(f"{folder}/store", world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    trainer, data = setting(METHODS[number])
    cpu, blueprint = torch.device("cpu"), trainer.blueprint
    place = homes(STAGES, world)
    mine = [i for i, home in enumerate(place) if home == rank]
    part = slice(mine[0], mine[-1] + 1)
    built = trainer.stages[part], trainer.optimizers[part]
    plan = Plan(blueprint.method, STAGES, N, 0, every=4, evaluates=True)
    links = Wires(rank, place, cpu)
    feed = Feed(data, N, range(STEPS), blueprint.loss, cpu)
    evaluation = Evaluation(data[:2], blueprint.loss, {}, cpu)
    interpreter = blueprint.interpreter(built, feed, evaluation, links)
    with Sandbox(cpu):
        for _ in interpreter.events([plan.operations(i, STEPS) for i in mine]):
            pass
    links.close()
    dist.barrier()
    tensors = {k: v.contiguous().clone() for k, v in collect(*built).tensors.items()}
    if rank == world - 1:
        tensors["losses"] = torch.tensor(interpreter.losses, dtype=torch.float64)
        tensors["scores"] = torch.tensor(
            [s["loss"] for _, s in interpreter.scores], dtype=torch.float64
        )
    save_file(tensors, f"{folder}/{rank}")
    os._exit(0)  # gloo's threads would hold up a normal exit


@pytest.mark.parametrize(("number", "world"), [(0, 2), (1, 4), (2, 3), (3, 2), (4, 4), (5, 4)])
def test_workers_give_the_bits_of_one_process(number, world, tmp_path):
    mp.spawn(work, (world, str(tmp_path), number), world)
    theirs = {}
    for rank in range(world):
        theirs |= load_file(tmp_path / str(rank))
    trainer, data = setting(METHODS[number])
    run = trainer.fit(data, steps=STEPS, evaluate=data[:2], every=4)
    assert theirs.pop("losses").tolist() == run.losses
    assert theirs.pop("scores").tolist() == [v for _, v in run.metrics["loss"]]
    mine = collect(trainer.stages, trainer.optimizers).tensors
    assert theirs.keys() == mine.keys()
    for name, tensor in mine.items():
        assert torch.equal(theirs[name], tensor), name


VALUES = [
    torch.randn(3, 4),
    torch.tensor(2.5, dtype=torch.float64, requires_grad=True),
    torch.randn(2, 3).T,
    (torch.arange(5), None, torch.tensor([True, False]), torch.zeros(0, 7)),
    (torch.randn(3, dtype=torch.bfloat16), torch.tensor(7, dtype=torch.int8)),
    (),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_messages_come_back_as_they_were(value):
    header, back = from_bytes(to_bytes("F", 12345, value))
    assert (header.kind, header.index) == ("F", 12345)
    assert isinstance(back, tuple) == isinstance(value, tuple)
    pairs = zip(back, value, strict=True) if isinstance(value, tuple) else [(back, value)]
    for got, sent in pairs:
        if sent is None:
            assert got is None
            continue
        assert got.dtype == sent.dtype and got.requires_grad == sent.requires_grad
        assert torch.equal(got, sent.detach())


def test_bytes_without_a_header_are_refused():
    with pytest.raises(PipelineError, match="header"):
        read_header(torch.zeros(HEADER, dtype=torch.uint8))


def test_a_tuple_too_long_for_a_header_is_refused():
    with pytest.raises(PipelineError, match="fewer tensors"):
        to_bytes("F", 0, tuple(torch.zeros(1) for _ in range(200)))
