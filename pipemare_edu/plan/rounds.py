"""The virtual clock for many stages: every stage at once, one round after another.

In round b a stage does what its list has around B<b> (plan.schedules): F<b + D_i>, R<b + lead_i>,
B<b>, and an update after every N-th B.  Times obey a max-plus recurrence,

    start of an operation = max(its device is free, its message has arrived)

whose chains along the pipe (backwards; forwards of equal depth) are running maxima of numpy.  It
gives the clock's times (plan.clock) to rounding, and 1000 stages in a fraction of a second.

A device with several stages takes them in a fixed order, round by round: forwards as they stand
along the pipe, re-runs likewise, backwards the other way round, updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from .segments import Rerun

Floats = NDArray[np.float64]
NEVER = -np.inf


@dataclass(frozen=True)
class Pipe:
    """What the recurrence needs, per stage (`latency`, `transfer`: per stage from the second on).

    depths    D_i; `flushes`: every minibatch drains before the next one starts
    reruns    plan.segments, None where nothing is re-run
    forward, backward, update   seconds of one operation; a re-run costs a forward
    latency   seconds from the last byte sent until the neighbour has the message
    transfer  seconds for which a message occupies its link, one after another in each direction
    devices   the device of each stage, counted from 0
    """

    depths: tuple[int, ...]
    microbatches: int
    flushes: bool
    reruns: tuple[Rerun | None, ...]
    forward: Sequence[float]
    backward: Sequence[float]
    update: Sequence[float]
    latency: Sequence[float]
    transfer: Sequence[float]
    devices: tuple[int, ...]


def updates(pipe: Pipe, steps: int | None = None) -> Iterator[tuple[float, float]]:
    """Per minibatch: (when the first stage has updated, when the last of all operations so far has
    ended).  steps: None for no end."""
    rounds, n = _Rounds(pipe), pipe.microbatches
    if not pipe.flushes:
        yield from rounds.run(0, 2**62 if steps is None else steps * n)
        return
    for k in count() if steps is None else range(steps):
        yield from rounds.run(k * n, (k + 1) * n)


class _Ascending:
    """Forwards or re-runs: `ahead` microbatches before the round's backward, up the pipe.

    waits  the stage waits for a message; `lag` rounds ago the stage before did what it waits for
    """

    def __init__(self, ahead: list[int], active: list[bool], waits: list[bool]) -> None:
        self.ahead, self.active = np.array(ahead), np.array(active)
        self.any = any(active)
        self.waits = np.array(waits)
        lag = np.where(self.waits, -np.diff(self.ahead, prepend=0), 1)
        self.linked = self.waits & (lag == 0)
        self.plateau, self.whole = bool(self.linked.any()), bool(self.linked[1:].all())
        self.length = int(lag.max()) + 1
        self.history = np.full((self.length, len(ahead)), NEVER)
        self._lag, self._stages = lag, np.arange(len(ahead))
        self.segment = np.cumsum(~self.linked).astype(float)

    def arrived(self, b: int) -> Floats:
        """When each stage's message arrived; never for one that waits for none."""
        at = self.history[(b - self._lag) % self.length, self._stages]
        return np.where(self.waits, at, NEVER)


