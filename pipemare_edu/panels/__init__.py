"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from typing import NoReturn

from ..checks import unknown
from .annealing import Annealing, annealing
from .base import Goal, Panel
from .board import RecipeBoard, recipe_board
from .compare_runs import CompareRuns, compare_runs
from .debugger import StepDebugger, step_debugger
from .discrepancy_map import DiscrepancyMap, discrepancy_map
from .engine_switch import EngineSwitch, engine_switch
from .gradient_discrepancy import GradientDiscrepancy, gradient_discrepancy
from .ladder import VersionLadder, version_ladder
from .ledger import MemoryLedger, memory_ledger
from .live import LiveTraining, live_training
from .network_threshold import NetworkThreshold, network_threshold
from .race import Race, race
from .rates import StageRates, stage_rates
from .roots import Roots, roots
from .schedules import ScheduleLab, schedule_lab
from .segments import RecomputeSegments, recompute_segments
from .shown import Shown
from .stability_map import StabilityMap, stability_map
from .staleness import MeasuredStaleness, measured_staleness
from .time_to_target import TimeToTarget, time_to_target
from .two_workers import TwoWorkers, two_workers
from .velocity import Velocity, velocity

__all__ = [
    "Annealing",
    "CompareRuns",
    "DiscrepancyMap",
    "EngineSwitch",
    "Goal",
    "GradientDiscrepancy",
    "LiveTraining",
    "MeasuredStaleness",
    "MemoryLedger",
    "NetworkThreshold",
    "Panel",
    "Race",
    "RecipeBoard",
    "RecomputeSegments",
    "Roots",
    "ScheduleLab",
    "Shown",
    "StabilityMap",
    "StageRates",
    "StepDebugger",
    "TimeToTarget",
    "TwoWorkers",
    "Velocity",
    "VersionLadder",
    "annealing",
    "compare_runs",
    "discrepancy_map",
    "engine_switch",
    "gradient_discrepancy",
    "live_training",
    "measured_staleness",
    "memory_ledger",
    "network_threshold",
    "race",
    "recipe_board",
    "recompute_segments",
    "roots",
    "schedule_lab",
    "stability_map",
    "stage_rates",
    "step_debugger",
    "time_to_target",
    "two_workers",
    "velocity",
    "version_ladder",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(unknown(f"{__name__} name", name, __all__))
