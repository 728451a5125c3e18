"""A page of somebody's logbook: runs from which to learn what one fix does, or not."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .notes import Note


@dataclass(frozen=True)
class Entry:
    """The settings of a run."""

    t1: bool
    t2: bool
    t3: bool
    stages: int
    rate: float
    seed: int

    def differs(self, other: Entry) -> list[str]:
        """The names of the settings in which two runs differ."""
        names = [field.name for field in fields(self)]
        return [_NAMES[n] for n in names if getattr(self, n) != getattr(other, n)]

    @property
    def words(self) -> list[str]:
        fixes = ["on" if on else "-" for on in (self.t1, self.t2, self.t3)]
        return [*fixes, str(self.stages), f"{self.rate:g}", str(self.seed)]


_NAMES = {"t1": "T1", "t2": "T2", "t3": "T3", "stages": "P", "rate": "rate", "seed": "seed"}

RUNS = {
    "A": Entry(False, False, False, 8, 0.2, 0),
    "B": Entry(True, True, False, 8, 0.2, 0),
    "C": Entry(True, False, False, 8, 0.2, 1),
    "D": Entry(False, True, False, 8, 0.4, 0),
    "E": Entry(True, True, True, 8, 0.2, 1),
    "F": Entry(False, True, False, 8, 0.2, 0),
    "G": Entry(True, True, False, 8, 0.2, 1),
    "H": Entry(True, False, True, 8, 0.2, 1),
}


def logbook() -> Note:
    """The page as a table."""
    rows = [["run", *_NAMES.values()], *([letter, *run.words] for letter, run in RUNS.items())]
    return Note("\n".join("  " + "".join(f"{word:>6}" for word in row) for row in rows))
