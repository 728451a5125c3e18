"""What one learner has done in this kernel, in memory only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .notes import Note


@dataclass
class Progress:
    """predictions by name; by exercise id, how many hints were shown and the latest outcome."""

    predictions: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    def forget(self, name: str | None = None) -> None:
        """Drop everything, or what is known about one exercise or prediction."""
        for kept in (self.predictions, self.hints, self.outcomes):
            if name is None:
                kept.clear()
            else:
                kept.pop(name, None)


PROGRESS = Progress()  # a kernel has one learner


def reset(name: str | None = None) -> Note:
    """Forget predictions, hints and verdicts: all of them, or those of one exercise or prediction.

    Your code stays: only what the course remembers about it goes.
    """
    PROGRESS.forget(name)
    return Note(f"Forgotten: {'everything so far' if name is None else name}.")
