"""Schedules: each a short generator of one stage's operations.

    gpipe   N forwards, N backwards, an update                      (synchronous)
    1f1b    a few forwards ahead, then F and B alternate, an update  (synchronous, less memory)
    depths  stage i keeps D_i forwards ahead of its backwards and never waits for an update:
                slot s:  F<s>    B<s - D_i>    then U after every N-th B

                        D_i (stages from 1)   what it is
            sequential  0                     one microbatch at a time, no overlap
            async-1f1b  P - i                 PipeDream's order on P devices
            lockstep    2 (P - i) + 1         the PipeMare paper's pipeline (PAPER.md section 1)

With recompute a slot of a stage that re-runs its forwards is  F  R  B  (U)  (plan.segments).
Staleness is never written down: it is what these lists imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..checks import MOST, iterable, plain, whole
from .ops import Op, Operations
from .segments import Rerun, reruns

SYNCHRONOUS = ("gpipe", "1f1b")
ASYNCHRONOUS = ("sequential", "async-1f1b", "lockstep")
KINDS = f"one of {', '.join(SYNCHRONOUS + ASYNCHRONOUS)}, or a list of depths, one per stage"


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
        raise ValueError(f"unknown schedule {kind!r}: use {KINDS}")
    return _check_depths(as_listed(kind), stages)


def as_listed(depths: Iterable[int]) -> tuple[int, ...]:
    """Depths as a tuple; ValueError for what is no list of anything."""
    return tuple(map(plain, iterable("depth", depths, KINDS)))


def _check_depths(out: tuple[int, ...], stages: int) -> tuple[int, ...]:
    if len(out) != stages:
        raise ValueError(f"{len(out)} depths for {stages} stages: give one depth per stage")
    for i, d in enumerate(out):
        if not isinstance(d, int) or isinstance(d, bool) or not 0 <= d <= MOST:
            raise ValueError(
                f"stage {i + 1} has depth {d!r}: depths are whole numbers, from 0 to {MOST}"
            )
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
        yield from _slots(ahead, range(k * microbatches, (k + 1) * microbatches))
        yield Op("U", k)


def asynchronous(
    depth: int, microbatches: int, steps: range, lead: int | None = None
) -> Iterator[Op]:
    """`depth` forwards ahead, an update after every N-th backward, no flush but the last.

    lead  each forward is run again, `lead` backwards before its own; None: never
    """
    for op in _slots(depth, range(steps.start * microbatches, steps.stop * microbatches), lead):
        yield op
        if op.kind == "B" and (op.index + 1) % microbatches == 0:
            yield Op("U", op.index // microbatches)


def _slots(depth: int, mine: range, lead: int | None = None) -> Iterator[Op]:
    """A microbatch's backward `depth` slots after its forward, its re-run `lead` before that."""
    # More slots between than there are microbatches change no order, and would only be counted.
    wait = min(depth - (lead or 0), len(mine))
    depth = wait + min(lead or 0, len(mine))
    for slot in range(mine.start, mine.stop + depth):
        if slot in mine:
            yield Op("F", slot)
        if lead is not None and slot - wait in mine:
            yield Op("R", slot - wait)
        if slot - depth in mine:
            yield Op("B", slot - depth)


def evaluated(ops: Iterable[Op], every: int, last: int) -> Iterator[Op]:
    """The same operations with E<k> after U<k> for every `every`-th step, and after step `last`."""
    for op in ops:
        yield op
        if op.kind == "U" and (op.index == last or (every and (op.index + 1) % every == 0)):
            yield Op("E", op.index)


def pipe_reruns(
    kind: str | Sequence[int], stages: int, recompute: int | str = 0
) -> tuple[Rerun | None, ...]:
    """Per stage, how it re-runs its forward in this schedule; None where it does not.

    Raises ValueError where recompute cannot work: segments.reruns, or a synchronous schedule.
    """
    if recompute != 0 and kind in (*SYNCHRONOUS, "sequential"):
        raise ValueError(
            f"recompute={recompute!r} in the synchronous schedule {kind!r}: a re-run is timed by "
            "how far forwards run ahead, so use lockstep, async-1f1b or a list of depths"
        )
    return reruns(depths(kind, stages), recompute)


def stage_operations(
    kind: str | Sequence[int],
    stage: int,
    stages: int,
    microbatches: int,
    steps: range,
    recompute: int | str = 0,
) -> Iterator[Op]:
    """One stage's operations (stages from 0) for the minibatches in `steps`."""
    if kind == "gpipe":
        return gpipe(microbatches, steps)
    if kind == "1f1b":
        return one_f_one_b(stages - 1 - stage, microbatches, steps)
    rerun = pipe_reruns(kind, stages, recompute)[stage]
    depth = depths(kind, stages)[stage]
    return asynchronous(depth, microbatches, steps, rerun.lead if rerun else None)


def schedule(
    kind: str | Sequence[int],
    stages: int,
    microbatches: int = 1,
    steps: int = 1,
    t3: int = 0,
    recompute: int | str = 0,
) -> list[Operations]:
    """The operations of every stage for `steps` minibatches of `microbatches` microbatches.

    kind       gpipe, 1f1b, sequential, async-1f1b, lockstep, or a list of depths D_1 >= ... >= D_P
    t3         so many steps run as gpipe first, then the pipe drains and `kind` starts empty (T3)
    recompute  the stages of a segment (plan.segments), "auto" for the square root, 0 for none

    >>> for ops in schedule("lockstep", stages=2, microbatches=1, steps=2): print(ops)
    F0 F1 B0 U0 B1 U1
    F0 F1 B0 U0 B1 U1

    Raises ValueError for counts below one, an unknown name, an illegal depth list, or a recompute
    that cannot work.
    """
    stages, steps = whole("stages", stages, 1), whole("steps", steps, 1)
    microbatches, t3 = whole("microbatches", microbatches, 1), whole("t3", t3, 0, steps)
    return [
        Operations(
            (
                *stage_operations("gpipe", i, stages, microbatches, range(t3)),
                *stage_operations(kind, i, stages, microbatches, range(t3, steps), recompute),
            ),
            inside=rerun is not None and not rerun.first,
        )
        for i, rerun in enumerate(pipe_reruns(kind, stages, recompute))
    ]
