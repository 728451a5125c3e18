"""A real run that remembers its weights, and its gradients had backwards read other weights.

The trainer's own stages do the work.  For a minibatch that would come next, each stage's forward
reads the weights of tau_i steps ago, as in the pipe; its backward reads in turn the same weights
(the true gradient), the newest, and T2's estimate.  One microbatch a minibatch throughout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import tasks
from ..tasks.task import Shuffled
from ..trainer.methods import PipeMare
from ..trainer.stage import Stage
from ..trainer.value import Value
from ..trainer.weights import Corrected, InUse, Newest
from ..training import Job, prepare

SAMPLE = 200  # weights of each stage whose whole course is kept
BATCHES = 8  # minibatches over which gradients are compared
FIXES = ("none", "T1", "T2", "T1+T2")


class Noted(Corrected):
    """T2's weights policy, taking notes: the last tau versions, and of some weights every one.

    corrects  False: it keeps its average, but backwards read the newest weights
    """

    def __init__(self, newest: Tensor, tau: float, gamma: float, corrects: bool) -> None:
        super().__init__(newest, tau, gamma)
        self.corrects = corrects
        self.recent: deque[Tensor] = deque(maxlen=int(tau))
        self.notes: list[Tensor] = []
        generator = torch.Generator().manual_seed(len(newest))
        self._some = torch.randperm(len(newest), generator=generator)[:SAMPLE].to(newest.device)

    def alters(self, operation: str, read: int, version: int, asynchronous: bool) -> bool:
        return self.corrects and super().alters(operation, read, version, asynchronous)

    def before_update(self, version: int, in_use: InUse) -> None:
        super().before_update(version, in_use)
        self.recent.append(self.newest.clone())
        self.notes.append(self.newest[self._some])

    def reads(self) -> tuple[Tensor, Tensor, Tensor]:
        """What is read now: by the forward whose backward is due, by a plain backward, by T2's."""
        newest = self.newest.clone()
        return self.recent[0], newest, newest - self.tau * self.delta

    def course(self) -> NDArray[np.float64]:
        """The weights of the sample over steps, shape (versions, weights), the newest last."""
        return torch.stack([*self.notes, self.newest[self._some]]).double().cpu().numpy()


@dataclass(frozen=True)
class Noting(PipeMare):
    """PipeMare that takes notes.  corrects: whether T2 is in use; its D is t2 either way."""

    corrects: bool = True

    def weights(self, newest: Tensor, tau: float) -> Newest:
        made = super().weights(newest, tau)
        assert isinstance(made, Corrected)
        return Noted(newest, tau, made.gamma, self.corrects)


def noting(
    network: str = "mlp", fixes: str = "T2", step: int = 100, rate: float | None = None,
    decay: float = float(np.exp(-2)), seed: int = 0,
) -> Job:  # fmt: skip
    """A run of the digits task that takes notes and ends after `step` steps of its full course.

    fixes: one of FIXES.  decay: T2's D.  None: the task's own rate.  ValueError as in prepare.
    """
    setting = tasks.get("digits").setting(network)
    if fixes not in FIXES:
        raise ValueError(f"fixes is {fixes!r}: it is one of {', '.join(FIXES)}")
    t1 = setting.fixes.t1 if "T1" in fixes else 0
    method = Noting(t1=t1, t2=decay, corrects="T2" in fixes)
    whole = prepare("digits", method, microbatches=1, network=network, rate=rate, seed=seed)
    return replace(whole, steps=step, every=step)


def policies(job: Job) -> list[list[Noted]]:
    """The notes of every stage; a stage without weights has none."""
    return [
        [f.policy for f in stage.flats if isinstance(f.policy, Noted)]
        for stage in job.trainer.stages
    ]


@dataclass(frozen=True)
class Discrepancy:
    """||g(u_fwd, u_bkwd) - g(u_fwd, u_fwd)|| of a stage with the newest weights as u_bkwd and with
    T2's, and the size ||g(u_fwd, u_fwd)||: root mean squares over minibatches."""

    newest: float
    t2: float
    size: float

    @property
    def shares(self) -> tuple[float, float]:
        """(newest, t2) as shares of the size; nan for a stage without weights."""
        return (self.newest / self.size, self.t2 / self.size) if self.size else (np.nan, np.nan)


def discrepancies(job: Job) -> Iterator[list[Discrepancy]]:
    """Per stage, once the job has run; yields after each of BATCHES minibatches what it has.

    It leaves the newest weights in place, but batch norms have seen the minibatches.
    """
    stages = job.trainer.stages
    reads = [[noted.reads() for noted in row] for row in policies(job)]
    forward, newest, t2 = ([[r[kind] for r in row] for row in reads] for kind in range(3))
    squares = np.zeros((3, len(stages)))
    batches = Shuffled(job.task.train, job.batch, job.seed)
    for n, (inputs, target) in zip(range(1, BATCHES + 1), batches, strict=False):
        true, plain, corrected = (
            gradients(stages, inputs, partial(_loss, job, target), forward, backward)
            for backward in (forward, newest, t2)
        )
        _write(stages, newest)
        squares += [
            [_squared(g, h) for g, h in zip(plain, true, strict=True)],
            [_squared(g, h) for g, h in zip(corrected, true, strict=True)],
            [_squared(h, 0 * h) for h in true],
        ]
        yield [Discrepancy(*column) for column in np.sqrt(squares / n).T.tolist()]


def gradients(
    stages: Sequence[Stage],
    inputs: Value,
    loss: Callable[[Value], Tensor],
    forward: Sequence[Sequence[Tensor]],
    backward: Sequence[Sequence[Tensor]],
) -> list[Tensor]:
    """Each stage's flat gradient of one minibatch, its forward reading the weights in `forward`
    and its backward those in `backward`: a list for each stage, one for each of its flat tensors.
    """
    value = inputs
    _write(stages, forward)
    for stage in stages:
        value = stage.forward(0, value, False, loss if stage is stages[-1] else None)
    _write(stages, backward)
    sent, found = None, []
    for stage in reversed(stages):
        sent = stage.backward(0, sent, False)
        found.append(_taken(stage))
    return found[::-1]


def _loss(job: Job, target: Value, output: Value) -> Tensor:
    return job.task.loss(output, target)


def _taken(stage: Stage) -> Tensor:
    """A stage's gradient as one tensor, taken off its parameters."""
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for _, p in stage.named]
    for _, p in stage.named:
        p.grad = None
    return torch.cat([part.reshape(-1) for part in parts]) if parts else torch.zeros(0)


def _write(stages: Sequence[Stage], weights: Sequence[Sequence[Tensor]]) -> None:
    for stage, row in zip(stages, weights, strict=True):
        for flat, w in zip(stage.flats, row, strict=True):
            flat.weights.copy_(w)


def _squared(a: Tensor, b: Tensor) -> float:
    return float((a - b).square().sum())
