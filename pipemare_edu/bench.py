"""`python -m pipemare_edu bench engine`: what the engine costs over plain PyTorch.

A ratio of times, measured alternately in one process on one thread: medians of several rounds, in
each of which every contestant trains the same number of steps.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from itertools import repeat
from time import perf_counter
from typing import NamedTuple

import torch
from torch import nn

from .trainer.methods import Method, PipeDream, PipeMare
from .trainer.trainer import Trainer

DECAY = 0.135  # T2's D; its value does not change the cost


class Case(NamedTuple):
    """A network and a batch: `layer` makes one of `stages` equal layers."""

    name: str
    stages: int
    width: int
    batch: int
    layer: Callable[[int], nn.Module]


class Row(NamedTuple):
    """Median seconds per step of plain PyTorch, and the engine's ratios to it."""

    case: str
    plain: float
    ratios: dict[str, float]
    stash: tuple[int, int]


def linear(width: int) -> nn.Module:
    return nn.Linear(width, width)


def digits_layer(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())


CASES = [
    *(Case(f"{p} x Linear 256", p, 256, 64, linear) for p in (1, 4, 16, 50, 100)),
    Case("digits MLP, 12 stages", 12, 64, 50, digits_layer),
]

METHODS: dict[str, Method] = {
    "newest": PipeMare(),
    "T2": PipeMare(t2=DECAY),
    "PipeDream": PipeDream(),
}


def engine(rounds: int = 9, cases: list[Case] | None = None) -> Iterator[Row]:
    """Measure each case: momentum SGD, N = 1, one thread."""
    for case in cases or CASES:
        with_one_thread = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield _measure(case, rounds)
        finally:
            torch.set_num_threads(with_one_thread)


def _measure(case: Case, rounds: int) -> Row:
    steps = max(10, 400 // case.stages)
    batch = torch.randn(case.batch, case.width), torch.randn(case.batch, case.width)
    plain = _plain(case, batch, steps)
    runners = {name: _ours(case, method, batch, steps) for name, method in METHODS.items()}
    times: dict[str, list[float]] = {name: [] for name in ("plain", *runners)}
    for _ in range(rounds):
        times["plain"].append(plain())
        for name, run in runners.items():
            times[name].append(run())
    ratios = {
        name: statistics.median(a / b for a, b in zip(times[name], times["plain"], strict=True))
        for name in runners
    }
    return Row(case.name, statistics.median(times["plain"]), ratios, (0, 0))


def _network(case: Case) -> list[nn.Module]:
    torch.manual_seed(0)
    return [case.layer(case.width) for _ in range(case.stages)]


def _plain(case: Case, batch: tuple[torch.Tensor, torch.Tensor], steps: int) -> Callable[[], float]:
    net = nn.Sequential(*_network(case))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def run() -> float:
        start = perf_counter()
        for x, y in repeat(batch, steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            loss.item()
        return (perf_counter() - start) / steps

    return run


def _ours(
    case: Case, method: Method, batch: tuple[torch.Tensor, torch.Tensor], steps: int
) -> Callable[[], float]:
    trainer = Trainer(
        _network(case),
        nn.functional.mse_loss,
        lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
        method=method,
        stages=case.stages,
    )

    def run() -> float:
        start = perf_counter()
        trainer.fit([batch], steps=steps)
        return (perf_counter() - start) / steps

    return run
