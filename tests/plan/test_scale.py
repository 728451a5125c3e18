"""Planning a machine: the clock's utilization, the ledger's bytes, in well under a second."""

import math
import random
from time import process_time

import pytest

import pipemare_edu as pm
from pipemare_edu.plan.held import held
from pipemare_edu.plan.ledger import ledger
from pipemare_edu.plan.machine import Card, Link, Load, Machine, Strategy, uniform
from pipemare_edu.plan.scale import forecast, time_to_target

EVEN = Machine()


def both(P, N, **settings):
    gpipe = forecast(uniform(P), EVEN, Strategy("gpipe", N))
    return gpipe, forecast(uniform(P), EVEN, Strategy("lockstep", N, **settings))


@pytest.mark.parametrize(("N", "factor"), [(8, 14.25), (16, 7.625), (32, 4.3125)])
def test_utilization_factors_of_the_papers_resnet(N, factor):
    """(N + P - 1) / N at P = 107, from simulated times; and what 100 minibatches get of it."""
    gpipe, lockstep = both(107, N)
    assert gpipe.interval / lockstep.interval == pytest.approx(factor)
    assert lockstep.utilization == pytest.approx(1)
    assert gpipe.utilization == pytest.approx(N / (N + 106))
    got = gpipe.run_seconds / lockstep.run_seconds
    assert got == pytest.approx(100 * (N + 106) / (100 * N + 106))  # 12.58, 7.15, 4.17
    assert got < factor


def test_a_run_pays_for_fill_and_drain():
    """The exact clock's makespan, at the paper's size."""
    _, lockstep = both(107, 8)
    timeline = pm.simulate(pm.schedule("lockstep", 107, 8, 100), backward=2)
    assert lockstep.run_seconds == pytest.approx(timeline.makespan)
    assert lockstep.run_utilization == pytest.approx(timeline.utilization)


