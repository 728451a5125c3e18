"""What can be wrong with a learner's timetable: a function (P, N) -> triples of a slot (from 0), a
stage (from 1) and an operation.

Every fault is a sentence's worth of words, or "" if there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .cases import case, cases
from .reading import whole

Triple = tuple[int, int, str]
Timetable = Callable[[int, int], Iterable[Triple]]


def triples(timetable: Timetable) -> str:
    """The first entry that is no (slot, stage, operation)."""
    for stages, microbatches in cases():
        rows = timetable(stages, microbatches)
        if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
            return f"{case(stages, microbatches)}it returns {rows!r}"
        for row in rows:
            if fault := _no_triple(row):
                return f"{case(stages, microbatches)}one entry is {row!r}{fault}"
    return ""


def _no_triple(row: Any) -> str:
    """What keeps an entry from being a triple, as the end of a sentence."""
    if not isinstance(row, list | tuple) or len(row) != 3:
        return ", not three things"
    for name, n in zip(("slot", "stage"), row, strict=False):
        if whole(n) is None:
            return f", whose {name} is no whole number"
    return "" if isinstance(row[2], str) else ", whose operation is no text"


def _rows(timetable: Timetable, stages: int, microbatches: int) -> list[Triple]:
    rows = timetable(stages, microbatches)
    return [(int(slot), int(stage), op) for slot, stage, op in rows]


def stages_from_1(timetable: Timetable) -> str:
    """The first stage that there is not."""
    for stages, microbatches in cases():
        for _, stage, _ in _rows(timetable, stages, microbatches):
            if not 1 <= stage <= stages:
                return f"{case(stages, microbatches)}yours has a stage {stage}"
    return ""


def placed(timetable: Timetable) -> Iterator[tuple[int, int, dict[tuple[int, str], int]]]:
    """(P, N, {(stage, operation): slot}) for every case."""
    for stages, microbatches in cases():
        rows = _rows(timetable, stages, microbatches)
        yield stages, microbatches, {(stage, op): slot for slot, stage, op in rows}


def each_once(timetable: Timetable) -> str:
    """What is missing, there twice, or not asked for."""
    for stages, microbatches in cases():
        counts = Counter((stage, op) for _, stage, op in _rows(timetable, stages, microbatches))
        asked = [
            (i, f"{kind}{m}")
            for i in range(1, stages + 1)
            for kind in "FB"
            for m in range(microbatches)
        ]
        for stage, op in {**dict.fromkeys(asked), **counts}:
            times = counts[stage, op]
            if times != ((stage, op) in asked):
                how = (
                    f"{times} times" if (stage, op) in asked else "which is no F or B of this step"
                )
                return f"{case(stages, microbatches)}stage {stage} runs {op} {how}"
    return ""


def forwards_go_down(timetable: Timetable) -> str:
    """The first forward that runs before its input is there."""
    return _too_early(timetable, "F", lambda stage, op: (stage - 1, op))


def backwards_go_up(timetable: Timetable) -> str:
    """The first backward that runs before its gradient, or its own forward, is there."""
    return _too_early(timetable, "B", lambda stage, op: (stage, f"F{op[1:]}")) or _too_early(
        timetable, "B", lambda stage, op: (stage + 1, op)
    )


def _too_early(
    timetable: Timetable, kind: str, needs: Callable[[int, str], tuple[int, str]]
) -> str:
    for stages, microbatches, slots in placed(timetable):
        for (stage, op), slot in sorted(slots.items()):
            needed = needs(stage, op)
            if op[0] == kind and needed in slots and slots[needed] >= slot:
                return (
                    f"{case(stages, microbatches)}stage {stage} runs {op} in slot {slot}, and "
                    f"stage {needed[0]} runs {needed[1]} only in slot {slots[needed]}"
                )
    return ""


def one_at_a_time(timetable: Timetable) -> str:
    """Two operations of a stage in one slot, or a slot before the first."""
    for stages, microbatches, slots in placed(timetable):
        taken: dict[tuple[int, int], str] = {}
        for (stage, op), slot in sorted(slots.items()):
            where = f"{case(stages, microbatches)}stage {stage} runs"
            if slot < 0:
                return f"{where} {op} in slot {slot}, and slots count from 0"
            if other := taken.get((stage, slot)):
                return f"{where} both {other} and {op} in slot {slot}"
            taken[stage, slot] = op
    return ""


def shortest(timetable: Timetable) -> str:
    """How much longer than 2 (N + P - 1) slots it takes."""
    for stages, microbatches, slots in placed(timetable):
        took, fewest = max(slots.values()) + 1, 2 * (microbatches + stages - 1)
        if took > fewest:
            late = f"; its first is slot {first}" if (first := min(slots.values())) else ""
            said = f"yours takes {took} slots, and {fewest} are enough"
            return f"{case(stages, microbatches)}{said}{late}"
    return ""
