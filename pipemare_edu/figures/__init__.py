"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .board import Entry, recipe_board
from .bubbles import bubbles, idle_fraction, overhead
from .cell_runs import Line, cell_runs
from .curves import curves
from .gantt import gantt
from .ladder import ladder
from .pipe import listing, pipe
from .replay import replay
from .staleness import staleness_bars
from .style import Figure, describe, placeholder
from .walk import Walk, walk

__all__ = [
    "Entry",
    "Figure",
    "Line",
    "Walk",
    "bubbles",
    "cell_runs",
    "curves",
    "describe",
    "gantt",
    "idle_fraction",
    "ladder",
    "listing",
    "overhead",
    "pipe",
    "placeholder",
    "recipe_board",
    "replay",
    "staleness_bars",
    "walk",
]
