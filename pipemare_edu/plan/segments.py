"""Recompute segments: which stages run their forward again, and how far ahead of its backward.

The stages are cut into segments of S, from the front.  Only a segment's first stage keeps its input
for the microbatches in flight; shortly before their backward the segment's stages re-run their
forwards, one after the other (PAPER.md section 2).  The pipe's last stages turn a microbatch round
D_P slots after its forward, and every segment's end does the same with a re-run:

    lead_i = D_i - D_e + D_P        e: the last stage of i's segment

In lockstep that is 2j + 1 for the stage at distance j from its segment's end: after R<m>, 2j + 2
microbatches wait there for their backward.  A segment with D_e = D_P, such as the last, would
re-run at once what it has just run: it keeps everything instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Rerun(NamedTuple):
    """How one stage re-runs its forward.

    wait   forwards of the stage from F<m> to R<m>: D_e - D_P
    lead   backwards of the stage between R<m> and B<m>: D_i - wait
    first  is it the first stage of its segment, which keeps its input?  The others' comes from the
           stage before, by a link of its own
    last   is it the last stage of its segment, whose re-run nobody waits for?
    """

    wait: int
    lead: int
    first: bool
    last: bool

    @property
    def part(self) -> float:
        """(tau_fwd - tau_recomp) / (tau_fwd - tau_bkwd), for backwards without delay."""
        return self.wait / (self.wait + self.lead)


def segment_length(recompute: int | str, stages: int) -> int:
    """S: `recompute` itself, or for "auto" the whole number next to the square root of P.

    Raises ValueError for anything else than "auto" or a whole number from 0 (none) to P.
    """
    if recompute == "auto":
        return max(1, round(math.sqrt(stages)))
    if not isinstance(recompute, int) or isinstance(recompute, bool) or recompute < 0:
        raise ValueError(
            f'recompute is {recompute!r}: give the stages of a segment, 0 for none, or "auto"'
        )
    if recompute > stages:
        raise ValueError(
            f"recompute is {recompute}: a segment has at most the pipe's {stages} stages"
        )
    return recompute


def reruns(depths: Sequence[int], recompute: int | str) -> tuple[Rerun | None, ...]:
    """Per stage, how it re-runs its forward; None where it keeps what its forward left.

    depths     D_i of every stage, none below the next one's
    recompute  the stages S of a segment, "auto" for the square root of their number, 0 for none
    Raises ValueError for a segment that is longer than the pipe, or depths at which no segment has
    anything to re-run.
    """
    stages = len(depths)
    size = segment_length(recompute, stages)
    if not size:
        return (None,) * stages
    out: list[Rerun | None] = []
    for start in range(0, stages, size):
        segment = depths[start : start + size]
        wait, end = segment[-1] - depths[-1], len(segment) - 1
        out += [
            Rerun(wait, d - wait, j == 0, j == end) if wait else None for j, d in enumerate(segment)
        ]
    if size < stages and not any(out):
        raise ValueError(
            f"recompute={recompute!r} has nothing to re-run: every segment of {size} ends at depth "
            f"{depths[-1]}, as the pipe does, so a re-run would follow its forward at once; use "
            "longer segments, none (0), or depths that fall along the pipe"
        )
    return tuple(out)
