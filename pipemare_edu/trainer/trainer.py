"""The front door: a model, a loss, an optimizer and a method become a run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..checks import positive, whole
from ..errors import SplitError
from ..plan.split import check_split, split
from . import checkpoint
from .evaluation import Evaluation
from .feed import Feed, check_sizes, length, sizes_ahead, starves_on_one_sample
from .flat import Scratch
from .interpreter import Interpreter
from .methods import Method
from .randomness import Sandbox
from .registry import named
from .run import Plan, Run
from .session import Session, last
from .stage import Stage
from .trace import Trace
from .updates import StageOptimizer


class Trainer:
    """Trains `layers` as a pipeline, every stage in this process.

    layers        list of modules (or an nn.Sequential); each takes and returns a tensor or a tuple
                  of tensors.  They are trained in place; a stage's parameters become views of one
                  flat tensor.  BatchNorm sees one microbatch at a time.
    loss          loss(output, target) -> mean over its count: samples, or loss.count(target)
    optimizer     called once per stage with trainable (name, parameter) pairs; returns a torch
                  optimizer or (optimizer, lr_scheduler), stepped once per minibatch
    method        a method's name or value, such as pm.PipeMare(t1=400, t2=0.135)
    stages        how many, split by parameter counts; or a list of layer counts
    microbatches  N, cut from each minibatch
    workers       processes besides this one: this version has none, so only 0
    device        "auto" (the CPU in this engine), or a torch device
    seed          keys every random draw of the layers, by (seed, layer, microbatch)
    clip          largest gradient norm: over all stages in synchronous methods, of each stage by
                  itself in asynchronous ones (during T3 too)
    timeout       seconds that another process may be silent
    limit         a loss above it counts as diverged

    Raises ValueError (SplitError, DataError) for what cannot work, before anything runs.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        loss: Callable[[Any, Any], Tensor],
        optimizer: Callable[[list[tuple[str, nn.Parameter]]], Any],
        method: str | Method = "pipemare-naive",
        stages: int | Sequence[int] = 1,
        microbatches: int = 1,
        workers: int = 0,
        device: str | torch.device = "auto",
        seed: int = 0,
        clip: float | None = None,
        timeout: float = 60,
        limit: float = 1e4,
    ) -> None:
        _check_arguments(layers, loss, optimizer, workers)
        self.method = named(method) if isinstance(method, str) else method
        if not isinstance(self.method, Method):
            raise ValueError(f"method is {method!r}: give a name, or a value such as pm.GPipe()")
        self.layers, self.loss = list(layers), loss
        self.counts = stage_counts(self.layers, stages)
        self.microbatches = whole("microbatches", microbatches, 1)
        self.seed = whole("seed", seed, 0)
        self.clip = None if clip is None else positive("clip", clip)
        self.timeout = positive("timeout", timeout)
        self.limit = positive("limit", limit)
        self.device = _device(device)
        for layer in self.layers:
            layer.to(self.device)
        taus = self.method.taus(len(self.counts), self.microbatches)
        self.stages = self._stages(taus)
        self.optimizers = [
            self._optimizer(stage, tau, optimizer) if stage.named else None
            for stage, tau in zip(self.stages, taus, strict=True)
        ]
        self.step = 0  # optimizer steps taken so far, by every stage
        self.seen = 0  # minibatches that the next fit passes over (a restored trainer)
        self.used = 0  # minibatches of its data that the last fit has used or passed over
        self.running = False  # between the first chunk of a fit and its end
        self.random_state = torch.get_rng_state()  # the caller's, when the last fit began

    def _stages(self, taus: Sequence[float]) -> list[Stage]:
        firsts = [0, *accumulate(self.counts)]
        scratch = Scratch()
        reruns = self.method.reruns(len(self.counts))
        return [
            Stage(
                i,
                self.layers[firsts[i] : firsts[i + 1]],
                firsts[i],
                lambda flat, tau=tau: self.method.weights(flat, tau),  # type: ignore[misc]
                scratch,
                self.seed,
                reruns[i],
            )
            for i, tau in enumerate(taus)
        ]

    def _optimizer(self, stage: Stage, tau: float, build: Callable[..., Any]) -> StageOptimizer:
        return StageOptimizer(
            stage.index,
            stage.named,
            lambda pairs: self.method.optimizer(build, pairs),
            lambda step: self.method.factor(tau, step),
        )

    def fit(
        self,
        batches: Iterable[Any],
        steps: int | None = None,
        evaluate: Iterable[Any] | None = None,
        every: int = 0,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Run:
        """Train for `steps` minibatches, or one pass; a second fit goes on where the first ended.

        batches   iterable of (inputs, targets), iterated again while steps are left
        evaluate  held-out (inputs, targets) batches, or one pair: evaluated every `every` steps and
                  after the last; without it every and metrics say nothing
        metrics   {name: function(output, target) -> mean over its count}

        Ctrl-C returns the run so far.  A StageError carries it as `error.run`.
        """
        return last(self.chunks(batches, steps, evaluate, every, metrics))

    def chunks(
        self,
        batches: Iterable[Any],
        steps: int | None = None,
        evaluate: Iterable[Any] | None = None,
        every: int = 0,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
        seconds: float = 0.05,
        full_trace: bool = False,
    ) -> Generator[Run, None, None]:
        """`fit` in chunks of about `seconds`; each yield is the run so far, the same object.

        Leaving the loop, or run.cancel(), stops the run.  full_trace keeps every event.
        """
        self.refuse_while_running("start another run")
        batches, steps = self._pass(batches, steps)
        whole("every", every, 0)
        self._check(batches, steps)
        sandbox = Sandbox(self.device)
        evaluation = None
        if evaluate is not None:
            with sandbox:  # a loader that is read for evaluation draws nothing from the caller
                pairs = _as_batches(evaluate)
                evaluation = Evaluation(pairs, self.loss, metrics or {}, self.device)
        stages = range(len(self.stages))
        evaluates = evaluation is not None
        plan = Plan(self.method, len(stages), self.microbatches, self.step, every, evaluates)
        span = range(self.step, self.step + steps)
        feed = Feed(
            batches, self.microbatches, span, self.loss, self.device,
            starves_on_one_sample(self.layers), self.seen, sandbox.outside,
        )  # fmt: skip
        interpreter = Interpreter(
            self.stages, [plan.operations(i, span.stop) for i in stages], self.optimizers,
            feed, self.method, self.loss, evaluation, self.clip, self.limit,
        )  # fmt: skip
        run = Run(self._config(steps), losses=interpreter.losses, plan=plan)
        run.trace = Trace(len(stages), plan.full, full=full_trace)
        self.random_state = torch.get_rng_state()
        self.used, self.seen = self.seen, 0
        return Session(self, interpreter, run, sandbox).chunks(seconds)

    def _pass(self, batches: Iterable[Any], steps: int | None) -> tuple[Iterable[Any], int]:
        """The batches and how many steps to take; None is what is left of the pass (after a
        restore), or one pass."""
        if steps is None:
            if length(batches) is None:
                batches = list(batches)  # a stage's list has an end, so the pass is counted first
            if not length(batches):
                raise ValueError("batches is empty: there are no minibatches to train on")
            one = length(batches) or 1
            steps = one - self.seen % one
        return batches, whole("steps", steps, 1)

    def _check(self, batches: Iterable[Any], steps: int) -> None:
        """Refuse in advance what is known to fail later."""
        starves = starves_on_one_sample(self.layers)
        for size, what in sizes_ahead(batches, self.seen + steps):
            check_sizes(size, self.microbatches, what, starves)
        for stage in self.stages:
            stage.check_views()

    def refuse_while_running(self, what: str) -> None:
        """RuntimeError if a run of this trainer is under way."""
        if self.running:
            raise RuntimeError(
                f"cannot {what} while a run of this trainer is under way: end or cancel it first"
            )

    def save(self, path: str | Path) -> None:
        """Write weights, optimizer, scheduler, T2's average and position to `path`, no pickle."""
        checkpoint.save(self, path)

    def restore(self, path: str | Path) -> None:
        """Take back what `save` wrote, on any number of stages; the next fit goes on from there,
        passing over the minibatches already used."""
        checkpoint.restore(self, path)

    def _config(self, steps: int) -> dict[str, Any]:
        return {
            "method": repr(self.method),
            "stages": list(self.counts),
            "microbatches": self.microbatches,
            "steps": steps,
            "first_step": self.step,
            "seed": self.seed,
            "clip": self.clip,
            "clip_over": "all stages" if self.method.synchronous else "each stage",
            "device": str(self.device),
            "workers": 0,
            "timeout": self.timeout,
        }


def _check_arguments(layers: Any, loss: Any, optimizer: Any, workers: Any) -> None:
    """ValueError for what is of another kind than the Trainer takes."""
    if workers != 0:
        raise ValueError(f"workers is {workers!r}: this engine runs every stage here, workers=0")
    if isinstance(layers, nn.Module) and not isinstance(layers, Iterable):
        raise SplitError(f"layers is one {type(layers).__name__}: give a list of modules")
    if not callable(loss):
        raise ValueError(f"loss is {loss!r}: give a function of (output, target)")
    if not callable(optimizer):
        raise ValueError(
            f"optimizer is a {type(optimizer).__name__}: give a function that builds one, as "
            "in  lambda named: torch.optim.SGD(named, lr=0.1)"
        )


def stage_counts(layers: Sequence[nn.Module], stages: int | Sequence[int]) -> tuple[int, ...]:
    """Layers per stage: an exact min-max split by parameter counts, or the caller's own list.

    Raises SplitError for no layers, more stages than layers, counts that do not add up, or a tensor
    that layers of two stages share.
    """
    for j, layer in enumerate(layers):
        if not isinstance(layer, nn.Module):
            raise SplitError(f"layer {j} is a {type(layer).__name__}: layers are torch modules")
    try:
        if not isinstance(stages, Iterable):
            whole("stages", stages, 1)
            costs = [1 + sum(p.numel() for p in layer.parameters()) for layer in layers]
            counts = split(costs, stages)
        else:
            counts = check_split(stages, len(layers))
    except ValueError as error:
        raise SplitError(str(error)) from None
    _refuse_ties(layers, counts)
    return counts


def _refuse_ties(layers: Sequence[nn.Module], counts: Sequence[int]) -> None:
    home: dict[int, tuple[int, str]] = {}
    ends = list(accumulate(counts))
    for j, layer in enumerate(layers):
        stage = sum(j >= end for end in ends)
        for name, t in (*layer.named_parameters(), *layer.named_buffers()):
            first, other = home.setdefault(id(t), (stage, f"{j}.{name}"))
            if first != stage:
                raise SplitError(
                    f"tensor {j}.{name} of stage {stage + 1} is the same tensor as {other} of "
                    f"stage {first + 1}, and each stage updates its own: put both layers in one "
                    "stage (stages=[...]), or untie them"
                )


def _as_batches(evaluate: Iterable[Any]) -> Iterable[Any]:
    """One (inputs, targets) pair of tensors counts as one batch."""
    lone = isinstance(evaluate, tuple) and len(evaluate) == 2 and isinstance(evaluate[1], Tensor)
    return [evaluate] if lone else evaluate


def _device(device: str | torch.device) -> torch.device:
    """The device to compute on; ValueError for one that is not here."""
    try:
        chosen = torch.device("cpu" if device == "auto" else device)
    except RuntimeError:
        raise ValueError(f'device is {device!r}: give "auto", "cpu" or "cuda"') from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {device!r}, and torch sees no GPU here")
    return chosen
