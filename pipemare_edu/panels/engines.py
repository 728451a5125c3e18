"""The engines that a panel offers here, by the names on its switch."""

from __future__ import annotations

from typing import Any

from ..trainer.placement import Machine, here


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
