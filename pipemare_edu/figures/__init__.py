"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .bubbles import bubbles, idle_fraction, overhead
from .curves import curves
from .gantt import gantt
from .pipe import listing, pipe
from .race import Track, race
from .replay import replay
from .scores import scores
from .staleness import staleness_bars
from .style import Figure, describe, placeholder
from .walk import Walk, walk

__all__ = [
    "Figure",
    "Track",
    "Walk",
    "bubbles",
    "curves",
    "describe",
    "gantt",
    "idle_fraction",
    "listing",
    "overhead",
    "pipe",
    "placeholder",
    "race",
    "replay",
    "scores",
    "staleness_bars",
    "walk",
]
