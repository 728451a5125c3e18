"""How long a lesson's runs are on this machine: four profiles, one table.

    ci      the shortest run that still shows its point; also what the committed pages hold
    binder  one core that somebody else pays for
    laptop  the default
    gpu     only where torch sees a GPU

PIPEMARE_EDU_PROFILE chooses one; otherwise it is detected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from ..checks import unknown

NAMES = ("ci", "binder", "laptop", "gpu")

# Optimizer steps of every run in the lessons, "<lesson>.<run>": one column for each of NAMES.
STEPS = {
    "00.first": (40, 40, 40, 40),
    "00.live": (400, 400, 800, 800),
    "01.measure": (10, 20, 20, 20),
    "07.seeds": (400, 400, 400, 400),
    "05.moves": (150, 150, 400, 400),
    "05.slice": (60, 60, 400, 400),
    "08.slice": (128, 128, 400, 1600),
    "08.seed": (64, 64, 400, 800),
    "09.engines": (60, 60, 200, 200),
    "09.workers": (8, 12, 20, 20),
}

_BINDER = ("BINDER_SERVICE_HOST", "BINDER_LAUNCH_HOST", "BINDER_REPO_URL")


@dataclass(frozen=True)
class Profile:
    """One of NAMES.  `steps(run)` is how many optimizer steps that run takes."""

    name: str

    def steps(self, run: str) -> int:
        """Steps of the run called `run`; ValueError with the closest name if there is none."""
        if run not in STEPS:
            raise ValueError(unknown("run", run, STEPS))
        return STEPS[run][NAMES.index(self.name)]


def profile(name: str | None = None) -> Profile:
    """The profile called `name`, or PIPEMARE_EDU_PROFILE's, or the one that fits this machine.

    Raises ValueError for an unknown name.
    """
    chosen = name or os.environ.get("PIPEMARE_EDU_PROFILE") or detect(os.environ)
    if chosen not in NAMES:
        raise ValueError(unknown("profile", chosen, NAMES))
    return Profile(chosen)


@cache
def torch_sees_a_gpu() -> bool:
    """Whether torch can compute on a CUDA device (imports torch)."""
    import torch

    return torch.cuda.is_available()


def detect(env: Mapping[str, str], gpu: Callable[[], bool] = torch_sees_a_gpu) -> str:
    """The name of the profile that fits an environment."""
    if env.get("CI", "").lower() not in ("", "0", "false"):
        return "ci"
    if any(env.get(name) for name in _BINDER):
        return "binder"
    return "gpu" if gpu() else "laptop"
