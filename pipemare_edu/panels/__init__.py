"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .discrepancy_map import DiscrepancyMap, discrepancy_map
from .gradient_discrepancy import GradientDiscrepancy, gradient_discrepancy
from .ladder import VersionLadder, version_ladder
from .live import LiveTraining, live_training
from .schedules import ScheduleLab, schedule_lab
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness
from .velocity import Velocity, velocity

__all__ = [
    "DiscrepancyMap",
    "Goal",
    "GradientDiscrepancy",
    "LiveTraining",
    "MeasuredStaleness",
    "Panel",
    "ScheduleLab",
    "Shown",
    "StepDebugger",
    "Velocity",
    "VersionLadder",
    "discrepancy_map",
    "gradient_discrepancy",
    "live_training",
    "measured_staleness",
    "schedule_lab",
    "step_debugger",
    "velocity",
    "version_ladder",
]