@pytest.mark.parametrize("seed", range(25))
def test_forecasts_are_the_clocks(seed):
    rng = random.Random(seed)
    P, N = rng.randint(2, 8), rng.randint(1, 5)
    kind = rng.choice(["gpipe", "1f1b", "lockstep", "async-1f1b", (7,) * P])
    recompute = rng.choice([0, 1, 2]) if kind in ("lockstep", "async-1f1b") else 0
    load = Load(
        [rng.uniform(1, 3) for _ in range(P)], [rng.randint(1, 99) for _ in range(P)],
        [rng.randint(1, 99) for _ in range(P)], [rng.randint(1, 99) for _ in range(P)],
    )  # fmt: skip
    machine = Machine(Card(flops=2.0, memory=1e5), Link(rng.uniform(0, 1), rng.uniform(50, 500)))
    strategy = Strategy(kind, N, recompute, stashes=rng.random() < 0.5, update=0.003)
    steps = 60 + 8 * P
    seen = forecast(load, machine, strategy, steps)
    lists = pm.schedule(kind, P, N, steps, recompute=recompute)
    timeline = pm.simulate(
        lists, [w / 2 for w in load.work], list(load.work), machine.link.latency,
        [0.003 * w for w in load.weights],
        transfer=[x / machine.link.bandwidth for x in load.outputs[:-1]],
    )  # fmt: skip
    assert seen.run_seconds == pytest.approx(timeline.makespan)
    assert seen.run_utilization == pytest.approx(timeline.utilization)
    assert seen.interval == pytest.approx(timeline.interval, rel=2e-3)
    assert seen.utilization == pytest.approx(timeline.steady_utilization, rel=2e-3)
    rows = ledger(
        load.weights, [0] * P if strategy.flushes else pm.depths(kind, P), N, 1, strategy.stashes,
        activations=load.activations, inputs=(0, *load.outputs[:-1]), held=[*map(held, lists)],
    )  # fmt: skip
    assert [dict(row) for row in seen.memory] == rows
    middle = [d for d in timeline.staleness[0] if 2 * 8 * P // N < d.step < steps - 8 * P // N]
    if middle:
        assert seen.tau_fwd[0] == pytest.approx(sum(d.forward for d in middle) / len(middle))
        if seen.tau_recomp[0] is not None and not strategy.stashes:
            again = sum(d.recompute for d in middle) / len(middle)
            assert seen.tau_recomp[0] == pytest.approx(again)


SIZES = {
    "gpipe": Strategy("gpipe", 8),
    "1f1b": Strategy("1f1b", 8),
    "pipedream": Strategy("lockstep", 8, stashes=True),
    "pipemare": Strategy("lockstep", 8, corrects=True),
    "pipemare N=1": Strategy("lockstep", 1, corrects=True),
    "async-1f1b": Strategy("async-1f1b", 8),
    "recompute": Strategy("lockstep", 8, "auto", corrects=True),
}


@pytest.mark.parametrize(
    ("name", "layout", "devices"),
    [
        *((name, "consecutive", None) for name in SIZES),
        *((name, "interleaved", 125) for name in ("gpipe", "1f1b", "pipemare", "recompute")),
        *((name, "consecutive", 125) for name in ("gpipe", "async-1f1b")),
    ],
)
def test_a_thousand_stages_take_a_moment(name, layout, devices):
    load = uniform(1000, work=1e-3, weights=10**7, activations=10**6, outputs=10**5)
    machine = Machine(Card(memory=16e9), Link(1e-5, 1e10), devices, layout)
    start = process_time()
    seen = forecast(load, machine, SIZES[name], run_steps=20)
    assert process_time() - start < 2  # "well under a second" where nothing else runs
    assert 0 < seen.run_utilization <= seen.utilization * (1 + 1e-9) <= 1 + 1e-8
    if not SIZES[name].flushes and name != "recompute":
        assert seen.utilization > (0.99 if SIZES[name].depth == "lockstep" else 0.9)
    assert len(seen.bytes) == (devices or 1000)


def test_several_chunks_a_device():
    """The same stages on fewer cards: as much work a card, less idle time for synchronous ones."""
    load = uniform(16, weights=8, activations=4, outputs=2)
    own = forecast(load, Machine(), Strategy("gpipe", 4)).utilization
    four = [forecast(load, Machine(devices=4, layout=layout), Strategy("gpipe", 4)).utilization
            for layout in ("consecutive", "interleaved")]  # fmt: skip
    assert own == pytest.approx(4 / 19) and four == pytest.approx([4 / 7, 16 / 19])
    for layout in ("consecutive", "interleaved"):
        lockstep = forecast(load, Machine(devices=4, layout=layout), Strategy("lockstep", 4))
        assert lockstep.utilization == pytest.approx(1)
        assert sum(lockstep.bytes) == sum(forecast(load, Machine(), Strategy("lockstep", 4)).bytes)
    explicit = Machine(layout=(0, 0, 1, 1))
    assert forecast(uniform(4), explicit, Strategy("lockstep")).utilization == pytest.approx(1)


def test_a_card_too_small():
    load = uniform(4, weights=100)
    assert not forecast(load, Machine(Card(memory=350)), Strategy(stashes=True)).fits
    assert forecast(load, Machine(Card(memory=350)), Strategy()).fits


def test_a_slow_link_is_the_bottleneck():
    """No depth hides a link that needs longer for a message than a stage for its work."""
    deep = Strategy((60, 48, 36, 24, 12, 0))
    slow = forecast(uniform(6, outputs=10), Machine(link=Link(0, 1)), deep)
    assert slow.interval == pytest.approx(10)
    fast = forecast(uniform(6, outputs=1), Machine(link=Link(0.5, 10)), Strategy("lockstep"))
    assert fast.interval == pytest.approx(3)


def test_time_to_target_is_its_three_factors():
    gpipe, lockstep = both(107, 8)
    plain = time_to_target(lockstep, gpipe, 1200, 1000)
    assert plain.warmup_bill == 1 and plain.step_ratio == 1.2
    assert plain.baseline_seconds / plain.seconds == pytest.approx(14.25 / 1.2)
    warm = time_to_target(lockstep, gpipe, 1200, 1000, t3=300)
    product = warm.baseline_seconds / warm.utilization * warm.step_ratio * warm.warmup_bill
    assert warm.seconds == pytest.approx(product)
    assert warm.warmup_bill == pytest.approx(0.75 + 0.25 * 14.25)


@pytest.mark.parametrize(
    ("load", "machine", "strategy", "what"),
    [
        (uniform(3), Machine(devices=4), Strategy(), "devices"),
        (uniform(3), Machine(layout="round"), Strategy(), "layout"),
        (uniform(3), Machine(layout=(0, 2, 2)), Strategy(), "layout"),
        (uniform(3), EVEN, Strategy(microbatches=0), "microbatches"),
        (uniform(3), EVEN, Strategy((1, 2, 3)), "depths"),
        (uniform(3), EVEN, Strategy("gpipe", recompute=1), "recompute"),
        (uniform(3), EVEN, Strategy(recompute=4), "recompute"),
    ],
)
def test_what_cannot_be_is_refused(load, machine, strategy, what):
    with pytest.raises(ValueError, match=what):
        forecast(load, machine, strategy)


@pytest.mark.parametrize("bad", [[1, 2], [1, -1, 1], [1, math.nan, 1]])
def test_impossible_loads_are_refused(bad):
    with pytest.raises(ValueError, match="weights"):
        Load([1, 1, 1], bad, [0, 0, 0], [0, 0, 0])
