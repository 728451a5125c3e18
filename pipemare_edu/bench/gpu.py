"""Confidence in the GPU code in a few minutes, on a machine with one GPU or several.

every stage on one GPU: newest, corrected and stashed weights give the CPU's run, to a tolerance
utilization of a stage by CUDA events: how much of the time its operations keep the GPU busy
with several GPUs: workers over NCCL give the one GPU's run, and what they gain in time
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

import torch
from torch import nn

from ..trainer.methods import GPipe, Method, OneFOneB, PipeDream, PipeMare
from ..trainer.placement import here
from ..trainer.run import Run
from ..trainer.trainer import Trainer

TOLERANCE = 1e-3  # of losses, relative: a GPU adds up in another order
SHALLOW, WIDTH, ROWS, STEPS = 4, 64, 32, 30  # for equality
DEEP_WIDTH, DEEP_ROWS, DEEP_STEPS = 4096, 1024, 20  # for time

METHODS: dict[str, Method] = {
    "gpipe": GPipe(),
    "1f1b": OneFOneB(),
    "newest": PipeMare(),
    "corrected": PipeMare(t1=10, t2=0.135, t3=4),
    "recompute": PipeMare(recompute=2),
    "stashed": PipeDream(),
}


class Row(NamedTuple):
    """One method in one place: the largest relative difference of losses to the CPU's run (None:
    not compared), microbatches a second, and the share of the time the GPU was busy (None: not
    measured)."""

    method: str
    where: str
    difference: float | None
    rate: float
    busy: float | None


def gpu(rounds: int = 1) -> Iterator[Row]:
    """Check and measure; ValueError where there is no GPU."""
    gpus = here().gpus
    if not gpus:
        raise ValueError("torch sees no GPU here, and this bench is about GPUs")
    return _rows(rounds, gpus, min(gpus, SHALLOW))


def _rows(rounds: int, gpus: int, workers: int) -> Iterator[Row]:
    for name, method in METHODS.items():
        expected = _fit(method, "cpu", 0).losses
        places = [("one GPU", 0)] + ([(f"{workers} GPUs over NCCL", workers)] if gpus > 1 else [])
        for where, count in places:
            start = perf_counter()
            run = _fit(method, "cuda", count)
            seconds = perf_counter() - start
            yield Row(name, where, _difference(run.losses, expected), 4 * STEPS / seconds, None)
    for _ in range(rounds):
        yield _deep("newest", METHODS["newest"], 0)
        if gpus > 1:
            yield _deep("newest", METHODS["newest"], workers)


def _difference(losses: list[float], expected: list[float]) -> float:
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))


def _fit(method: Method, device: str, workers: int) -> Run:
    """The same small network and data everywhere."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(SHALLOW)]
    data = [(torch.randn(4 * ROWS, WIDTH), torch.randn(4 * ROWS, WIDTH)) for _ in range(3)]
    trainer = Trainer(
        layers, nn.functional.mse_loss, _sgd, method, SHALLOW, 4, workers=workers, device=device
    )
    return trainer.fit(data, STEPS)


def _sgd(named: list[tuple[str, nn.Parameter]]) -> torch.optim.Optimizer:
    return torch.optim.SGD(named, lr=0.01, momentum=0.9)


def _deep(name: str, method: Method, workers: int) -> Row:
    """Layers large enough to keep a GPU busy.  Busy, on one GPU: the time between two CUDA events
    around each layer's forward and backward, over the time of the run."""
    stages = max(SHALLOW, workers)
    layers = [Timed(DEEP_WIDTH) for _ in range(2 * stages)]
    batch = torch.randn(4 * DEEP_ROWS, DEEP_WIDTH), torch.randn(4 * DEEP_ROWS, DEEP_WIDTH)
    trainer = Trainer(
        layers, nn.functional.mse_loss, _sgd, method, stages, 4, workers=workers, device="cuda"
    )
    trainer.fit([batch], 3)
    for layer in layers:
        layer.pairs.clear()
    start = perf_counter()
    trainer.fit([batch], DEEP_STEPS)
    torch.cuda.synchronize()
    seconds = perf_counter() - start
    where = f"{workers} GPUs over NCCL" if workers else "one GPU"
    busy = None if workers else sum(layer.busy() for layer in layers) / seconds
    return Row(f"{name}, {DEEP_WIDTH} wide", where, None, 4 * DEEP_STEPS / seconds, busy)


class Timed(nn.Module):
    """A linear layer that brackets what the GPU does for it with CUDA events."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_cuda:
            return self.linear(x)
        begin, end = self._pair()
        begin.record()
        y = self.linear(x)
        end.record()
        if y.requires_grad and x.requires_grad:
            begin, end = self._pair()
            y.register_hook(lambda g, begin=begin: begin.record())
            x.register_hook(lambda g, end=end: end.record())
        return y

    def _pair(self) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.pairs.append(pair)
        return pair

    def busy(self) -> float:
        """Seconds between the events of all pairs whose two events were recorded."""
        done = [(a, b) for a, b in self.pairs if a.query() and b.query() and _recorded(a, b)]
        return sum(a.elapsed_time(b) for a, b in done) / 1e3


def _recorded(begin: torch.cuda.Event, end: torch.cuda.Event) -> bool:
    try:
        begin.elapsed_time(end)
    except (RuntimeError, ValueError):
        return False
    return True


def heading(rounds: int) -> str:
    """What the numbers are, and the names of the columns."""
    names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    return (
        f"{names or 'no GPU'}; losses to within {TOLERANCE:g} of the CPU's\n"
        f"{'method':22}{'where':22}{'difference':>12}{'microbatches/s':>16}{'busy':>8}"
    )


def line(row: Row) -> str:
    """One row as text; a difference that is too large is marked."""
    difference = ""
    if row.difference is not None:
        difference = f"{row.difference:.1e}{' !' if row.difference > TOLERANCE else ''}"
    busy = "" if row.busy is None else f"{row.busy:.2f}"
    return f"{row.method:22}{row.where:22}{difference:>12}{row.rate:>16.0f}{busy:>8}"
