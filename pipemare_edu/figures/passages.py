"""What one microbatch meets at one stage, between the read of its forward and the gradient's use.

F9 reads version 2 ... U2 U3 U4 U5 U6 U7 U8 ... B9 U9 applies the gradient to version 9
                       |<-- 7 updates: tau -->|
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..plan.clock import Event
from ..plan.ops import parse
from .ages import used_by
from .style import KINDS, listed

Place = tuple[int, str]  # stage (from 0) and operation, such as (0, "F9")


class Passage(NamedTuple):
    """What one microbatch meets at one stage.

    forward, backward  its own operations; backward is None if it is not among the events
    applied            the update that uses its gradient; None if it is not among them
    between            the updates after the forward and before `applied`: tau of them
    """

    forward: Event
    backward: Event | None
    applied: Event | None
    between: tuple[Event, ...]

    @property
    def tau(self) -> int | None:
        """Updates between the forward's read and the gradient's use; None if it is not known."""
        return None if self.applied is None else len(self.between)


def passage(row: Iterable[Event], microbatch: int) -> Passage | None:
    """The passage of a microbatch through one stage; None if its forward is not there."""
    row = list(row)
    found = {e.kind: e for e in row if e.kind in "FB" and e.index == microbatch}
    if "F" not in found:
        return None
    applied = used_by(row).get(microbatch)
    end = row.index(applied) if applied is not None else len(row)
    between = tuple(e for e in row[row.index(found["F"]) : end] if e.kind == "U")
    return Passage(found["F"], found.get("B"), applied, between)


def find(rows: Sequence[Sequence[Event]], place: Place) -> Event:
    """The event of an operation.  Raises ValueError, saying what there is, if it is not there."""
    stage, text = place
    ops = parse(text)
    if len(ops) != 1:
        raise ValueError(f'{text!r} is not one operation, such as "F9"')
    if not 0 <= stage < len(rows):
        raise ValueError(f"stage {stage}: there are stages 0 to {len(rows) - 1}")
    for e in rows[stage]:
        if (e.kind, e.index) == ops[0]:
            return e
    raise ValueError(f"stage {stage + 1} (in code {stage}) has no {text} among these events")


def tell(rows: Sequence[Sequence[Event]], place: Place) -> str:
    """A chosen operation in words: what it reads, and how many updates that is old."""
    e = find(rows, place)
    where, name = f"Stage {e.stage + 1}", KINDS[e.kind].name
    if e.kind in "UE":
        return f"{where}, {name} {e.index}: {_of_update(rows[e.stage], e)}."
    seen = passage(rows[e.stage], e.index)
    reads = f"{where}, {name} of microbatch {e.index}: reads version {e.version}"
    if seen is None or seen.applied is None:
        return f"{reads}. Its gradient is used outside this chart."
    assert seen.backward is not None
    other = seen.backward if e.kind == "F" else seen.forward
    count = seen.tau
    return (
        f"{reads}; {_updates(seen)} before its gradient is used, so τ = {count}. "
        f"Its {KINDS[other.kind].name} reads version {other.version}, and update "
        f"{seen.applied.index} applies the gradient to version {seen.applied.version}."
    )


def _updates(seen: Passage) -> str:
    first, last = (seen.between[0].index, seen.between[-1].index) if seen.between else (0, 0)
    if not seen.between:
        return "no update comes"
    if first == last:
        return f"1 update, {first}, comes"
    return f"{len(seen.between)} updates, {first} to {last}, come"


def _of_update(row: Sequence[Event], e: Event) -> str:
    if e.kind == "E":
        return f"reads version {e.version}, for no gradient"
    mine = [m for m in {x.index for x in row if x.kind == "B"} if _uses(row, m, e)]
    numbers = f" with the gradient of microbatch {listed(sorted(mine))}" if mine else ""
    return f"makes version {e.version + 1}{numbers}"


def _uses(row: Sequence[Event], microbatch: int, update: Event) -> bool:
    seen = passage(row, microbatch)
    return seen is not None and seen.applied == update


def belonging(rows: Sequence[Sequence[Event]], place: Place) -> Iterator[Event]:
    """The chosen operation and what belongs to it."""
    e = find(rows, place)
    yield e
    seen = passage(rows[e.stage], e.index) if e.kind not in "UE" else None
    if seen is not None:
        yield from (seen.forward, *seen.between)
        if seen.backward is not None:
            yield seen.backward
