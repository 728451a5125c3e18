"""Evaluation as an operation: what E feeds to the first stage and computes on the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any

import torch

from .feed import count, split_pair, to_device
from .value import Value


class Evaluation:
    """Held-out batches, read once, and what is measured on them: the loss and the metrics.

    metrics  {name: function(output, target) -> number}, each a mean over what the loss counts
    """

    def __init__(
        self,
        batches: Iterable[Any],
        loss: Callable[..., Any],
        metrics: Mapping[str, Callable[..., Any]],
        device: torch.device,
    ) -> None:
        pairs = [split_pair(pair, f"evaluate's batch {k}") for k, pair in enumerate(batches)]
        if not pairs:
            raise ValueError("evaluate has no batches: give at least one (inputs, targets) pair")
        if not isinstance(metrics, Mapping):
            raise ValueError(f"metrics is a {type(metrics).__name__}: give {{name: function}}")
        if "loss" in metrics:
            raise ValueError('a metric may not be called "loss": the loss is always measured')
        for name, metric in metrics.items():
            if not callable(metric):
                raise ValueError(f"metric {name!r} is a {type(metric).__name__}, not a function")
        self.batches = len(pairs)
        self.inputs = [to_device(x, device) for x, _ in pairs]
        self._targets = [to_device(t, device) for _, t in pairs]
        self._counts = [count(loss, t) for t in self._targets]
        if not sum(self._counts):
            raise ValueError("evaluate has nothing to count: every target is left out")
        self._measures = {"loss": loss, **metrics}

    def share(self, first: bool, last: bool) -> Evaluation:
        """What a worker needs of it: inputs for the first stage, targets for the last."""
        part = copy(self)
        if not first:
            part.inputs = []
        if not last:
            part._targets, part._measures = [], {}
        return part

    def to(self, device: torch.device) -> Evaluation:
        """The same on another device."""
        moved = copy(self)
        moved.inputs = [to_device(x, device) for x in self.inputs]
        moved._targets = [to_device(t, device) for t in self._targets]
        return moved

    def score(self, outputs: list[Value]) -> dict[str, float]:
        """Means over all batches, weighted by their counts."""
        total = sum(self._counts)
        with torch.no_grad():
            return {
                name: sum(
                    float(measure(y, t)) * c
                    for y, t, c in zip(outputs, self._targets, self._counts, strict=True)
                    if c
                )
                / total
                for name, measure in self._measures.items()
            }
