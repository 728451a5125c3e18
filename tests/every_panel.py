"""Every panel that the package has, with arguments that make its run a short one."""

from __future__ import annotations

import re
from typing import Any

from pipemare_edu import panels

NAMES = [
    name
    for name in panels.__all__
    if isinstance(found := getattr(panels, name), type)
    and issubclass(found, panels.Panel)
    and found is not panels.Panel
]
# For the plain call, too.  A panel that is not here runs as it is.
SHORT: dict[str, dict[str, Any]] = {
    "Annealing": {"annealing": 10, "seeds": 1, "steps": 20},
    "GradientDiscrepancy": {"step": 20},
    "LiveTraining": {"stages": 4, "steps": 40},
    "NetworkThreshold": {"what": "one more"},
    "Race": {"methods": ["gpipe", "pipemare-t1"], "seeds": 1, "stages": 3, "steps": 20},
    "ScheduleLab": {"steps": 5},
    "StageRates": {"steps": 40},
    "Velocity": {"steps": 40},
}


def call(name: str) -> str:
    """The call that makes a panel."""
    arguments = ", ".join(f"{k}={v!r}" for k, v in SHORT.get(name, {}).items())
    return f"panels.{name}({arguments})"


def plain(name: str) -> str:
    """The plain call of the same arguments."""
    return call(name).replace(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), 1)
