"""What a task is: data, a loss, metrics, and a setting for each of its networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..trainer.registry import Fixes, unknown


@dataclass(frozen=True)
class Setting:
    """A network and the numbers at which it trains well.

    layers     builds the layers, drawing from torch's random state
    optimizer  (named parameters, rate, steps) -> optimizer and scheduler
    fixes      T1, T2 and T3 for a run of `steps` steps
    """

    layers: Callable[[], list[nn.Module]]
    optimizer: Callable[[Any, float, int], Any]
    stages: int
    microbatches: int
    batch: int
    steps: int
    rate: float
    fixes: Fixes
    about: str = ""


@dataclass(frozen=True)
class Task:
    """A task.  train, test: (inputs, targets); settings: the networks by name, the default first;
    score: the metric that a table shows (more is better)."""

    name: str
    title: str
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    loss: Callable[[Any, Any], Tensor]
    metrics: Mapping[str, Callable[[Any, Any], Any]]
    score: str
    settings: Mapping[str, Setting] = field(repr=False)

    def setting(self, network: str | None = None) -> Setting:
        """The setting of a network, or of the default one; ValueError if there is none."""
        name = network or next(iter(self.settings))
        if name not in self.settings:
            raise ValueError(unknown(f"network of {self.name}", name, self.settings))
        return self.settings[name]


class Shuffled:
    """Minibatches of `batch` samples in a new order on every pass; a short last one is left out.

    The order depends on the seed and the number of the pass alone.
    """

    def __init__(self, data: tuple[Tensor, Tensor], batch: int, seed: int) -> None:
        self.data, self.batch = data, batch
        self._generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.data[0]) // self.batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        inputs, targets = self.data
        order = torch.randperm(len(inputs), generator=self._generator)
        for part in order.split(self.batch)[: len(self)]:
            yield inputs[part], targets[part]


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Share of samples whose largest output is the target class, in per cent."""
    return (output.argmax(1) == target).float().mean() * 100


def sgd_cosine(named: Any, rate: float, steps: int) -> Any:
    """SGD without momentum, the rate falling to zero along a half cosine."""
    optimizer = torch.optim.SGD(named, lr=rate)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
