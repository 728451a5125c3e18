"""What a task is: data, a loss, metrics, and a setting for each of its networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ..checks import unknown
from ..trainer.registry import Fixes


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


class Rows(Protocol):
    """What data are made of: a tensor, or rows of different lengths (`text.Sentences`)."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: Any, /) -> Tensor: ...


Data = tuple[Rows | tuple[Rows, ...], Rows]  # inputs, targets


@dataclass(frozen=True)
class Task:
    """A task.

    train, test  (inputs, targets), row i of each being sample i
    metrics      {name: function(output, target)}, measured at evaluations
    score        the metric that a table shows (more is better)
    settings     the networks by name, the default first
    generate     (trained layers) -> {name: value}: what takes a search over outputs (beam search,
                 BLEU), measured once, after the drain
    at_once      samples of the test set that are evaluated together
    """

    name: str
    title: str
    train: Data
    test: Data
    loss: Callable[[Any, Any], Tensor]
    metrics: Mapping[str, Callable[[Any, Any], Any]]
    score: str
    settings: Mapping[str, Setting] = field(repr=False)
    generate: Callable[[Sequence[nn.Module]], dict[str, float]] | None = None
    at_once: int = 1000

    @property
    def samples(self) -> int:
        """Samples to train on."""
        return len(self.train[1])

    def tests(self) -> list[tuple[Any, Tensor]]:
        """The test set as batches of tensors, none of more than `at_once` samples."""
        parts = torch.arange(len(self.test[1])).split(self.at_once)
        return [take(self.test, part) for part in parts]

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

    def __init__(self, data: Data, batch: int, seed: int) -> None:
        self.data, self.batch = data, batch
        self._generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.data[1]) // self.batch

    def __iter__(self) -> Iterator[tuple[Any, Tensor]]:
        order = torch.randperm(len(self.data[1]), generator=self._generator)
        for part in order.split(self.batch)[: len(self)]:
            yield take(self.data, part)


def take(data: Data, part: Tensor) -> tuple[Any, Tensor]:
    """The samples with the numbers `part` as tensors: (inputs, targets)."""
    inputs, targets = data
    if isinstance(inputs, tuple):
        return tuple(rows[part] for rows in inputs), targets[part]
    return inputs[part], targets[part]


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Share of samples whose largest output is the target class, in per cent."""
    return (output.argmax(1) == target).float().mean() * 100


def sgd_cosine(named: Any, rate: float, steps: int) -> Any:
    """SGD without momentum, the rate falling to zero along a half cosine."""
    optimizer = torch.optim.SGD(named, lr=rate)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)


def adam(share: float, decay: str = "linear") -> Callable[[Any, float, int], Any]:
    """Adam(0.9, 0.98) as a Setting's optimizer: the rate rises for `share` of the steps to its
    peak, then falls to zero ("linear") or with the inverse square root ("inverse sqrt")."""

    def build(named: Any, rate: float, steps: int) -> Any:
        optimizer = torch.optim.Adam(named, lr=rate, betas=(0.9, 0.98))
        rise, roots = max(1, round(share * steps)), decay == "inverse sqrt"

        def factor(k: int) -> float:
            if k < rise:
                return (k + 1) / rise
            if roots:
                return (rise / (k + 1)) ** 0.5
            return max(steps - k, 0) / max(steps - rise, 1)

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    return build
