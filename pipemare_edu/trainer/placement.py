"""Where a pipeline runs: in this process or in workers, on the CPU or on GPUs, and why.

    workers   device   GPUs        where
    0         any      any         this process, on one device
    k         GPU      >= k        k workers, one GPU each, over NCCL
    k         GPU      fewer       as many workers as GPUs: NCCL refuses two on one
    k         CPU                  k workers, one thread each, over gloo
    "auto"    GPU      2 or more   one worker a GPU; with one GPU, this process on it
    "auto"    CPU                  a worker a core; with one core, this process
    "env"                          this process is one of torchrun's workers

device="auto" is the CPU, but for large work beside a GPU: below SMALL parameters a GPU's launches
cost more than its arithmetic saves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..checks import whole
from ..limits import processes

SMALL = 1_000_000  # parameters
START_SECONDS = 60.0  # how long workers may take to start, however short the time-out
_HOSTS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Machine:
    """What there is to choose from."""

    gpus: int
    cores: int
    forkserver: bool
    env: Mapping[str, str]


def here() -> Machine:
    """This machine."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Machine(gpus, processes(), os.name != "nt", os.environ)


@dataclass(frozen=True)
class Placement:
    """workers: processes besides this one; 0 if the stages run in this one, which is then worker
    `rank` (under torchrun).  devices: one per worker (under torchrun this rank's own, for each).
    homes: each stage's worker."""

    workers: int
    devices: tuple[str, ...]
    homes: tuple[int, ...]
    why: str
    rank: int = 0

    def hosted(self, worker: int) -> range:
        """The stages of a worker."""
        mine = [i for i, home in enumerate(self.homes) if home == worker]
        return range(mine[0], mine[-1] + 1)

    @property
    def distributed(self) -> bool:
        """Is this process one of several that torchrun started?"""
        return not self.workers and len(self.devices) > 1

    @property
    def backend(self) -> str:
        """torch.distributed's: NCCL between GPUs, gloo between CPUs."""
        return "nccl" if self.devices[0].startswith("cuda") else "gloo"


def place(
    workers: int | str, device: str | torch.device, stages: int, parameters: int, machine: Machine
) -> Placement:
    """Choose.  Raises ValueError, naming the argument, for what is not here or not possible."""
    chosen, why = _device(device, parameters, machine)
    if workers == "env":
        return _under_torchrun(chosen, why, stages, machine)
    if workers == "auto":
        count, asked = _automatic(chosen, stages, machine), None
    elif isinstance(workers, str):
        raise ValueError(f'workers is {workers!r}: give a whole number, "auto" or "env"')
    else:
        count = asked = whole("workers", workers, 0)
    if count > stages:
        raise ValueError(
            f"workers is {count} and there are {stages} stages: a worker hosts at least one stage"
        )
    if count and not machine.forkserver:
        raise ValueError(
            f"workers is {workers!r}, and Windows has no forkserver to start them from: use "
            "workers=0, which runs every stage in this process"
        )
    if not count:
        place = f"{stages} {_plural('stage', stages)} in this process on {_name(chosen)}"
        return Placement(0, (chosen,), (0,) * stages, f"{place}: {why}")
    return _spread(count, asked, chosen, why, stages, machine)


def _spread(
    count: int, asked: int | None, chosen: str, why: str, stages: int, machine: Machine
) -> Placement:
    devices = [chosen] * count
    if chosen != "cpu":
        named = [chosen] if ":" in chosen else [f"cuda:{i}" for i in range(machine.gpus)]
        devices = named[:count]
        if asked is not None and len(devices) < asked:
            why += f"; {asked} workers were asked for, and one GPU serves one worker"
    count = len(devices)
    on = "the CPU, one thread each" if chosen == "cpu" else ", ".join(devices)
    place = f"{stages} {_plural('stage', stages)} in {count} {_plural('worker', count)} on {on}"
    return Placement(count, tuple(devices), homes(stages, count), f"{place}: {why}")


def homes(stages: int, workers: int) -> tuple[int, ...]:
    """Each stage's worker: consecutive stages, as evenly as can be."""
    return tuple(i * workers // stages for i in range(stages))


def _automatic(chosen: str, stages: int, machine: Machine) -> int:
    """How many workers what is here is good for."""
    if chosen != "cpu":
        count = 1 if ":" in chosen else machine.gpus
    else:
        count = machine.cores if machine.forkserver else 1
    return 0 if count < 2 or stages < 2 else min(count, stages)


def _device(device: str | torch.device, parameters: int, machine: Machine) -> tuple[str, str]:
    """ "cpu", "cuda" or "cuda:<n>", and why."""
    if device == "auto":
        if not machine.gpus:
            return "cpu", "no GPU is here"
        if parameters < SMALL:
            return "cpu", f"under a million parameters ({parameters:,}) a GPU would wait for Python"
        return "cuda", f"a GPU is here, and {parameters:,} parameters to keep it busy"
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError):
        asked = None
    if asked is None or asked.type not in ("cpu", "cuda"):
        raise ValueError(f'device is {device!r}: give "auto", "cpu" or "cuda"')
    if asked.type == "cuda" and (asked.index or 0) >= machine.gpus:
        seen = f"{machine.gpus} {_plural('GPU', machine.gpus)}" if machine.gpus else "no GPU"
        raise ValueError(f"device is {str(device)!r}, and torch sees {seen} here")
    return str(asked), "as asked"


def _under_torchrun(chosen: str, why: str, stages: int, machine: Machine) -> Placement:
    missing = [name for name in _HOSTS if name not in machine.env]
    if missing:
        raise ValueError(
            'workers is "env", and torchrun did not start this process '
            f"({', '.join(missing)} not set): start the script with torchrun, or give a number"
        )
    rank, world = int(machine.env["RANK"]), int(machine.env["WORLD_SIZE"])
    local = int(machine.env.get("LOCAL_RANK", 0))
    if world > stages:
        raise ValueError(
            f"torchrun started {world} workers for {stages} stages: a worker hosts at least one"
        )
    if chosen != "cpu" and int(machine.env.get("LOCAL_WORLD_SIZE", 1)) > machine.gpus:
        chosen, why = "cpu", "fewer GPUs than workers on this node, and NCCL wants one each"
    devices = [f"cuda:{local}" if chosen != "cpu" else "cpu"] * world
    place = f"{stages} stages in {world} workers that torchrun started, on {_name(devices[0])}"
    return Placement(0, tuple(devices), homes(stages, world), f"{place}: {why}", rank)


def said(stages: range) -> str:
    """Stages in words."""
    if len(stages) == 1:
        return f"stage {stages.stop}"
    return f"stages {stages.start + 1} to {stages.stop}"


def _name(device: str) -> str:
    return "the CPU" if device == "cpu" else device


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
