"""pipemare_edu: asynchronous pipeline-parallel training, to be run and looked at.

    import pipemare_edu as pm

    run = pm.train("digits", method="pipemare")          a task by name
    pm.Trainer(layers, loss, optimizer, method=...)      your own network
    pm.schedule("lockstep", stages=4, microbatches=2)    a pipeline on paper (no torch)

Names are imported when they are first used, so that what needs no torch does not load it.
"""

from __future__ import annotations

import importlib
from typing import Any

from .checks import unknown

__version__ = "0.1.0"

_HOMES = {
    "plan.ops": ["Op", "Operations", "parse"],
    "plan.schedules": ["schedule", "depths"],
    "plan.clock": ["simulate", "Timeline"],
    "trainer.methods": ["Method", "Sequential", "GPipe", "OneFOneB", "PipeDream", "PipeMare"],
    "trainer.registry": ["register", "method_names"],
    "trainer.trainer": ["Trainer"],
    "trainer.run": ["Run", "load"],
    "training": ["train"],
    "errors": [
        "PipelineError",
        "StageError",
        "ScheduleError",
        "DataError",
        "SplitError",
        "WorkerLost",
        "WeightSemanticsWarning",
    ],
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_WHERE, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(unknown(f"{__name__} name", name, __all__))
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
