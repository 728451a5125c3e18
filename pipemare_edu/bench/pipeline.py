"""Our pipeline beside torch.distributed.pipelining: same network, microbatches and processes.

All contestants take turns, several rounds long; a ratio is the median over rounds of two
neighbours' times.  The machine should be idle, with a core for every stage; what there is to
gain over one process shows in the row of the stages apart, which exchange nothing.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import NamedTuple

import torch
from torch import nn

from ..plan.clock import simulate
from ..plan.schedules import schedule
from ..trainer.methods import GPipe, Method, OneFOneB, PipeMare
from ..trainer.session import last
from ..trainer.trainer import Trainer
from .peers import APART, Peers

LAYERS, WIDTH, ROWS = 8, 512, 32  # linear layers, and rows of a microbatch
OURS: dict[str, tuple[Method, str]] = {
    "our gpipe": (GPipe(), "gpipe"),
    "our 1f1b": (OneFOneB(), "1f1b"),
    "our async-1f1b": (PipeMare("async-1f1b"), "async-1f1b"),
    "our lockstep": (PipeMare("lockstep"), "lockstep"),
}
YARDSTICK = "torch 1f1b"
LIMIT = "stages apart"  # every stage in a process of its own, and no messages


class Row(NamedTuple):
    """One contestant at N microbatches: microbatches a second; its ratio to torch's 1F1B with the
    spread over rounds, to the same schedule of torch's, and to one process; its utilization by the
    clock; and the share of a core that this process took meanwhile, which feeds our workers and
    takes their live events."""

    contestant: str
    stages: int
    microbatches: int
    rate: float
    ratio: float
    low: float
    high: float
    peer: float
    speedup: float
    ideal: float
    parent: float


def pipeline(rounds: int = 9, stages: int = 2, seconds: float = 0.6) -> Iterator[Row]:
    """Measure at N = P and N = 4P, each turn of a contestant about `seconds` long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for microbatches in (stages, 4 * stages):
            yield from _measure(rounds, stages, microbatches, seconds)
    finally:
        torch.set_num_threads(threads)


def _measure(rounds: int, stages: int, microbatches: int, seconds: float) -> Iterator[Row]:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    shape = (ROWS * microbatches, WIDTH)
    batch = torch.randn(shape), torch.randn(shape)
    peers = Peers(layers, stages, microbatches, batch)
    try:
        single = _single(layers, batch, microbatches)
        steps = max(4, round(seconds / single(2)))
        turns: dict[str, Callable[[], float]] = {
            "one process": lambda: single(steps),
            LIMIT: lambda: peers.seconds(APART, steps),
            "torch gpipe": lambda: peers.seconds("gpipe", steps),
            YARDSTICK: lambda: peers.seconds("1f1b", steps),
            "torch 1f1b again": lambda: peers.seconds("1f1b", steps),
            **{
                name: _ours(layers, batch, microbatches, stages, method, steps)
                for name, (method, _) in OURS.items()
            },
        }
        times: dict[str, list[float]] = {name: [] for name in turns}
        shares: dict[str, list[float]] = {name: [] for name in turns}
        for _ in range(rounds):
            for name, turn in turns.items():
                start, computed = perf_counter(), process_time()
                times[name].append(turn())
                shares[name].append((process_time() - computed) / (perf_counter() - start))
    finally:
        peers.close()
    for name in times:
        yield _row(name, stages, microbatches, times, statistics.median(shares[name]))


def _row(
    name: str, stages: int, microbatches: int, times: dict[str, list[float]], parent: float
) -> Row:
    mine = times[name]

    def over(other: str) -> list[float]:
        return [a / b for a, b in zip(times[other], mine, strict=True)]

    ratios, peer = over(YARDSTICK), "torch gpipe" if "gpipe" in name else YARDSTICK
    return Row(
        name, stages, microbatches, microbatches / statistics.median(mine),
        statistics.median(ratios), min(ratios), max(ratios), statistics.median(over(peer)),
        statistics.median(over("one process")), _ideal(name, stages, microbatches), parent,
    )  # fmt: skip


def _ideal(name: str, stages: int, microbatches: int) -> float:
    """Utilization in steady state by the clock."""
    if name in ("one process", LIMIT):
        return 1.0
    kind = OURS[name][1] if name in OURS else name.split()[1]
    timeline = simulate(schedule(kind, stages, microbatches, steps=12 * stages))
    return timeline.steady_utilization or timeline.utilization


def _single(
    layers: list[nn.Module], batch: tuple[torch.Tensor, torch.Tensor], microbatches: int
) -> Callable[[int], float]:
    """Gradient accumulation in one process on one thread: seconds a step."""
    net = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    pieces = [part.tensor_split(microbatches) for part in batch]

    def run(steps: int) -> float:
        start = perf_counter()
        for _ in range(steps):
            for x, y in zip(*pieces, strict=True):
                (nn.functional.mse_loss(net(x), y) / microbatches).backward()
            optimizer.step()
            optimizer.zero_grad()
        return (perf_counter() - start) / steps

    return run


def _ours(
    layers: list[nn.Module], batch: tuple[torch.Tensor, torch.Tensor], microbatches: int,
    stages: int, method: Method, steps: int,
) -> Callable[[], float]:  # fmt: skip
    """Our trainer on `stages` workers: seconds a step, from the first stage's updates."""
    trainer = Trainer(
        copy.deepcopy(layers), nn.functional.mse_loss,
        lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
        method, stages, microbatches, workers=stages,
    )  # fmt: skip

    def run() -> float:
        done = last(trainer.chunks([batch], steps + 4 * stages, full_trace=True))
        ends = [e.end for e in done.trace.events if e.stage == 0 and e.kind == "U"]
        return (ends[steps] - ends[0]) / steps

    return run


def heading(rounds: int) -> str:
    """What the numbers are, and the names of the columns."""
    return (
        f"{LAYERS} linear layers of {WIDTH}, microbatches of {ROWS}, momentum SGD, one thread a "
        f"process, median of {rounds} alternated rounds\n"
        f"{'contestant':18}{'P':>3}{'N':>4}{'microbatches/s':>16}{'over torch 1f1b':>17}"
        f"{'(least, most)':>16}{'over its peer':>15}{'over one process':>18}"
        f"{'ideal utilization':>19}{'this process':>14}"
    )


def line(row: Row) -> str:
    """One row as text."""
    spread = f"({row.low:.2f}, {row.high:.2f})"
    return (
        f"{row.contestant:18}{row.stages:>3}{row.microbatches:>4}{row.rate:>16.0f}"
        f"{row.ratio:>16.2f}x{spread:>16}{row.peer:>14.2f}x{row.speedup:>17.2f}x{row.ideal:>19.3f}"
        f"{row.parent:>14.2f}"
    )
