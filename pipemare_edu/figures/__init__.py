"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .curves import curves
from .gantt import gantt
from .replay import replay
from .roots import roots
from .stability import Mark, stability_map
from .staleness import staleness_bars
from .style import Figure, describe, placeholder
from .threshold import growth, ratios

__all__ = [
    "Figure",
    "Mark",
    "curves",
    "describe",
    "gantt",
    "growth",
    "placeholder",
    "ratios",
    "replay",
    "roots",
    "stability_map",
    "staleness_bars",
]
