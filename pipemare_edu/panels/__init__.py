"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .ladder import VersionLadder, version_ladder
from .live import LiveTraining, live_training
from .network_threshold import NetworkThreshold, network_threshold
from .roots import Roots, roots
from .schedules import ScheduleLab, schedule_lab
from .shown import Shown
from .stability_map import StabilityMap, stability_map
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Goal",
    "LiveTraining",
    "MeasuredStaleness",
    "NetworkThreshold",
    "Panel",
    "Roots",
    "ScheduleLab",
    "Shown",
    "StabilityMap",
    "StepDebugger",
    "VersionLadder",
    "live_training",
    "measured_staleness",
    "network_threshold",
    "roots",
    "schedule_lab",
    "stability_map",
    "step_debugger",
    "version_ladder",
]
