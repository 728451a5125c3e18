"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .ladder import VersionLadder, version_ladder
from .live import LiveTraining, live_training
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Goal",
    "LiveTraining",
    "MeasuredStaleness",
    "Panel",
    "Shown",
    "VersionLadder",
    "live_training",
    "measured_staleness",
    "version_ladder",
]
