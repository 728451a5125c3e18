"""The front door: a model, a loss, an optimizer and a method become a run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..checks import iterable, positive, whole
from ..errors import SplitError
from ..plan.split import check_split, split
from . import checkpoint
from .blueprint import Blueprint
from .evaluation import Evaluation
from .feed import check_sizes, length, sizes_ahead, starves_on_one_sample, told
from .files import refuse_unwritable
from .fit import Fit
from .inprocess import InProcess
from .methods import Method
from .placement import here, place
from .randomness import Sandbox
from .ranks import Ranks
from .registry import named
from .run import Plan, Run
from .session import Engine, Session, last
from .trace import Trace
from .updates import StageOptimizer
from .workers import Workers


class Trainer:
    """Trains `layers` as a pipeline, in this process or in workers.

    layers        list of modules (or an nn.Sequential); each takes and returns a tensor or a tuple
                  of tensors.  They are trained in place; a stage's parameters become views of one
                  flat tensor.  BatchNorm sees one microbatch at a time.
    loss          loss(output, target) -> mean over its count: samples, or loss.count(target)
    optimizer     called once per stage with trainable (name, parameter) pairs; returns a torch
                  optimizer or (optimizer, lr_scheduler), stepped once per minibatch
    method        a method's name or value, such as pm.PipeMare(t1=400, t2=0.135)
    stages        how many, split by parameter counts; or a list of layer counts
    microbatches  N, cut from each minibatch
    workers       0: every stage in this process.  k: worker processes that share the stages; on the
                  CPU they give the same bits.  "auto": what this machine has.  "env": this process
                  is one of those that torchrun started
    device        "auto" (the CPU, or a GPU for large work), "cpu", "cuda"; run.config["placement"]
                  says what was picked and why
    seed          keys every random draw of the layers, by (seed, layer, microbatch)
    clip          largest gradient norm: over all stages in synchronous methods, of each stage by
                  itself in asynchronous ones (during T3 too)
    timeout       seconds that all workers may be silent before the run fails
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
        workers: int | str = 0,
        device: str | torch.device = "auto",
        seed: int = 0,
        clip: float | None = None,
        timeout: float = 60,
        limit: float = 1e4,
    ) -> None:
        _check_arguments(layers, loss, optimizer)
        method = named(method) if isinstance(method, str) else method
        if not isinstance(method, Method):
            raise ValueError(f"method is {method!r}: give a name, or a value such as pm.GPipe()")
        self.layers = list(layers)
        self.blueprint = Blueprint(
            stage_counts(self.layers, stages),
            method,
            whole("microbatches", microbatches, 1),
            whole("seed", seed, 0),
            loss,
            optimizer,
            None if clip is None else positive("clip", clip),
            positive("limit", limit),
        )
        self.timeout = positive("timeout", timeout)
        parameters = sum(p.numel() for layer in self.layers for p in layer.parameters())
        everything = range(len(self.blueprint.counts))
        self.placement = place(workers, device, len(everything), parameters, here())
        # Several workers compute with copies: here the weights only stay between two fits.
        several = self.placement.workers or self.placement.distributed
        self.device = torch.device("cpu" if several else self.placement.devices[0])
        for layer in self.layers:
            layer.to(self.device)
        self.stages, self.optimizers = self.blueprint.build(self.layers, everything)
        _warn_of_untrained(self.optimizers)
        self.step = 0  # optimizer steps taken so far, by every stage
        self.seen = 0  # minibatches that the next fit passes over (a restored trainer)
        self.used = 0  # minibatches of its data that the last fit has used or passed over
        self.running = False  # between the first chunk of a fit and its end
        self.random_state = torch.get_rng_state()  # the caller's, when the last fit began
        self.remembered: dict[str, Any] = {}  # what checkpoints hold besides, for who resumes

    def fit(
        self,
        batches: Iterable[Any],
        steps: int | None = None,
        evaluate: Iterable[Any] | None = None,
        every: int = 0,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
        save_every: int = 0,
        save_to: str | Path = "",
    ) -> Run:
        """Train for `steps` minibatches, or one pass; a second fit goes on where the first ended.

        batches     iterable of (inputs, targets), iterated again while steps are left
        evaluate    held-out (inputs, targets) batches, or one pair: evaluated every `every` steps
                    and after the last; without it every and metrics say nothing
        metrics     {name: function(output, target) -> mean over its count}
        save_every  drain the pipe after every so many steps and write a checkpoint for `restore`
                    to the file save_to, in a folder that is there; "{step}" in its name is
                    replaced.  A drained pipe fills again, so this is part of what is trained: a run
                    that is resumed with the same save_every gives the bits of one that was never
                    interrupted.

        Ctrl-C returns the run so far.  A StageError carries it as `error.run`.
        """
        return last(self.chunks(batches, steps, evaluate, every, metrics, save_every, save_to))

    def chunks(
        self,
        batches: Iterable[Any],
        steps: int | None = None,
        evaluate: Iterable[Any] | None = None,
        every: int = 0,
        metrics: Mapping[str, Callable[..., Any]] | None = None,
        save_every: int = 0,
        save_to: str | Path = "",
        seconds: float = 0.05,
        full_trace: bool = False,
    ) -> Generator[Run, None, None]:
        """`fit` in chunks of about `seconds`; each yield is the run so far, the same object.

        Leaving the loop, or run.cancel(), stops the run.  full_trace keeps every event.
        """
        self.refuse_while_running("start another run")
        batches, steps = self._pass(batches, steps)
        every, save_every = whole("every", every, 0), whole("save_every", save_every, 0)
        if save_every and not str(save_to):
            raise ValueError("save_every needs a file to save to: give save_to as well")
        if save_every:
            refuse_unwritable("save_to", save_to)
        self._check(batches, steps)
        sandbox = Sandbox(self.device)
        evaluation = None
        if evaluate is not None:
            with sandbox:  # a loader that is read for evaluation draws nothing from the caller
                iterable("evaluate", evaluate, "pairs (inputs, targets), or one")
                pairs = told(_as_batches(evaluate), "evaluate")
                evaluation = Evaluation(pairs, self.blueprint.loss, metrics or {}, self.device)
        place, blueprint = self.placement, self.blueprint
        plan = Plan(
            blueprint.method, len(self.stages), blueprint.microbatches, self.step, every,
            evaluation is not None, save_every, place.homes if len(place.devices) > 1 else (),
        )  # fmt: skip
        run = Run(self._config(steps), plan=plan)
        run.trace = Trace(len(self.stages), plan.full, full=full_trace)
        self.random_state = torch.get_rng_state()
        self.used, self.seen = self.seen, 0
        fit = Fit(self, plan, self.step + steps, batches, evaluation, sandbox, run, str(save_to))
        return Session(fit, self._engine(fit)).chunks(seconds)

    def _engine(self, fit: Fit) -> Engine:
        if self.placement.workers:
            return Workers(fit, self.placement, self.timeout)
        if self.placement.distributed:
            return Ranks(fit, self.placement, self.timeout)
        built, feed = (self.stages, self.optimizers), fit.feed(self.device)
        return InProcess(fit, built, self.blueprint.interpreter(built, feed, fit.evaluation))

    def _pass(self, batches: Iterable[Any], steps: int | None) -> tuple[Iterable[Any], int]:
        """The batches and how many steps to take; None is what is left of the pass (after a
        restore), or one pass."""
        iterable("batches", batches, "pairs (inputs, targets), in a list or a DataLoader")
        if steps is None:
            if length(batches) is None:  # a stage's list has an end, so the pass is counted first
                batches = list(told(batches))
            if not length(batches):
                raise ValueError("batches is empty: there are no minibatches to train on")
            one = length(batches) or 1
            steps = one - self.seen % one
        return batches, whole("steps", steps, 1)

    def _check(self, batches: Iterable[Any], steps: int) -> None:
        """Refuse in advance what is known to fail later."""
        starves = starves_on_one_sample(self.layers)
        for size, what in sizes_ahead(batches, self.seen + steps):
            check_sizes(size, self.blueprint.microbatches, what, starves)
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
            "method": repr(self.blueprint.method),
            "stages": list(self.blueprint.counts),
            "microbatches": self.blueprint.microbatches,
            "steps": steps,
            "first_step": self.step,
            "seed": self.blueprint.seed,
            "clip": self.blueprint.clip,
            "clip_over": "all stages" if self.blueprint.method.synchronous else "each stage",
            "device": self.placement.devices[0],
            "workers": self.placement.workers,
            "placement": self.placement.why,
            "timeout": self.timeout,
        }


