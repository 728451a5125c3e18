"""Bytes of a run: predicted from one probe forward and the schedule, and counted while it ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..plan.held import Held, held, versions_held
from ..plan.ledger import ledger
from .buffers import unmoved
from .feed import Feed
from .flight import Saved
from .probe import Probe
from .randomness import Sandbox
from .run import Plan, Run
from .stage import Stage, without_graph
from .updates import StageOptimizer

if TYPE_CHECKING:
    from .trainer import Trainer


def counted(stage: Stage, optimizer: StageOptimizer | None) -> dict[str, int]:
    """Bytes of one stage by kind, the most that was held at any time.

    weights      all parameters            gradients    one per trainable weight
    optimizer    its state tensors         stash        old weight versions (PipeDream)
    correction   T2's average              working      where the newest weights wait meanwhile
    activations  peak microbatches in flight times what one saves for its backward, as seen in
                 the first forward
    inputs       segment inputs that wait for a re-run (recompute), peak times the first's
    """
    trainable = sum(f.weights.nbytes for f in stage.flats)
    peaks = {"stash": 0, "correction": 0}
    for flat in stage.flats:
        if flat.policy.kind in peaks:
            peaks[flat.policy.kind] += flat.policy.peak
    return {
        "weights": sum(p.nbytes for layer in stage.layers for p in layer.parameters()),
        "gradients": trainable,
        "optimizer": optimizer.state_bytes() if optimizer else 0,
        **peaks,
        "working": trainable if any(peaks.values()) else 0,
        "activations": stage.peak.graphs * stage.saved.bytes,
        "inputs": stage.peak.inputs * stage.saved.input_bytes,
    }


@dataclass(frozen=True)
class StageMemory:
    """One stage's memory: bytes by kind (the kinds of `counted`), what one microbatch saves, and
    the most that the stage holds in flight."""

    bytes: tuple[tuple[str, int], ...]
    saved: Saved
    held: Held

    @property
    def tensors(self) -> int:
        """Saved tensors that live at the peak."""
        return self.saved.tensors * self.held.graphs


@dataclass(frozen=True)
class Memory:
    """A run's memory, stage by stage: what was predicted beside what was counted."""

    predicted: tuple[StageMemory, ...]
    counted: tuple[StageMemory, ...]


def memory(trainer: Trainer, run: Run, batch: tuple[Any, Any]) -> Memory:
    """The memory that `run` of `trainer` needed, predicted beside counted.

    run    the trainer's first run, in this process: worker processes send bytes alone (run.memory)
    batch  (inputs, targets) of the sizes of the run's first minibatch
    Raises ValueError for a run on workers, and what `predict` raises.
    """
    if run.config["workers"]:
        raise ValueError("the tensors of a run on workers are not counted here: use workers=0")
    rows = [
        StageMemory(tuple(row.items()), s.saved, s.peak)
        for row, s in zip(run.memory, trainer.stages, strict=True)
    ]
    return Memory(predict(trainer, batch, run.steps), tuple(rows))


def predict(
    trainer: Trainer, batch: tuple[Any, Any], steps: int, optimizer_copies: int | None = None
) -> tuple[StageMemory, ...]:
    """What a run of `steps` steps from the start will hold: one forward of one microbatch says
    what a stage saves, the schedule says how often, the method how many copies of its weights.

    batch             (inputs, targets) of the sizes of the run's first minibatch
    optimizer_copies  state tensors per weight; None: what is known of torch's own optimizers
    Nothing of the trainer changes.  Raises ValueError for an optimizer that is not known.
    """
    method, count, n = trainer.blueprint.method, len(trainer.stages), trainer.blueprint.microbatches
    lists = Plan(method, count, n, 0).lists(steps)
    depths, saved = method.depths(count), probe_forward(trainer, batch)
    out = []
    for i, (stage, optimizer) in enumerate(zip(trainer.stages, trainer.optimizers, strict=True)):
        kinds = {f.policy.kind for f in stage.flats}
        copies = state_copies(optimizer) if optimizer_copies is None else optimizer_copies
        trainable = sum(p.nbytes for _, p in stage.named)
        most = held(lists[i])
        [row] = ledger(
            [trainable], depths[i : i + 1], n, copies, "stash" in kinds, "correction" in kinds,
            [saved[i].bytes], [saved[i].input_bytes], held=[most],
            versions=[versions_held(lists[i])],
        )  # fmt: skip
        row["weights"] = sum(p.nbytes for layer in stage.layers for p in layer.parameters())
        out.append(StageMemory(tuple(row.items()), saved[i], most))
    return tuple(out)


def probe_forward(trainer: Trainer, batch: tuple[Any, Any]) -> tuple[Saved, ...]:
    """What one microbatch saves at each stage: a forward of the first microbatch of `batch` that
    moves no buffer and no random state, and whose graph is dropped."""
    blueprint = trainer.blueprint
    feed = Feed([batch], blueprint.microbatches, range(1), blueprint.loss, trainer.device)
    out = []
    with Sandbox(trainer.device):
        feed.ready(0, True, True)
        value, (target, _) = feed.inputs(0), feed.target(0)
        for stage in trainer.stages:
            modules = [m for layer in stage.layers for m in layer.modules()]
            known = stage.saved
            with unmoved(modules), Probe(stage, value, blueprint.method) as probe:
                output = stage.compute(value, 0)
                if stage is trainer.stages[-1]:
                    blueprint.loss(output, target)
            stage.saved = known
            out.append(probe.saved)
            value = without_graph(output)
    return tuple(out)


def state_copies(optimizer: StageOptimizer | None) -> int:
    """State tensors per weight of a torch optimizer; ValueError for one that is not known."""
    if optimizer is None:
        return 0
    built = optimizer.optimizer
    settings = built.param_groups[0]
    match type(built).__name__:
        case "SGD":
            return int(bool(settings["momentum"]))
        case "Adam" | "AdamW" | "NAdam" | "RAdam" | "Adamax":
            return 2 + bool(settings.get("amsgrad"))
        case "Adagrad":
            return 1
        case "RMSprop":
            return 1 + bool(settings["momentum"]) + bool(settings["centered"])
    raise ValueError(
        f"how much state a {type(built).__name__} keeps is not known: give optimizer_copies, its "
        "state tensors per weight"
    )
