"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .annealing import Annealing, annealing
from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .ladder import VersionLadder, version_ladder
from .ledger import MemoryLedger, memory_ledger
from .live import LiveTraining, live_training
from .race import Race, race
from .rates import StageRates, stage_rates
from .schedules import ScheduleLab, schedule_lab
from .segments import RecomputeSegments, recompute_segments
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Annealing",
    "Goal",
    "LiveTraining",
    "MeasuredStaleness",
    "MemoryLedger",
    "Panel",
    "Race",
    "RecomputeSegments",
    "ScheduleLab",
    "Shown",
    "StageRates",
    "StepDebugger",
    "VersionLadder",
    "annealing",
    "live_training",
    "measured_staleness",
    "memory_ledger",
    "race",
    "recompute_segments",
    "schedule_lab",
    "stage_rates",
    "step_debugger",
    "version_ladder",
]