def _check_arguments(layers: Any, loss: Any, optimizer: Any) -> None:
    """ValueError for what is of another kind than the Trainer takes."""
    try:
        iterable("layers", layers, "a list of modules")
    except ValueError as error:
        raise SplitError(str(error)) from None
    if not callable(loss) or isinstance(loss, type):
        raise ValueError(f"loss is {loss!r}: give a function of (output, target)")
    if not callable(optimizer):
        raise ValueError(
            f"optimizer is a {type(optimizer).__name__}: give a function that builds one, as "
            "in  lambda named: torch.optim.SGD(named, lr=0.1)"
        )


def _warn_of_untrained(optimizers: Sequence[StageOptimizer | None]) -> None:
    """Frozen layers (requires_grad=False) are nobody's mistake; other weights without an optimizer
    may be, though torch allows them."""
    if not any(optimizers):
        warnings.warn("no layer has a trainable parameter: nothing will be trained", stacklevel=3)
    if left := [name for built in optimizers if built for name in built.left_out()]:
        names = ", ".join(left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
        warnings.warn(
            f"the optimizer leaves out {names}: not trained, though gradients are computed for "
            "them; if that is meant, freeze them with requires_grad_(False)",
            stacklevel=3,
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
        if isinstance(stages, str) or not isinstance(stages, Iterable):
            stages = whole("stages", stages, 1)
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
