"""The end of what a run kept, placed by the clock, less the run-in that replaying begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..plan.clock import Event
from .replay import replay

if TYPE_CHECKING:
    from ..trainer.run import Run

BARS = 500  # most operations in the chart of a run
UNIT = {"F": 1.0, "B": 1.0, "R": 1.0, "E": 1.0}  # model time of an operation


def workers(run: Run) -> int:
    """How many workers a run had; 0 if all of it was in one process."""
    return len(set(run.plan.homes)) if run.plan else 0


def settled(
    run: Run, unit: dict[str, float] | None = None
) -> tuple[list[Event], tuple[float, float] | None]:
    """(events, the span of them to show; None if that is all).  `unit` is as in `replay`.

    What several workers did at the same time stays where it was, unless `unit` asks otherwise.
    """
    events = run.trace.events[-run.trace.window :]
    if unit is not None or not workers(run):
        events = replay(events, unit)
    return events, _steady(events)


def _steady(events: Sequence[Event]) -> tuple[float, float] | None:
    """The last part of a longer run in which its pipe is neither filling nor draining.

    What came before `events` counts as done at once, so at first stages wait in a wave that is none
    of the run's.  It is over when the first gradient of the last stage has come to the first.
    """
    if len(events) <= BARS:
        return None
    last = max(e.stage for e in events)
    turned = min((e.index for e in events if e.stage == last and e.kind == "B"), default=0)
    settled = [e.start for e in events if e.stage == 0 and e.kind == "B" and e.index >= turned]
    end = max((e.end for e in events if e.stage == 0 and e.kind == "F"), default=0.0)
    shown = sorted(e.start for e in events if e.start < end)[-BARS:]
    start = max([*settled[:1], *shown[:1]], default=end)
    return (start, end) if start < end else None
