"""The first cell of every lesson: is everything here?"""

from __future__ import annotations

from .. import doctor as machine
from .notes import Note
from .profiles import profile


def doctor(details: bool = False) -> Note:
    """Say that everything is here, or what is missing; with details, everything that was found."""
    found = machine.problems()
    said = "\n".join(found) or "Everything this course needs is here."
    if details:
        said += f"\n\n  {'profile':<11} {profile().name}\n"
        said += "\n".join(f"  {topic:<11} {value}" for topic, value in machine.report().items())
    return Note(said, "bad" if found else "good")
