"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .board import RecipeBoard, recipe_board
from .debugger import StepDebugger, step_debugger
from .ladder import VersionLadder, version_ladder
from .live import LiveTraining, live_training
from .schedules import ScheduleLab, schedule_lab
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Goal",
    "LiveTraining",
    "MeasuredStaleness",
    "Panel",
    "RecipeBoard",
    "ScheduleLab",
    "Shown",
    "StepDebugger",
    "VersionLadder",
    "live_training",
    "measured_staleness",
    "recipe_board",
    "schedule_lab",
    "step_debugger",
    "version_ladder",
]
