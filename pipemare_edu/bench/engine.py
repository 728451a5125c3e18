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

from ..plan.ledger import ledger
from ..plan.schedules import depths
from ..trainer.methods import Method, PipeDream, PipeMare
from ..trainer.trainer import Trainer

DECAY = 0.135  # T2's D; its value does not change the cost


class Case(NamedTuple):
    """A network and a batch: `layer` makes one of `stages` equal layers."""

    name: str
    stages: int
    width: int
    batch: int
    layer: Callable[[int], nn.Module]


class Row(NamedTuple):
    """Median seconds per step of plain PyTorch, the engine's ratios to it, and PipeDream's peak of
    stashed bytes, counted in a run and by the schedule."""

    case: str
    plain: float
    ratios: dict[str, float]
    stash: int
    expected_stash: int


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
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield _measure(case, rounds)
        finally:
            torch.set_num_threads(before)


def _measure(case: Case, rounds: int) -> Row:
    steps = min(400, max(40, 3200 // case.stages))
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
    return Row(case.name, statistics.median(times["plain"]), ratios, *_stash(case))


def _stash(case: Case) -> tuple[int, int]:
    """PipeDream's peak of stashed bytes, counted and by the ledger: of a narrow network with as
    many stages, since the peak is reached only after about 4 P steps."""
    narrow = case._replace(width=8)
    batch = torch.randn(case.batch, 8), torch.randn(case.batch, 8)
    run = _trainer(narrow, METHODS["PipeDream"]).fit([batch], 4 * case.stages + 2)
    weights = [sum(p.nbytes for p in layer.parameters()) for layer in _network(narrow)]
    rows = ledger(weights, depths("lockstep", case.stages), 1, stashes=True)
    return sum(stage["stash"] for stage in run.memory), sum(row["stash"] for row in rows)


def heading(rounds: int) -> str:
    """What the numbers are, and the names of the columns."""
    return (
        f"times over plain PyTorch's, momentum SGD, N = 1, one thread, median of {rounds} "
        "alternated rounds\n"
        f"{'network':24}{'plain':>12}"
        + "".join(f"{name:>11}" for name in METHODS)
        + f"{'stash counted / by schedule':>32}"
    )


def line(row: Row) -> str:
    """One row as text."""
    ratios = "".join(f"{row.ratios[name]:>10.2f}x" for name in METHODS)
    stash = f"{row.stash} / {row.expected_stash} B"
    return f"{row.case:24}{row.plain * 1e3:>9.2f} ms{ratios}{stash:>32}"


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
    trainer = _trainer(case, method)

    def run() -> float:
        start = perf_counter()
        trainer.fit([batch], steps=steps)
        return (perf_counter() - start) / steps

    return run


def _trainer(case: Case, method: Method) -> Trainer:
    return Trainer(
        _network(case),
        nn.functional.mse_loss,
        lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
        method=method,
        stages=case.stages,
    )
