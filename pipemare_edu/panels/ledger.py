"""MemoryLedger: what a method holds, by formula beside counted, stage by stage and method by
method."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..checks import unknown
from ..figures import Figure, method_bytes, stage_bytes
from ..figures.ledger import SHOWN, Row, size, total
from ..plan.copies import counted_factor
from ..trainer.registry import named
from ..training import warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .bill import LAYERS, NAMES, OPTIMIZERS, Bill
from .counted import Counted
from .shown import Shown

MOST_MICROBATCHES = 8


def _frugal(panel: Any) -> bool:
    ran = (bill for bill in panel.counted if bill.method == "pipemare-t2" and bill.stages == LAYERS)
    return any(
        2 * total(panel.counted[bill].run.memory)
        < total(replace(bill, method="pipedream", recompute=0).rows())
        for bill in ran
    )


GOAL = Goal(
    "Run PipeMare with T2 at 12 stages, and hold less than half of what PipeDream would hold "
    "without recompute.",
    _frugal,
)


class MemoryLedger(Panel):
    """Bytes of the digits network in a pipeline.  The formula follows every control at once; Run
    trains and counts.

    method        "gpipe", "1f1b", "pipedream", "pipemare-naive" or "pipemare-t2"
    optimizer     "SGD", "momentum" or "Adam"
    stages, microbatches   P and N
    recompute     stages of a recompute segment, 0 for none
    shown         "everything", "weights and optimizer", or "activations"
    goal          what a learner should bring about, or None

    `now` is what the controls ask for; `counted` has every run that is done, by its Bill;
    `result()` is the last one (Counted), or None.  Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        method: str = "pipedream",
        optimizer: str = "momentum",
        stages: int = LAYERS,
        microbatches: int = 1,
        recompute: int = 0,
        shown: str = "everything",
        goal: Goal | None = GOAL,
    ) -> None:
        warm_up()
        start = Bill(method, optimizer, stages, microbatches, recompute)
        self.counted: dict[Bill, Counted] = {}
        self.of: Bill | None = None  # what the last run was of
        self.last: Counted | None = None
        views = {"shown": c.choice("shown", tuple(SHOWN), _known(shown))}
        text = words.text_form("MemoryLedger", asdict(start) | {"shown": shown}, "two figures")
        super().__init__(_controls(start), text, goal, views)
        for name, control in self.controls.items():
            fits = name in ("method", "stages")
            self.follow(control, *[self._offer_segments] * fits)
        self._offer_segments()
        self.say(self.reading())

    @property
    def now(self) -> Bill:
        """What the controls stand at."""
        return Bill(**self.settings)

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        bill = Bill(**settings)
        for found in bill.counting():
            self.of, self.last = bill, found
            if self.stopping:
                found.run.cancel()
            yield found.run.steps / bill.steps
        if found.run.status == "done":
            self.counted[bill] = found

    def draw(self, live: bool = False) -> dict[str, Figure]:
        if live:
            return {}
        return figures(self.now, self.counted, self.views["shown"].value)

    def outcome(self) -> tuple[str, str]:
        if self.last is None or self.of is None:
            return "ready", self.reading()
        run = self.last.run
        said = f"{run.status.capitalize()}: {run.steps} of {self.of.steps} steps."
        return run.status, f"{said} {tell(self.of, self.last)}" if run.status == "done" else said

    def reading(self) -> str:
        return read(self.now)

    def value(self) -> Counted | None:
        return self.last

    def _offer_segments(self) -> None:
        """Offer the segments that there can be: at most P stages, and none where every step
        waits."""
        slider = self.controls["recompute"]
        slider.disabled = named(self.controls["method"].value).synchronous
        slider.max = 0 if slider.disabled else self.controls["stages"].value


def memory_ledger(
    method: str = "pipedream",
    optimizer: str = "momentum",
    stages: int = LAYERS,
    microbatches: int = 1,
    recompute: int = 0,
    shown: str = "everything",
    run: bool = True,
) -> Shown:
    """What MemoryLedger shows after one Run, without widgets; `.value` is what was counted.

    run=False counts nothing and shows what MemoryLedger does before a Run.
    """
    bill, shown = Bill(method, optimizer, stages, microbatches, recompute), _known(shown)
    counted = {}
    if run:
        *_, counted[bill] = bill.counting()
    return Shown(figures(bill, counted, shown), counted.get(bill))


def figures(bill: Bill, counted: Mapping[Bill, Counted], shown: str) -> dict[str, Figure]:
    """The stages of this bill, and the methods beside it."""
    beside = bill.beside()
    found = counted.get(bill)
    return {
        "stages": stage_bytes(bill.rows(), found.run.memory if found else None, shown, bill.label),
        "methods": method_bytes(
            {name: other.rows() for name, other in beside.items()},
            {name: counted[o].run.memory for name, o in beside.items() if o in counted},
            shown,
            bill.setting,
        ),
    }


def read(bill: Bill) -> str:
    """All bytes by formula, and weights and optimizer as a multiple of GPipe's."""
    rows = bill.rows()
    return f"{bill.label}: {size(total(rows))} by formula, {_copies(rows)}."


def tell(bill: Bill, counted: Counted) -> str:
    """The same, counted."""
    rows = counted.run.memory
    return (
        f"{bill.label}: {size(total(rows))} counted, {_copies(rows)}; {counted.slots} stage "
        "activations."
    )


def _copies(rows: Sequence[Row]) -> str:
    return (
        "activations included; weights and optimizer alone are "
        f"{counted_factor(rows):.2f} times GPipe's"
    )


def _known(shown: str) -> str:
    if shown not in SHOWN:
        raise ValueError(unknown("choice of what is shown", shown, SHOWN))
    return shown


def _controls(start: Bill) -> dict[str, Any]:
    count = c.count
    return {
        "method": c.choice("method", [(name, key) for key, name in NAMES.items()], start.method),
        "optimizer": c.choice("optimizer", tuple(OPTIMIZERS), start.optimizer),
        "stages": count("stages", start.stages, LAYERS, follow=True),
        "microbatches": count("microbatches", start.microbatches, MOST_MICROBATCHES, follow=True),
        "recompute": count("recompute S", start.recompute, LAYERS, least=0, follow=True),
    }
