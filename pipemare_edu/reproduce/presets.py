"""Which tasks and seeds a reproduction runs, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..checks import unknown, whole
from ..tasks import READERS

METHODS = {  # in the order of the report: from no staleness to all of the recipe
    "gpipe": "GPipe",
    "pipedream": "PipeDream",
    "pipemare-naive": "PipeMare naive",
    "pipemare-t1": "PipeMare T1",
    "pipemare-t1t2": "PipeMare T1+T2",
    "pipemare": "PipeMare T1+T2+T3",
}
FIRST_SEED = 10  # no task's settings were chosen on this seed or a later one


@dataclass(frozen=True)
class Part:
    """A task with one of its networks (None: the default one)."""

    task: str
    network: str | None = None

    @property
    def kind(self) -> str:
        """The task without the folder of its files."""
        return self.task.partition(":")[0]


@dataclass(frozen=True)
class Preset:
    """What to run.

    jobs     runs side by side; None: as many as there are cores
    origins  {a setting of the task: where its value is from}
    """

    name: str
    parts: tuple[Part, ...]
    seeds: tuple[int, ...]
    jobs: int | None = None
    origins: Mapping[str, str] = field(default_factory=dict)


def seeds_from(count: int) -> tuple[int, ...]:
    """So many seeds on which no setting was chosen."""
    return tuple(range(FIRST_SEED, FIRST_SEED + count))


RECALLED = "as we recall the paper"
OURS = "our choice"
_TRANSLATION = {
    "stages": RECALLED,
    "microbatches": OURS,
    "batch": OURS,
    "steps": f"{OURS}, in passes over the data",
    "rate": f"{OURS}; Adam with a linear warm-up, then the inverse square root",
    "t1": f"{RECALLED}: about five times the linear warm-up",
    "t2": RECALLED,
    "t3": f"{OURS}, in passes over the data; that the first ones are synchronous is reported",
}
_SHARED = {"stages": f"{OURS}: {RECALLED}, its 91 share embeddings, which two stages cannot"}
_IMAGES = {
    "stages": RECALLED,
    "microbatches": "derived: with it the memory formula gives the reported 2.7x",
    "batch": RECALLED,
    "steps": f"{RECALLED}: 200 passes over the data, here without augmentation",
    "rate": f"{RECALLED}; momentum SGD, a tenth after 40 % and again after 80 % of the steps",
    "t1": f"{RECALLED}: a quarter of the first constant-rate phase",
    "t2": RECALLED,
    "t3": "reported: not needed",
}

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("quick", (Part("words"), Part("shapes")), seeds_from(3)),
        Preset(
            "full",
            (Part("words"), Part("phrases"), Part("shapes"), Part("digits", "bottleneck")),
            seeds_from(5),
        ),
        Preset("paper-cifar10", (Part("cifar10"),), seeds_from(3), 1, _IMAGES),
        Preset("paper-iwslt14", (Part("iwslt14"),), seeds_from(3), 1, _TRANSLATION),
        Preset("paper-wmt17", (Part("wmt17"),), seeds_from(3), 1, _TRANSLATION | _SHARED),
    )
}


def choose(name: str, tasks: Sequence[str] = (), seeds: Sequence[int] = ()) -> Preset:
    """The preset called `name`, with other tasks or seeds if they are given.

    A task that the preset has too keeps its network; a preset whose task reads the user's files
    takes that task alone, with a folder.  Raises ValueError for an unknown preset (with the closest
    one), for a task named twice or one that is not such a preset's, and for a seed below 0.
    """
    if name not in PRESETS:
        raise ValueError(unknown("preset", name, PRESETS))
    preset = PRESETS[name]
    known = {part.kind: part for part in preset.parts}
    parts = [replace(known.get(t.partition(":")[0], Part(t)), task=t) for t in tasks]
    for part in parts:
        if parts.count(part) > 1:
            raise ValueError(f"task {part.task} is named twice")
        if READERS.keys() & known and part.kind not in known:
            [own] = known
            raise ValueError(f"preset {name} is for {own}:FOLDER alone, not for {part.task}")
    kept = tuple(whole("seed", seed, 0) for seed in seeds) or preset.seeds
    return replace(preset, parts=tuple(parts) or preset.parts, seeds=kept)
