"""The virtual clock for many stages: the whole pipe at once, half a slot after half a slot.

A slot holds a forward and a backward, so let F<m> of a stage of depth D_i stand in half slot
2m - D_i, and B<m> in 2m + D_i + 1:

    lockstep    D = 5  F0 .  F1 .  F2 .  F3 .  F4 .  F5 B0 F6 B1        half slots from -5
                D = 3  .  .  F0 .  F1 .  F2 .  F3 B0 F4 B1 F5 B2
                D = 1  .  .  .  .  F0 .  F1 B0 F2 B1 F3 B2 F4 B3

Then forwards move down the pipe and backwards up it, each message D_(i-1) - D_i half slots old, and
R<m> (plan.segments) follows the forward of its slot.  Times obey a max-plus recurrence,

    start of an operation = max(its device is free, its message has arrived)

which numpy does for all stages at once.  One stage a device, that gives the times of plan.clock; a
device with several stages takes their operations in the timetable's order.  Only stages of equal
depth wait for each other within a half slot: for them the recurrence is a running maximum, or if
they share devices one step for each place in a run of equal depths.
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
    table, n = _Timetable(pipe), pipe.microbatches
    if not pipe.flushes:
        yield from table.run(0, 2**40 if steps is None else steps * n)
        return
    for k in count() if steps is None else range(steps):
        yield from table.run(k * n, (k + 1) * n)


class _Kind:
    """All stages' operations of one kind, in the order in which messages pass: forwards and re-runs
    down the pipe, backwards up it (every array here is then reversed).

    shift    the microbatch in half slot h is (h + shift) / 2, where that is whole and in the run
    lag      half slots since the stage before did what this one waits for
    waits    does the stage wait for a message?
    links    when each stage's incoming link is free again: shared by forwards and re-runs
    """

    def __init__(
        self, shift: Sequence[int], lag: Sequence[int], waits: Sequence[bool], cost: Floats,
        devices: NDArray[np.int64], latency: Floats, transfer: Floats, links: Floats,
    ) -> None:  # fmt: skip
        self.cost, self.devices, self.links = cost, devices, links
        self.latency = np.where(waits, latency, NEVER)  # what nobody waits for never arrives
        self.transfer = transfer
        self.shift, self.lag = np.array(shift), np.array(lag)
        self.linked = np.array(waits) & (self.lag == 0)
        self.plateau, self.whole = bool(self.linked.any()), bool(self.linked[1:].all())
        self.segment = np.cumsum(~self.linked).astype(float)
        starts = np.flatnonzero(~self.linked)
        self.place = np.arange(len(cost)) - np.repeat(starts, np.diff([*starts, len(cost)]))
        self.opens = np.zeros(len(cost), bool)  # the first of its device in this order
        self.opens[np.unique(devices, return_index=True)[1]] = True
        self.grid = _grid(devices)
        self.sums = self.summed(cost)
        self.all = np.ones(len(cost), bool)
        self.history = np.full((int(self.lag.max()) + 1, len(cost)), NEVER)
        self._stages = np.arange(len(cost))
        self._even = bool((self.lag[1:] == self.lag[-1]).all())
        self._parities = {int(x) for x in np.unique(self.shift % 2)}
        self._low, self._high = int(self.shift.min()), int(self.shift.max())

    def summed(self, cost: Floats) -> tuple[Floats, Floats]:
        """On the grid, a device's costs before each stage's operation, and with it."""
        costs = np.append(cost, 0.0)[self.grid]
        total = np.cumsum(costs, axis=0)
        return total - costs, total

    def active(self, h: int, start: int, stop: int) -> NDArray[np.bool_] | None:
        """The stages with an operation in half slot h (`all`: every one); None if there is none."""
        if h % 2 not in self._parities:
            return None
        if len(self._parities) == 1 and 2 * start <= h + self._low <= h + self._high < 2 * stop:
            return self.all
        twice = self.shift + h
        out = (twice >= 2 * start) & (twice < 2 * stop) & (twice % 2 == 0)
        return out if out.any() else None

    def arrived(self, h: int) -> Floats:
        """When each stage's message arrived, as far as it was sent before."""
        size = len(self.history)
        if self._even:
            return self.history[(h - self.lag[-1]) % size]
        return self.history[(h - self.lag) % size, self._stages]

    def send(self, h: int, active: NDArray[np.bool_], end: Floats) -> None:
        """Messages of the active stages, which end then."""
        sent = np.maximum(self.links[1:], end[:-1]) + self.transfer[1:]
        np.copyto(self.links[1:], sent, where=active[:-1])
        np.copyto(
            self.history[h % len(self.history), 1:], sent + self.latency[1:], where=active[:-1]
        )


