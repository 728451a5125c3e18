"""What a method holds while it trains the digits network: by formula, and counted in a run."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch

from ..checks import unknown, whole
from ..plan.held import held
from ..plan.ledger import ledger
from ..plan.schedules import schedule
from ..plan.segments import segment_length
from ..trainer.flight import Saved
from ..trainer.memory import probe_forward, state_copies
from ..trainer.methods import Method
from ..trainer.registry import named
from ..trainer.run import Plan
from ..trainer.trainer import Trainer
from .counted import BATCH, Counted, counting, first_batch, trainer

NAMES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "pipedream": "PipeDream",
    "pipemare-naive": "PipeMare",
    "pipemare-t2": "PipeMare + T2",
}
# Rates at which no run diverges: only its bytes matter here.
OPTIMIZERS = {
    "SGD": lambda named: torch.optim.SGD(named, lr=1e-2),
    "momentum": lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
    "Adam": lambda named: torch.optim.Adam(named, lr=1e-4),
}
LAYERS = 12  # of the digits network


@dataclass(frozen=True)
class Bill:
    """One pipeline whose bytes are asked for.  ValueError for what cannot be.

    method     one of NAMES               optimizer     one of OPTIMIZERS
    stages     P, up to the 12 layers     microbatches  N
    recompute  stages of a segment, 0 for none: asynchronous methods alone
    """

    method: str = "pipedream"
    optimizer: str = "momentum"
    stages: int = LAYERS
    microbatches: int = 1
    recompute: int = 0

    def __post_init__(self) -> None:
        for what, name, known in (
            ("method", self.method, NAMES),
            ("optimizer", self.optimizer, OPTIMIZERS),
        ):
            if name not in known:
                raise ValueError(unknown(what, name, known))
        whole("stages", self.stages, 1, LAYERS)
        whole("microbatches", self.microbatches, 1, BATCH // 2)
        segment_length(self.recompute, self.stages)
        self.how.reruns(self.stages)

    @property
    def how(self) -> Method:
        return replace(named(self.method), recompute=self.recompute)

    @property
    def label(self) -> str:
        """A name for it; what is not there is not said."""
        again = f", S={self.recompute}" * bool(self.recompute)
        return f"{NAMES[self.method]}, {self.setting}{again}"

    @property
    def setting(self) -> str:
        """What it has in common with the same pipeline under another method."""
        return f"{self.optimizer}, P={self.stages}, N={self.microbatches}"

    @property
    def steps(self) -> int:
        """Steps after which every stage has held its most: a full pipe, every weight version in it
        another one."""
        return 2 * Plan(self.how, self.stages, self.microbatches, 0).full + 4

    def beside(self) -> dict[str, Bill]:
        """{name: the same pipeline with each method}; recompute only where there can be one."""
        synchronous = {method: named(method).synchronous for method in NAMES}
        return {
            name: replace(self, method=m, recompute=0 if synchronous[m] else self.recompute)
            for m, name in NAMES.items()
        }

    def rows(self) -> list[dict[str, int]]:
        """Bytes by formula, a row for each stage (plan.ledger)."""
        return _rows(self)

    def trainer(self) -> Trainer:
        build = OPTIMIZERS[self.optimizer]
        return trainer(LAYERS, build, self.how, self.stages, self.microbatches)

    def counting(self) -> Generator[Counted, None, None]:
        """Train for real, in chunks; each yield is the run so far."""
        return counting(self.trainer(), self.steps)


class Probed(NamedTuple):
    """What the ledger starts from: per stage the bytes of its weights and what one microbatch
    saves there, and the optimizer's state tensors per weight."""

    weights: tuple[int, ...]
    saved: tuple[Saved, ...]
    copies: int


@lru_cache(maxsize=64)
def _probed(optimizer: str, stages: int, microbatches: int) -> Probed:
    built = Bill("gpipe", optimizer, stages, microbatches).trainer()
    weights = tuple(sum(p.nbytes for _, p in stage.named) for stage in built.stages)
    saved = probe_forward(built, first_batch())
    return Probed(weights, saved, state_copies(built.optimizers[0]))


@lru_cache(maxsize=64)
def _rows(bill: Bill) -> list[dict[str, int]]:
    known = _probed(bill.optimizer, bill.stages, bill.microbatches)
    method = bill.how
    lists = schedule(method.depth, bill.stages, bill.microbatches) if method.synchronous else ()
    return ledger(
        known.weights,
        method.depths(bill.stages),
        bill.microbatches,
        known.copies,
        method.stashes,
        bool(getattr(method, "t2", 0)),
        [s.bytes for s in known.saved],
        [s.input_bytes for s in known.saved],
        bill.recompute,
        held=[held(ops) for ops in lists] or None,
    )
