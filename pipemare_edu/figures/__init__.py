"""Figures: values in, Plotly figures out.  No widgets, no training, no torch.

Each figure says its message in its title and carries a description in words (`describe`).  The live
form of a figure is figures.fig.Fig.
"""

from .annealing import annealing
from .arrivals import Track, arrivals
from .bubbles import bubbles, idle_fraction, overhead
from .curves import curves
from .gantt import gantt
from .ladder import ladder
from .ledger import method_bytes, stage_bytes
from .pipe import listing, pipe
from .race import Racer, race
from .rates import rate_curves
from .replay import replay
from .scores import scores
from .segments import held_bars, segment_curve
from .staleness import staleness_bars
from .style import Figure, describe, placeholder
from .walk import Walk, walk

__all__ = [
    "Figure",
    "Racer",
    "Track",
    "Walk",
    "annealing",
    "arrivals",
    "bubbles",
    "curves",
    "describe",
    "gantt",
    "held_bars",
    "idle_fraction",
    "ladder",
    "listing",
    "method_bytes",
    "overhead",
    "pipe",
    "placeholder",
    "race",
    "rate_curves",
    "replay",
    "scores",
    "segment_curve",
    "stage_bytes",
    "staleness_bars",
    "walk",
]
