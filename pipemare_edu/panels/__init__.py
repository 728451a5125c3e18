"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .live import LiveTraining, live_training
from .schedules import ScheduleLab, schedule_lab
from .shown import Shown

__all__ = [
    "Goal",
    "LiveTraining",
    "Panel",
    "ScheduleLab",
    "Shown",
    "StepDebugger",
    "live_training",
    "schedule_lab",
    "step_debugger",
]
