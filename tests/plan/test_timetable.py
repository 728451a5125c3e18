"""The vectorised recurrence gives the times of the clock, operation by operation."""

import random

import pytest

import pipemare_edu as pm
from pipemare_edu.plan.ops import receiver
from pipemare_edu.plan.schedules import depths, pipe_reruns
from pipemare_edu.plan.timetable import Pipe, updates


def draw(rng, device_kind):
    """A random pipe, its schedule's kind and segment length."""
    P, N = rng.randint(1, 9), rng.randint(1, 5)
    falling = sorted((rng.randint(0, 2 * P) for _ in range(P)), reverse=True)
    kind = rng.choice(["gpipe", "1f1b", "lockstep", "async-1f1b", "sequential", falling])
    recompute = rng.randint(1, P) if kind in ("lockstep", "async-1f1b") else 0
    ahead = {"gpipe": [N - 1] * P, "1f1b": range(P - 1, -1, -1)}
    D = ahead[kind] if kind in ("gpipe", "1f1b") else depths(kind, P)
    workers = rng.randint(1, P)
    layout = {
        "own": range(P),
        "consecutive": sorted(i * workers // P for i in range(P)),
        "interleaved": [i % workers for i in range(P)],
    }[device_kind]
    some = lambda n, top: tuple(rng.choice([0.0, rng.uniform(0, top)]) for _ in range(n))  # noqa: E731
    pipe = Pipe(
        tuple(D), N, kind in ("gpipe", "1f1b"), pipe_reruns(kind, P, recompute),
        tuple(rng.uniform(0.1, 2) for _ in range(P)), tuple(rng.uniform(0.1, 4) for _ in range(P)),
        some(P, 1), some(P - 1, 2), some(P - 1, 2), tuple(layout),
    )  # fmt: skip
    return pipe, kind, recompute


@pytest.mark.parametrize("seed", range(150))
def test_one_stage_a_device_equals_the_clock(seed):
    rng = random.Random(seed)
    pipe, kind, recompute = draw(rng, "own")
    steps = rng.randint(1, 8)
    timeline = pm.simulate(
        pm.schedule(kind, len(pipe.depths), pipe.microbatches, steps, recompute=recompute),
        pipe.forward, pipe.backward, pipe.latency, pipe.update, transfer=pipe.transfer,
    )  # fmt: skip
    times = list(updates(pipe, steps))
    first = [e.end for e in timeline.events[0] if e.kind == "U"]
    assert [t for t, _ in times] == pytest.approx(first, rel=1e-12)
    assert times[-1][1] == pytest.approx(timeline.makespan, rel=1e-12)


def longest_path(pipe, lists):
    """Ends of all operations when devices run their stages' operations in the timetable's order:
    an independent walk over the graph, without numpy."""
    order, equal = [], pipe.depths
    for i, (row, depth, rerun) in enumerate(zip(lists, pipe.depths, pipe.reruns, strict=True)):
        again = rerun.lead if rerun else 0
        for op in row:
            m = op.index if op.kind != "U" else (op.index + 1) * pipe.microbatches - 1
            half, rank = {
                "F": (2 * m - depth, (0, equal[:i].count(equal[i]), i)),
                "R": (2 * m - 2 * again + depth, (1, equal[:i].count(equal[i]), i)),
                "B": (2 * m + depth + 1, (2, equal[i + 1 :].count(equal[i]), -i)),
                "U": (2 * m + depth + 1, (3, 0, i)),
            }[op.kind]
            minibatch = op.step(pipe.microbatches) if pipe.flushes else 0
            order.append((minibatch, half, rank, i, op))
    cost = {"F": pipe.forward, "R": pipe.forward, "B": pipe.backward, "U": pipe.update}
    free, link, ready, ends = {}, {}, {}, {}
    inside = [row.inside for row in lists] + [False]
    for *_, i, op in sorted(order):
        start = max(free.get(pipe.devices[i], 0.0), ready.pop((op, i), 0.0))
        end = free[pipe.devices[i]] = ends[i, op] = start + cost[op.kind][i]
        there = receiver(op, i, len(lists), inside[i + 1])
        if there is not None:
            pair = min(i, there)
            same = pipe.devices[i] == pipe.devices[there]
            transfer, latency = (0, 0) if same else (pipe.transfer[pair], pipe.latency[pair])
            link[i, there] = sent = max(end, link.get((i, there), 0.0)) + transfer
            ready[op, there] = sent + latency
    return ends


@pytest.mark.parametrize("layout", ["own", "consecutive", "interleaved"])
@pytest.mark.parametrize("seed", range(60))
def test_shared_devices_equal_the_longest_path(layout, seed):
    rng = random.Random(seed)
    pipe, kind, recompute = draw(rng, layout)
    steps = rng.randint(1, 5)
    lists = pm.schedule(kind, len(pipe.depths), pipe.microbatches, steps, recompute=recompute)
    ends = longest_path(pipe, lists)
    assert list(updates(pipe, steps))[-1][1] == pytest.approx(max(ends.values()), rel=1e-12)
