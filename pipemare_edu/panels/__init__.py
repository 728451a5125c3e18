"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .ledger import MemoryLedger, memory_ledger
from .live import LiveTraining, live_training
from .schedules import ScheduleLab, schedule_lab
from .segments import RecomputeSegments, recompute_segments
from .shown import Shown

__all__ = [
    "Goal",
    "LiveTraining",
    "MemoryLedger",
    "Panel",
    "RecomputeSegments",
    "ScheduleLab",
    "Shown",
    "StepDebugger",
    "live_training",
    "memory_ledger",
    "recompute_segments",
    "schedule_lab",
    "step_debugger",
]