class _Timetable:
    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        depths, devices = list(pipe.depths), np.array(pipe.devices)
        self.free = np.zeros(devices.max() + 1)
        self.shared = len(self.free) < len(devices)
        self.update, self.depths = np.array(pipe.update), np.array(pipe.depths)
        drops = [a - b for a, b in zip(depths, depths[1:], strict=False)]
        inside = devices[1:] == devices[:-1]  # nothing leaves the device
        hops = [np.where(inside, 0.0, x) for x in (pipe.latency, pipe.transfer)]
        down = devices, *(np.append(0.0, x) for x in hops), np.zeros(len(devices))
        up = devices[::-1], *(np.append(0.0, x[::-1]) for x in hops), np.zeros(len(devices))
        forward, backward = np.array(pipe.forward), np.array(pipe.backward)
        follows = [i > 0 for i in range(len(depths))]
        self.kinds = [_Kind(depths, [1, *drops], follows, forward, *down)]
        if any(pipe.reruns):
            never = -(2**50)  # before any microbatch, for stages that re-run nothing
            shift = [
                2 * r.lead - d if r else never for r, d in zip(pipe.reruns, depths, strict=True)
            ]
            waits = [r is not None and not r.first for r in pipe.reruns]
            self.kinds.append(_Kind(shift, [1, *drops], waits, forward, *down))
        shift = [-1 - d for d in reversed(depths)]
        self.backward = _Kind(shift, [1, *reversed(drops)], follows, backward[::-1], *up)
        self.kinds.append(self.backward)

    def run(self, start: int, stop: int) -> Iterator[tuple[float, float]]:
        """The half slots of the microbatches from `start` to `stop`, the pipe empty before."""
        deepest = max(self.pipe.depths)
        for h in range(2 * start - deepest, 2 * stop + deepest):
            for kind in self.kinds:
                active = kind.active(h, start, stop)
                if active is not None:
                    self._half_slot(kind, h, active)
            if active is not None:  # the last kind is the backwards
                yield from self._updated(h, active[::-1])

    def _half_slot(self, kind: _Kind, h: int, active: NDArray[np.bool_]) -> None:
        if kind.plateau and self.shared and not kind.whole:
            for place in range(kind.place.max() + 1):  # in its run of equal depths
                here = active & (kind.place == place)
                kind.send(h, here, self._in_turn(kind, h, here))
        elif kind.plateau:
            kind.send(h, active, self._chained(kind, h, active))
        else:
            kind.send(h, active, self._in_turn(kind, h, active))

    def _in_turn(self, kind: _Kind, h: int, active: NDArray[np.bool_]) -> Floats:
        """Ends of stages that do not wait for each other; a device takes its own in their order.
        A stage that is not active costs nothing and waits for nothing."""
        arrival, cost = kind.arrived(h), kind.cost
        if active is not kind.all:
            arrival, cost = np.where(active, arrival, NEVER), np.where(active, cost, 0.0)
        if not self.shared:
            end = np.maximum(self.free[kind.devices], arrival) + cost
            self.free[kind.devices] = end
            return end
        before, total = kind.sums if active is kind.all else kind.summed(cost)
        begin = np.append(arrival, NEVER)[kind.grid] - before
        np.maximum(begin[0], self.free, out=begin[0])
        ends = np.maximum.accumulate(begin, axis=0) + total
        self.free = ends[-1].copy()
        out = np.empty(len(cost) + 1)
        out[kind.grid] = ends
        return out[:-1]

    def _chained(self, kind: _Kind, h: int, active: NDArray[np.bool_]) -> Floats:
        """Stages of equal depth hand a microbatch on: each stage has its own device, or all are of
        one depth, so that a device's later stages wait for its first one anyhow."""
        arrival = np.where(active, kind.arrived(h), NEVER)
        cost = np.where(active, kind.cost, 0.0)
        message = kind.latency + kind.transfer
        base = np.where(kind.linked, kind.links + message, arrival)
        base = np.where(kind.opens, np.maximum(base, self.free[kind.devices]), base)
        gap = np.where(kind.linked, message, 0.0)
        end = _chain(base, cost, gap, None if kind.whole else kind.segment)
        np.maximum.at(self.free, kind.devices[active], end[active])
        return end

    def _updated(self, h: int, active: NDArray[np.bool_]) -> Iterator[tuple[float, float]]:
        """Updates of the stages whose minibatch ended in this half slot."""
        m = (h - 1 - self.depths) // 2
        ended = active & ((m + 1) % self.pipe.microbatches == 0)
        if ended.any():
            devices = self.backward.devices[::-1][ended]
            np.add.at(self.free, devices, self.update[ended])
            if ended[0]:
                yield float(self.free[devices[0]]), float(self.free.max())


def _grid(devices: NDArray[np.int64]) -> NDArray[np.int64]:
    """(most stages on a device, devices): its stages in order, filled up with their number."""
    counts = np.bincount(devices)
    grid = np.full((counts.max(), len(counts)), len(devices))
    for d in range(len(counts)):
        grid[: counts[d], d] = np.flatnonzero(devices == d)
    return grid


def _chain(base: Floats, cost: Floats, gap: Floats, segment: Floats | None) -> Floats:
    """end_i = max(base_i, end_(i-1) + gap_i) + cost_i, anew in each segment (numbered 1, 2, ...).

    With K_i the sum of costs and gaps up to i:  end_i = K_i + max_(j <= i) (base_j + cost_j - K_j).
    A later segment is lifted above all before it, so that none of those maxima reaches into it.
    """
    total = np.cumsum(cost + gap)
    level = base + cost - total
    if segment is None:
        return total + np.maximum.accumulate(level)
    lift = segment * (np.ptp(level[np.isfinite(level)]) + 1.0)
    return total + (np.maximum.accumulate(level + lift) - lift)
