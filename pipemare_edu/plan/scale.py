"""A machine that you do not have: what a pipeline would do on it, by the clock and the ledger.

    load     per stage: work, weights, activations, messages          (machine.Load)
    machine  cards, links, and which stages a card hosts               (machine.Machine)
    method   schedule, microbatches, copies of weights, recompute      (machine.Strategy)
        -> utilization, throughput, memory per device, staleness      (Forecast)
        -> time to target, given the steps that each method needs     (Target)

Times are simulated until they repeat (plan.timetable), never taken from a formula.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import islice

from ..checks import whole
from .held import Held, peaks
from .ledger import ledger
from .machine import Load, Machine, Strategy
from .timetable import Pipe, updates


@dataclass(frozen=True)
class Forecast:
    """What a pipeline would do.  Seconds, bytes, optimizer steps.

    interval      per minibatch once the pipe is full; `throughput` is its inverse
    utilization   share of the devices' time spent computing, once full
    run_seconds   of `run_steps` minibatches, fill and drain included; run_utilization likewise
    memory        per device and kind (plan.ledger); `fits`: none needs more than the card has
    tau_fwd, tau_recomp, tau_bkwd   per stage, means over microbatches; None: nothing is re-run
    """

    interval: float
    utilization: float
    run_steps: int
    run_seconds: float
    run_utilization: float
    memory: tuple[tuple[tuple[str, int], ...], ...]
    fits: bool
    tau_fwd: tuple[float, ...]
    tau_recomp: tuple[float | None, ...]
    tau_bkwd: tuple[float, ...]

    @property
    def throughput(self) -> float:
        return 1.0 / self.interval

    @property
    def bytes(self) -> tuple[int, ...]:
        """Per device, all kinds together."""
        return tuple(sum(size for _, size in row) for row in self.memory)


def forecast(load: Load, machine: Machine, strategy: Strategy, run_steps: int = 100) -> Forecast:
    """Run `load` on `machine` in thought.

    Raises ValueError for counts, depths, segments or layouts that cannot work.
    """
    stages = len(load.work)
    whole("microbatches", strategy.microbatches, 1)
    whole("run_steps", run_steps, 1)
    homes = machine.homes(stages)
    pipe = _pipe(load, machine, strategy, homes)
    again = [f if r else 0.0 for f, r in zip(pipe.forward, pipe.reruns, strict=True)]
    per_microbatch = sum(pipe.forward) + sum(pipe.backward) + sum(again)
    busy = strategy.microbatches * per_microbatch + sum(pipe.update)
    interval = steady_interval(pipe)
    seconds = run_seconds(pipe, run_steps, interval)
    devices = max(homes) + 1
    memory = _memory(load, strategy, homes)
    fits = all(sum(size for _, size in row) <= machine.card.memory for row in memory)
    delays = (0,) * stages if strategy.flushes else pipe.depths
    n = strategy.microbatches
    forward = tuple(d / n for d in delays)
    return Forecast(
        interval, busy / (devices * interval) if interval else 0.0,
        run_steps, seconds, run_steps * busy / (devices * seconds) if seconds else 0.0,
        memory, fits, forward,
        tuple((d if strategy.stashes else r.lead) / n if r else None
              for d, r in zip(delays, pipe.reruns, strict=True)),
        forward if strategy.stashes else (0.0,) * stages,
    )  # fmt: skip


def _pipe(load: Load, machine: Machine, strategy: Strategy, homes: tuple[int, ...]) -> Pipe:
    stages = len(load.work)
    seconds = [work / machine.card.flops for work in load.work]
    hops = stages - 1
    ahead = strategy.depths(stages)
    return Pipe(
        _spread(ahead, strategy.microbatches, homes) if strategy.flushes else ahead,
        strategy.microbatches,
        strategy.flushes,
        strategy.reruns(stages),
        seconds,
        [strategy.backward * s for s in seconds],
        [strategy.update * w for w in load.weights],
        [machine.link.latency] * hops,
        [size / machine.link.bandwidth for size in load.outputs[:hops]],
        homes,
    )


def _spread(ahead: tuple[int, ...], microbatches: int, homes: tuple[int, ...]) -> tuple[int, ...]:
    """Depths of the same flushing lists that give their devices a good order.

    A stage that runs its whole minibatch ahead does so at any depth from N - 1.  These let a
    microbatch pass one device after the other, a slot each (plan.timetable).
    """
    shared = len(set(homes)) < len(homes)
    out = [ahead[-1]]
    for i in reversed(range(len(ahead) - 1)):
        hop = 2 * (shared and homes[i] != homes[i + 1])
        out.append(ahead[i] if ahead[i] < microbatches - 1 else max(ahead[i], out[-1] + hop))
    return tuple(reversed(out))


def _fill(pipe: Pipe) -> int:
    """Minibatches until the pipe is as full as it gets."""
    return 1 if pipe.flushes else -(-(max(pipe.depths) + 1) // pipe.microbatches) + 1


def steady_interval(pipe: Pipe) -> float:
    """Seconds per minibatch once the pipe is full: simulated past the fill, then in windows until
    two of them agree to nine digits, or the mean over twelve; never less than the busiest device
    or link needs, because where stages differ little the first ones run ahead for long.

    Minibatches may take turns in being slow, so a window holds a multiple of twelve; one is enough
    where each of them starts with an empty pipe.
    """
    fill = _fill(pipe)
    window = 1 if pipe.flushes else 12 * -(-fill // 48)
    times = (first for first, _ in updates(pipe))
    start = last = deque(islice(times, fill), maxlen=1)[0]
    before = math.nan
    for _ in range(12):
        end = deque(islice(times, window), maxlen=1)[0]
        interval, last = (end - last) / window, end
        if math.isclose(interval, before, rel_tol=1e-9):
            return max(interval, _busiest(pipe))
        before = interval
    return max((last - start) / (12 * window), _busiest(pipe))


def _busiest(pipe: Pipe) -> float:
    """Seconds that the busiest device or link works in a minibatch."""
    n, work = pipe.microbatches, [0.0] * (max(pipe.devices) + 1)
    rows = zip(pipe.devices, pipe.forward, pipe.backward, pipe.update, pipe.reruns, strict=True)
    for device, forward, backward, update, rerun in rows:
        work[device] += n * (forward + backward + (forward if rerun else 0.0)) + update
    return max(*work, *(n * t for t in pipe.transfer), 0.0)


def run_seconds(pipe: Pipe, steps: int, interval: float) -> float:
    """Seconds of `steps` minibatches, fill and drain included: the first simulated to their end,
    and what is more than twice the fill and 100 added at the steady interval."""
    simulated = min(steps, 2 if pipe.flushes else max(100, 2 * _fill(pipe)))
    *_, (_, end) = updates(pipe, simulated)
    return end + (steps - simulated) * interval


def _memory(
    load: Load, strategy: Strategy, homes: tuple[int, ...]
) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Per device: its stages' peaks, and one working buffer for the largest of them."""
    stages, n = len(homes), strategy.microbatches
    if strategy.flushes:
        delays = (0,) * stages
        held = tuple(Held(d + 1, 0, d + 1) for d in strategy.depths(stages))
    else:
        delays = strategy.depths(stages)
        held = peaks(delays, strategy.recompute)
    rows = ledger(
        load.weights, delays, n, strategy.optimizer_copies, strategy.stashes, strategy.corrects,
        load.activations, (0, *load.outputs[:-1]), held=held,
    )  # fmt: skip
    devices: list[dict[str, int]] = [dict.fromkeys(rows[0], 0) for _ in range(max(homes) + 1)]
    for home, row in zip(homes, rows, strict=True):
        for kind, size in row.items():
            joined = max(devices[home][kind], size) if kind == "working" else size
            devices[home][kind] = joined if kind == "working" else devices[home][kind] + size
    return tuple(tuple(row.items()) for row in devices)


@dataclass(frozen=True)
class Target:
    """Time until a quality is reached, and the three factors that make it:

        seconds = baseline_seconds / utilization * step_ratio * warmup_bill

    utilization  the baseline's time per minibatch over the method's
    step_ratio   the method's steps over the baseline's
    warmup_bill  what T3's synchronous steps add: 1 without them
    """

    seconds: float
    baseline_seconds: float
    utilization: float
    step_ratio: float
    warmup_bill: float


def time_to_target(
    method: Forecast, baseline: Forecast, steps: int, baseline_steps: int, t3: int = 0
) -> Target:
    """How long `steps` steps of a method take beside `baseline_steps` of a synchronous one.

    t3  the method's first steps that run as the baseline does.  The steps are an input: how many a
        method needs, only training can say.
    """
    whole("steps", steps, 1)
    whole("baseline_steps", baseline_steps, 1)
    whole("t3", t3, 0, steps)
    asynchronous = (steps - t3) * method.interval
    return Target(
        t3 * baseline.interval + asynchronous,
        baseline_steps * baseline.interval,
        baseline.interval / method.interval,
        steps / baseline_steps,
        (t3 * baseline.interval + asynchronous) / (steps * method.interval),
    )
