"""Schedules: each a short generator of one stage's operations.

    gpipe   N forwards, N backwards, an update                      (synchronous)
    1f1b    a few forwards ahead, then F and B alternate, an update  (synchronous, less memory)
    depths  stage i keeps D_i forwards ahead of its backwards and never waits for an update:
                while f < b + D_i + 1: F    then B    then U after every N-th B

                        D_i (stages from 1)   what it is
            sequential  0                     one microbatch at a time, no overlap
            async-1f1b  P - i                 PipeDream's order on P devices
            lockstep    2 (P - i) + 1         the PipeMare paper's pipeline (PAPER.md section 1)

Staleness is never written down: it is what these lists imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .ops import Op, Operations

SYNCHRONOUS = ("gpipe", "1f1b")
ASYNCHRONOUS = ("sequential", "async-1f1b", "lockstep")


def depths(kind: str | Sequence[int], stages: int) -> tuple[int, ...]:
    """D_i of every stage, in slots: the forwards between a microbatch's forward and its backward
    that already belong to later microbatches.  Zero where every step waits for the last.

    Raises ValueError for an unknown name, a list of the wrong length, or a list that would
    deadlock.
    """
    if isinstance(kind, str):
        ahead = range(stages - 1, -1, -1)
        match kind:
            case "lockstep":
                return tuple(2 * a + 1 for a in ahead)
            case "async-1f1b":
                return tuple(ahead)
            case "sequential" | "gpipe" | "1f1b":
                return (0,) * stages
        raise ValueError(
            f"unknown schedule {kind!r}: use one of {', '.join(SYNCHRONOUS + ASYNCHRONOUS)}, "
            "or a list of depths, one per stage"
        )
    return _check_depths(kind, stages)


def _check_depths(values: Sequence[int], stages: int) -> tuple[int, ...]:
    out = tuple(values)
    if len(out) != stages:
        raise ValueError(f"{len(out)} depths for {stages} stages: give one depth per stage")
    for i, d in enumerate(out):
        if not isinstance(d, int) or isinstance(d, bool) or d < 0:
            raise ValueError(f"stage {i + 1} has depth {d!r}: depths are whole numbers, 0 or more")
        if i and d > out[i - 1]:
            raise ValueError(
                f"depths must not increase along the pipe: stage {i + 1} waits for {d + 1} "
                f"forwards before its first backward, but stage {i} sends only {out[i - 1] + 1} "
                "before it waits for that backward, so both would wait for ever"
            )
    return out


def gpipe(microbatches: int, steps: range) -> Iterator[Op]:
    """All forwards, all backwards, the update."""
    for k in steps:
        mine = range(k * microbatches, (k + 1) * microbatches)
        yield from (Op("F", m) for m in mine)
        yield from (Op("B", m) for m in mine)
        yield Op("U", k)


def one_f_one_b(ahead: int, microbatches: int, steps: range) -> Iterator[Op]:
    """`ahead` forwards first (the stages behind this one), then one forward, one backward."""
    for k in steps:
        yield from _alternate(ahead, range(k * microbatches, (k + 1) * microbatches))
        yield Op("U", k)


def asynchronous(depth: int, microbatches: int, steps: range) -> Iterator[Op]:
    """`depth` forwards ahead, an update after every N-th backward, no flush but the last."""
    for op in _alternate(depth, range(steps.start * microbatches, steps.stop * microbatches)):
        yield op
        if op.kind == "B" and (op.index + 1) % microbatches == 0:
            yield Op("U", op.index // microbatches)


def _alternate(ahead: int, mine: range) -> Iterator[Op]:
    f = mine.start
    for b in mine:
        while f < min(b + ahead + 1, mine.stop):
            yield Op("F", f)
            f += 1
        yield Op("B", b)


def evaluated(ops: Iterable[Op], every: int, last: int) -> Iterator[Op]:
    """The same operations with E<k> after U<k> for every `every`-th step, and after step `last`."""
    for op in ops:
        yield op
        if op.kind == "U" and (op.index == last or (every and (op.index + 1) % every == 0)):
            yield Op("E", op.index)


def stage_operations(
    kind: str | Sequence[int], stage: int, stages: int, microbatches: int, steps: range
) -> Iterator[Op]:
    """One stage's operations (stages from 0) for the minibatches in `steps`."""
    if kind == "gpipe":
        return gpipe(microbatches, steps)
    if kind == "1f1b":
        return one_f_one_b(stages - 1 - stage, microbatches, steps)
    return asynchronous(depths(kind, stages)[stage], microbatches, steps)


def schedule(
    kind: str | Sequence[int], stages: int, microbatches: int = 1, steps: int = 1, t3: int = 0
) -> list[Operations]:
    """The operations of every stage for `steps` minibatches of `microbatches` microbatches.

    kind    gpipe, 1f1b, sequential, async-1f1b, lockstep, or a list of depths D_1 >= ... >= D_P
    t3      so many steps run as gpipe first, then the pipe drains and `kind` starts empty (T3)

    >>> for ops in schedule("lockstep", stages=2, microbatches=1, steps=2): print(ops)
    F0 F1 B0 U0 B1 U1
    F0 F1 B0 U0 B1 U1

    Raises ValueError for counts below one, an unknown name or an illegal depth list.
    """
    for name, value in (("stages", stages), ("microbatches", microbatches), ("steps", steps)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}: it must be a whole number, 1 or more")
    if not 0 <= t3 <= steps:
        raise ValueError(f"t3 is {t3}: it must lie between 0 and steps = {steps}")
    depths(kind, stages)
    return [
        Operations(
            op
            for k, span in (("gpipe", range(t3)), (kind, range(t3, steps)))
            for op in stage_operations(k, i, stages, microbatches, span)
        )
        for i in range(stages)
    ]
