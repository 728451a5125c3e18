"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .bubbles import bubbles, idle_fraction, overhead
from .curves import curves
from .gantt import gantt
from .ladder import ladder
from .pipe import listing, pipe
from .replay import replay
from .roots import roots
from .stability import Mark, stability_map
from .staleness import staleness_bars
from .style import Figure, describe, placeholder
from .threshold import growth, ratios
from .walk import Walk, walk

__all__ = [
    "Figure",
    "Mark",
    "Walk",
    "bubbles",
    "curves",
    "describe",
    "gantt",
    "growth",
    "idle_fraction",
    "ladder",
    "listing",
    "overhead",
    "pipe",
    "placeholder",
    "ratios",
    "replay",
    "roots",
    "stability_map",
    "staleness_bars",
    "walk",
]
