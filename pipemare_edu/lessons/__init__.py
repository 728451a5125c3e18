"""What a lesson's cells call: predictions, checks, hints, and how long its runs are."""

from .checks import NotAccepted, check, hint, solution, use
from .excerpt import excerpt, idle_share
from .logbook import logbook
from .predictions import compare, draw, predict, prediction
from .profiles import Profile, profile
from .progress import reset
from .ready import doctor

__all__ = [
    "NotAccepted",
    "Profile",
    "check",
    "compare",
    "doctor",
    "draw",
    "excerpt",
    "hint",
    "idle_share",
    "logbook",
    "predict",
    "prediction",
    "profile",
    "reset",
    "solution",
    "use",
]
