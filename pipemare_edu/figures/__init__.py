"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .curves import curves
from .gantt import gantt
from .ladder import ladder
from .replay import replay
from .staleness import staleness_bars
from .style import Figure, describe, placeholder

__all__ = [
    "Figure",
    "curves",
    "describe",
    "gantt",
    "ladder",
    "placeholder",
    "replay",
    "staleness_bars",
]