class _Rounds:
    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        stages = len(pipe.depths)
        self.devices = np.array(pipe.devices)
        self.forward, self.backward = np.array(pipe.forward), np.array(pipe.backward)
        self.latency = np.concatenate([[0.0], pipe.latency])
        self.transfer = np.concatenate([[0.0], pipe.transfer])
        alone = np.diff(self.devices, prepend=-1) == 0
        self.latency[alone] = self.transfer[alone] = 0.0  # nothing leaves the device
        self.message = self.latency + self.transfer
        self.free = np.zeros(self.devices.max() + 1)
        self.update = np.bincount(self.devices, pipe.update, len(self.free))
        self.sent, self.returned = np.zeros(stages), np.zeros(stages)  # when links are free
        self.shared = len(self.free) < stages
        self.lowest, self.highest = np.zeros(stages, bool), np.zeros(stages, bool)
        self.lowest[np.unique(self.devices, return_index=True)[1]] = True
        self.highest[stages - 1 - np.unique(self.devices[::-1], return_index=True)[1]] = True
        self.grid = self._grid()
        again = [r or Rerun(0, 0, True, True) for r in pipe.reruns]
        self.F = _Ascending(list(pipe.depths), [True] * stages, [i > 0 for i in range(stages)])
        self.R = _Ascending(
            [r.lead for r in again], [r is not None for r in pipe.reruns],
            [not r.first for r in again],
        )  # fmt: skip

    def _grid(self) -> NDArray[np.int64]:
        """(most stages on a device, devices): its stages in order, then the number of stages."""
        stages, most = len(self.devices), int(np.bincount(self.devices).max())
        grid = np.full((most, len(self.free)), stages)
        filled = [0] * len(self.free)
        for i, d in enumerate(self.pipe.devices):
            grid[filled[d], d] = i
            filled[d] += 1
        return grid

    def run(self, start: int, stop: int) -> Iterator[tuple[float, float]]:
        """The rounds of the microbatches from `start` to `stop`, the pipe empty before."""
        for b in count(start - max(self.pipe.depths)):
            if b >= stop:
                return
            self._ascend(self.F, b, start, stop)
            if self.R.any:
                self._ascend(self.R, b, start, stop)
            if b < start:
                continue
            self._descend()
            if (b + 1) % self.pipe.microbatches == 0:
                self.free += self.update
                yield float(self.free[self.devices[0]]), float(self.free.max())

    def _ascend(self, kind: _Ascending, b: int, start: int, stop: int) -> None:
        m = b + kind.ahead
        active = kind.active & (m >= start) & (m < stop)
        if not active.any():
            return
        arrival = np.where(active, kind.arrived(b), NEVER)
        cost = np.where(active, self.forward, 0.0)
        if not kind.plateau:
            end = self._in_order(arrival, cost)
        elif self.shared and not kind.whole:
            end = self._one_by_one(kind.linked & active, active, arrival, cost)
        else:
            end = self._chained(kind, active, arrival, cost)
        self.sent[1:] = np.where(
            active[:-1], np.maximum(self.sent[1:], end[:-1]) + self.transfer[1:], self.sent[1:]
        )
        kind.history[b % kind.length, 1:] = self.sent[1:] + self.latency[1:]

    def _in_order(self, arrival: Floats, cost: Floats) -> Floats:
        """Ends where no stage waits for another one of this round; devices take their stages in
        turn.  An inactive stage costs nothing and waits for nothing."""
        if not self.shared:
            self.free[self.devices] = end = np.maximum(self.free[self.devices], arrival) + cost
            return end
        costs = np.append(cost, 0.0)[self.grid]
        total = np.cumsum(costs, axis=0)
        begin = np.append(arrival, NEVER)[self.grid] - (total - costs)
        begin[0] = np.maximum(begin[0], self.free)
        ends = total + np.maximum.accumulate(begin, axis=0)
        self.free = ends[-1].copy()
        out = np.empty(len(cost) + 1)
        out[self.grid] = ends
        return out[:-1]

    def _chained(
        self, kind: _Ascending, active: NDArray[np.bool_], arrival: Floats, cost: Floats
    ) -> Floats:
        """Ends where stages of equal depth hand a microbatch on within the round."""
        base = np.where(kind.linked, self.sent + self.message, arrival)
        free = self.free[self.devices]
        base = np.maximum(base, np.where(self.lowest, free, NEVER))
        end = _chain(base, cost, self.message, None if kind.whole else kind.segment)
        np.maximum.at(self.free, self.devices[active], end[active])
        return end

    def _one_by_one(
        self, linked: NDArray[np.bool_], active: NDArray[np.bool_], arrival: Floats, cost: Floats
    ) -> Floats:
        """The same on shared devices, where two orders meet and no running maximum fits."""
        end = np.full(len(cost), NEVER)
        for i in np.flatnonzero(active):
            d = self.devices[i]
            begin = max(self.free[d], arrival[i])
            if linked[i]:
                begin = max(begin, max(self.sent[i], end[i - 1]) + self.message[i])
            self.free[d] = end[i] = begin + cost[i]
        return end

    def _descend(self) -> None:
        """Backwards: one chain from the last stage to the first."""
        gap = np.append(self.message[1:], 0.0)  # to stage i from the one after it
        base = np.where(self.highest, self.free[self.devices], NEVER)
        base = np.maximum(base, self.returned + gap)
        end = _chain(base[::-1], self.backward[::-1], gap[::-1])[::-1]
        hop = self.transfer[1:]
        self.returned[:-1] = np.maximum(self.returned[:-1], end[1:]) + hop
        self.free[self.devices[self.lowest]] = end[self.lowest]


def _chain(base: Floats, cost: Floats, gap: Floats, segment: Floats | None = None) -> Floats:
    """end_i = max(base_i, end_(i-1) + gap_i) + cost_i, anew in each segment (numbered 1, 2, ...).

    With K_i the sum of costs and gaps up to i:  end_i = K_i + max_(j <= i) (base_j + cost_j - K_j).
    A later segment is lifted above all before it, so that none of those maxima reaches into it.
    """
    total = np.cumsum(cost + gap)
    level = base + cost - total
    if segment is None:
        return total + np.maximum.accumulate(level)
    finite = level[np.isfinite(level)]
    lift = segment * (np.ptp(finite) + 1.0)
    return total + (np.maximum.accumulate(level + lift) - lift)
