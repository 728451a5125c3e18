"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .live import LiveTraining, live_training
from .network_threshold import NetworkThreshold, network_threshold
from .roots import Roots, roots
from .shown import Shown
from .stability_map import StabilityMap, stability_map

__all__ = [
    "Goal",
    "LiveTraining",
    "NetworkThreshold",
    "Panel",
    "Roots",
    "Shown",
    "StabilityMap",
    "live_training",
    "network_threshold",
    "roots",
    "stability_map",
]
