"""The engines that a panel offers here, by the names on its switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..checks import unknown
from ..trainer.placement import Machine, here

T = TypeVar("T")


def engines(machine: Machine | None = None) -> dict[str, dict[str, Any]]:
    """name -> the `workers` and `device` that choose it; this machine's if none is given."""
    machine = machine or here()
    found: dict[str, dict[str, Any]] = {"kernel": {"workers": 0, "device": "cpu"}}
    if machine.forkserver:
        found["2 processes"] = {"workers": 2, "device": "cpu"}
    if machine.gpus == 1:
        found["GPU"] = {"workers": 0, "device": "cuda"}
    elif machine.gpus:
        found[f"{machine.gpus} GPUs"] = {"workers": "auto", "device": "cuda"}
    return found


def jobs(machine: Machine | None = None) -> dict[str, int]:
    """name -> how many runs go at a time where a panel has several to do: one, in this kernel, or
    two, each in a process of its own; on this machine if none is given."""
    machine = machine or here()
    return {"kernel": 1, "2 processes": 2} if machine.forkserver else {"kernel": 1}


def picked(name: str, offered: Mapping[str, T]) -> T:
    """What `offered` has for an engine's name.  ValueError for a name that it does not have."""
    if name not in offered:
        raise ValueError(unknown("engine", name, list(offered)))
    return offered[name]
