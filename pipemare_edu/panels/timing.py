"""Measure a synchronous schedule: train layers that take as long as they are told to."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import torch
from torch.nn.functional import mse_loss

from ..models.timed import WIDTH, timed
from ..trainer.methods import GPipe, Method, OneFOneB, Sequential
from ..trainer.run import Run
from ..trainer.trainer import Trainer

SCHEDULES: dict[str, Method] = {"naive": Sequential(), "gpipe": GPipe(), "1f1b": OneFOneB()}
SAMPLES = 4  # in a microbatch


def measuring(
    schedule: str, forward: Sequence[float], ratio: float, microbatches: int, steps: int
) -> Generator[Run, None, None]:
    """Train a timed layer on each stage, in chunks; each yield is the run so far.

    forward  units of work of every stage's forward; a backward has `ratio` times as many
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = timed(forward, [ratio * f for f in forward])
        x = torch.randn(SAMPLES * microbatches, WIDTH)
    trainer = Trainer(
        layers,
        mse_loss,
        lambda pairs: torch.optim.SGD(pairs, lr=0.01),
        SCHEDULES[schedule],
        stages=len(forward),
        microbatches=microbatches,
    )
    return trainer.chunks([(x, x)], steps)
