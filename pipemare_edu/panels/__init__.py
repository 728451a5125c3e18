"""Panels: controls, a goal, Run, Cancel, figures and words; each has a plain call that needs no
widgets."""

from .base import Goal, Panel
from .live import LiveTraining, live_training
from .shown import Shown

__all__ = ["Goal", "LiveTraining", "Panel", "Shown", "live_training"]
