"""The interpreter runs what the lists say: staleness, order, activations, deadlock."""

import math
import random

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.plan.ops import Operations
from pipemare_edu.plan.schedules import depths, stage_operations
from pipemare_edu.trainer.methods import Method


def trainer(method, P, N, width=2):
    torch.manual_seed(0)
    layers = [nn.Linear(width, width) for _ in range(P)]
    return pm.Trainer(layers, mse_loss, lambda named: torch.optim.SGD(named, lr=1e-3), method, P, N)


def fit(method, P, N, steps):
    x = torch.randn(N, 2)
    *_, run = trainer(method, P, N).chunks([(x, x)], steps=steps, full_trace=True)
    return run


@pytest.mark.parametrize("depth", ["lockstep", "async-1f1b"])
@pytest.mark.parametrize(("P", "N"), [(1, 1), (4, 1), (8, 4), (5, 3), (12, 2)])
@pytest.mark.parametrize("t3", [0, 3])
def test_measured_staleness_is_the_schedules(depth, P, N, t3):
    """After the fill ceil((D_i - n) / N); climbing from 0 after the switch at step t3."""
    run = fit(pm.PipeMare(depth, t3=t3), P, N, steps=t3 + 2 * (2 * P // N + 2))
    for i, D in enumerate(depths(depth, P)):
        for d in run.trace.staleness(i):
            k, n = divmod(d.microbatch, N)
            read = k if k < t3 else max(t3, k + math.floor((n - D) / N))
            assert (d.forward, d.backward) == (k - read, 0)
            if k >= t3 + math.ceil(D / N):
                assert d.forward == max(0, math.ceil((D - n) / N))
        measured = run.staleness.forward[i]
        assert measured.mean == measured.implied_mean == pytest.approx(D / N)
        assert measured.max == measured.implied_max == math.ceil(D / N)


def test_stashing_reads_the_forwards_version():
    run = fit(pm.PipeDream(), 3, 2, steps=12)
    for i in range(3):
        assert all(d.forward == d.backward for d in run.trace.staleness(i))
        assert run.staleness.backward[i] == run.staleness.forward[i]


@pytest.mark.parametrize(
    "method",
    [
        pm.Sequential(),
        pm.GPipe(),
        pm.OneFOneB(),
        pm.PipeDream(),
        pm.PipeMare(t3=2),
        pm.PipeMare([7, 3, 3]),
    ],
)
def test_the_trace_equals_the_plan(method):
    run = fit(method, 3, 2, steps=9)
    for i in range(3):
        planned = Operations(method.operations(i, 3, 2, range(9)))
        assert run.trace.operations(i) == planned


@pytest.mark.parametrize("depth", ["lockstep", "async-1f1b", "gpipe", "1f1b", [5, 5, 0, 0]])
def test_activations_in_flight_are_the_schedules(depth):
    P, N, steps = 4, 2, 12
    t = trainer(Method(depth) if isinstance(depth, str) else pm.PipeMare(depth), P, N)
    x = torch.randn(N, 2)
    t.fit([(x, x)], steps=steps)
    expected = pm.simulate(pm.schedule(depth, P, N, steps)).in_flight
    assert tuple(s.peak.graphs for s in t.stages) == expected
    if depth in ("lockstep", "async-1f1b"):
        assert expected == tuple(d + 1 for d in depths(depth, P))
    assert not any(s.flying for s in t.stages)


class Listed(Method):
    """A method that runs operation lists as given."""

    lists = ()

    def operations(self, stage, stages, microbatches, steps):
        return iter(self.lists[stage])


def shuffled_lists(rng, P, N, steps):
    """Legal lists with a few operations of one stage moved: some still run, most deadlock."""
    D = sorted((rng.randrange(6) for _ in range(P)), reverse=rng.random() < 0.7)
    lists = [list(stage_operations_for(d, N, steps)) for d in D]
    row = rng.choice(lists)
    for _ in range(rng.randrange(3)):
        a, b = rng.randrange(len(row)), rng.randrange(len(row))
        if row[a].kind != "U" and row[b].kind != "U":
            row[a], row[b] = row[b], row[a]
    return [Operations(r) for r in lists]


def stage_operations_for(depth, N, steps):
    return stage_operations([depth], 0, 1, N, range(steps))


def test_the_clocks_verdict_is_the_interpreters():
    rng = random.Random(0)
    verdicts = []
    for _ in range(60):
        P, N = rng.randint(1, 4), rng.randint(1, 3)
        method = Listed()
        object.__setattr__(method, "lists", shuffled_lists(rng, P, N, 3))
        deadlock = pm.simulate(method.lists).deadlock
        x = torch.randn(N, 2)
        t = trainer(method, P, N)
        if deadlock is None:
            assert t.fit([(x, x)], steps=3).status == "done"
        else:
            with pytest.raises(pm.ScheduleError, match="deadlock") as caught:
                t.fit([(x, x)], steps=3)
            assert [line.strip() for line in str(caught.value).splitlines()[-1:]] == [
                line.strip() for line in deadlock.splitlines()[-1:]
            ]
        verdicts.append(deadlock is None)
    assert 10 < sum(verdicts) < 50, "the cases should be of both kinds"
