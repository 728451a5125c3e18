"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .ladder import VersionLadder, version_ladder
from .ledger import MemoryLedger, memory_ledger
from .live import LiveTraining, live_training
from .schedules import ScheduleLab, schedule_lab
from .segments import RecomputeSegments, recompute_segments
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Goal",
    "LiveTraining",
    "MemoryLedger",
    "MeasuredStaleness",
    "Panel",
    "RecomputeSegments",
    "ScheduleLab",
    "Shown",
    "StepDebugger",
    "VersionLadder",
    "live_training",
    "memory_ledger",
    "recompute_segments",
    "measured_staleness",
    "schedule_lab",
    "step_debugger",
    "version_ladder",
]
