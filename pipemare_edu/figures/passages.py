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
    name = f"Stage {e.stage + 1}, {KINDS[e.kind].name}"
    if e.kind in "UE":
        return f"{name} {e.index}: {_of_update(rows[e.stage], e)}."
    name, reads = f"{name} of microbatch {e.index}", f"It reads version {e.version}"
    seen = passage(rows[e.stage], e.index)
    if seen is None or seen.applied is None:
        return f"{name}: its gradient is used outside this chart. {reads}."
    assert seen.backward is not None
    other = seen.backward if e.kind == "F" else seen.forward
    return (
        f"{name}: {_updates(seen)} before its gradient is used, so τ = {seen.tau}. {reads}, its "
        f"{KINDS[other.kind].name} version {other.version}; update {seen.applied.index} applies "
        f"the gradient to version {seen.applied.version}."
    )


def _updates(seen: Passage) -> str:
    numbers = [u.index for u in seen.between]
    if not numbers:
        return "no update comes"
    if len(numbers) == 1:
        return f"1 update, {numbers[0]}, comes"
    return f"{len(numbers)} updates, {numbers[0]} to {numbers[-1]}, come"


def _of_update(row: Sequence[Event], e: Event) -> str:
    if e.kind == "E":
        return f"reads version {e.version}, for no gradient"
    mine = sorted(m for m, update in used_by(row).items() if update == e)
    many = f"microbatch{'es' * (len(mine) > 1)}"
    numbers = f" with the gradient of {many} {listed(mine)}" if mine else ""
    return f"makes version {e.version + 1}{numbers}"


def belonging(rows: Sequence[Sequence[Event]], place: Place) -> Iterator[Event]:
    """The chosen operation and what belongs to it."""
    e = find(rows, place)
    yield e
    seen = passage(rows[e.stage], e.index) if e.kind not in "UE" else None
    if seen is not None:
        yield from (seen.forward, *seen.between)
        if seen.backward is not None:
            yield seen.backward
