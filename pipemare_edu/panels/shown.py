"""What a plain call gives: the figures of a panel, and the value behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..figures import Figure, describe


@dataclass(frozen=True, repr=False)
class Shown:
    """Figures by name, and the value they show.  In a notebook it displays every figure."""

    figures: Mapping[str, Figure]
    value: Any = field(default=None)

    def __getitem__(self, name: str) -> Figure:
        return self.figures[name]

    def __repr__(self) -> str:
        return "\n".join(describe(figure) for figure in self.figures.values())

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for figure in self.figures.values():
            display(figure)
