"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .annealing import annealing
from .arrivals import Track, arrivals
from .board import Entry, recipe_board
from .bubbles import bubbles, idle_fraction, overhead
from .cell_runs import Line, cell_runs
from .curves import curves
from .discrepancy import discrepancy_bars
from .discrepancy_map import discrepancy_map
from .factors import Factors, factors
from .gantt import gantt
from .ladder import ladder
from .ledger import method_bytes, stage_bytes
from .pipe import listing, pipe
from .race import Racer, race
from .rates import rate_curves
from .replay import replay
from .roots import roots
from .scores import scores
from .segments import held_bars, segment_curve
from .speedup import speedup
from .stability import Mark, stability_map
from .staleness import staleness_bars
from .style import Figure, describe, headline, placeholder
from .threshold import growth, ratios
from .time_use import time_use
from .velocity import course, moves
from .walk import Walk, walk

__all__ = [
    "Entry",
    "Factors",
    "Figure",
    "Line",
    "Mark",
    "Racer",
    "Track",
    "Walk",
    "annealing",
    "arrivals",
    "bubbles",
    "cell_runs",
    "course",
    "curves",
    "describe",
    "discrepancy_bars",
    "discrepancy_map",
    "factors",
    "gantt",
    "growth",
    "headline",
    "held_bars",
    "idle_fraction",
    "ladder",
    "listing",
    "method_bytes",
    "moves",
    "overhead",
    "pipe",
    "placeholder",
    "race",
    "rate_curves",
    "ratios",
    "recipe_board",
    "replay",
    "roots",
    "scores",
    "segment_curve",
    "speedup",
    "stability_map",
    "stage_bytes",
    "staleness_bars",
    "time_use",
    "walk",
]
