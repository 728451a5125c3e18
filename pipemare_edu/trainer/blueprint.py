"""What stages are built from, wherever they are built: in this process or in workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from torch import Tensor, nn

from .evaluation import Evaluation
from .feed import Source
from .flat import Scratch
from .interpreter import Interpreter
from .links import Links
from .methods import Method
from .stage import Stage
from .updates import StageOptimizer

Built = tuple[list[Stage], list[StageOptimizer | None]]


@dataclass(frozen=True)
class Blueprint:
    """Everything that all stages share.  The fields are the Trainer's arguments; `counts` holds
    layers per stage."""

    counts: tuple[int, ...]
    method: Method
    microbatches: int
    seed: int
    loss: Callable[[Any, Any], Tensor]
    optimizer: Callable[[list[tuple[str, nn.Parameter]]], Any]
    clip: float | None
    limit: float

    def cut(self, layers: Sequence[nn.Module], hosted: range) -> list[nn.Module]:
        """The layers of the hosted stages."""
        ends = [0, *accumulate(self.counts)]
        return list(layers[ends[hosted.start] : ends[hosted.stop]])

    def build(self, layers: Sequence[nn.Module], hosted: range) -> Built:
        """The hosted stages over their `layers`, and an optimizer for each that has trainable
        weights."""
        taus = self.method.taus(len(self.counts), self.microbatches)
        ends, scratch = [0, *accumulate(self.counts)], Scratch()
        reruns = self.method.reruns(len(self.counts))
        stages = []
        for i in hosted:
            start = ends[i] - ends[hosted.start]
            mine = layers[start : start + self.counts[i]]
            policy = self._policy(taus[i])
            stages.append(Stage(i, mine, ends[i], policy, scratch, self.seed, reruns[i]))
        return stages, [self._optimizer(s, taus[s.index]) if s.named else None for s in stages]

    def _policy(self, tau: float) -> Callable[[Tensor], Any]:
        return lambda flat: self.method.weights(flat, tau)

    def _optimizer(self, stage: Stage, tau: float) -> StageOptimizer:
        return StageOptimizer(
            stage.index,
            stage.named,
            lambda pairs: self.method.optimizer(self.optimizer, pairs),
            lambda step: self.method.factor(tau, step),
        )

    def interpreter(
        self,
        built: Built,
        feed: Source,
        evaluation: Evaluation | None = None,
        links: Links | None = None,
    ) -> Interpreter:
        """An interpreter of the built stages."""
        return Interpreter(
            *built, feed, self.method, self.loss, evaluation, self.clip, self.limit, links,
            len(self.counts),
        )  # fmt: skip
