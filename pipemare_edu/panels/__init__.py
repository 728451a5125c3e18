"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .annealing import Annealing, annealing
from .base import Goal, Panel
from .debugger import StepDebugger, step_debugger
from .ladder import VersionLadder, version_ladder
from .live import LiveTraining, live_training
from .race import Race, race
from .rates import StageRates, stage_rates
from .schedules import ScheduleLab, schedule_lab
from .shown import Shown
from .staleness import MeasuredStaleness, measured_staleness

__all__ = [
    "Annealing",
    "Goal",
    "LiveTraining",
    "MeasuredStaleness",
    "Panel",
    "Race",
    "ScheduleLab",
    "Shown",
    "StageRates",
    "StepDebugger",
    "VersionLadder",
    "annealing",
    "live_training",
    "measured_staleness",
    "race",
    "schedule_lab",
    "stage_rates",
    "step_debugger",
    "version_ladder",
]
