"""Excerpts of a run: complete, undisturbed, and placed by the clock."""

from __future__ import annotations

from collections import Counter

import pytest
from torch.nn.functional import mse_loss
from torch.optim import SGD

import pipemare_edu as pm
from pipemare_edu.lessons import excerpt, idle_share
from pipemare_edu.lessons.excerpt import length
from pipemare_edu.models.mlp import mlp
from pipemare_edu.plan.clock import Event
from pipemare_edu.tasks import get
from pipemare_edu.trainer.run import Run


def trained(method: pm.Method, steps: int = 12) -> Run:
    task = get("regression")
    x, y = task.train
    trainer = pm.Trainer(
        mlp(16, 8, 4, depth=3), mse_loss, lambda named: SGD(named, lr=0.01), method, 3, 2
    )
    return trainer.fit([(x[:16], y[:16])], steps=steps, evaluate=[task.test], every=5)


@pytest.mark.parametrize("method", [pm.GPipe(), pm.PipeMare(), pm.PipeDream()])
def test_every_stage_runs_whole_steps(method: pm.Method) -> None:
    events = excerpt(trained(method), steps=2)
    counts = Counter((e.stage, e.kind) for e in events)
    whole = {(i, kind): n for i in range(3) for kind, n in (("F", 4), ("B", 4), ("U", 2))}
    assert counts == whole
    for row in ([e for e in events if e.stage == i] for i in range(3)):
        ordered = sorted(row, key=lambda e: e.start)
        assert all(a.end <= b.start + 1e-9 for a, b in zip(ordered, ordered[1:], strict=False))


def test_operations_take_the_median_of_their_kind_and_stage() -> None:
    run = trained(pm.GPipe())
    run.trace._first[:] = [
        e._replace(end=e.start + (9.0 if e.index % 3 == 0 else 1.0 + e.stage))
        for e in run.trace._first
    ]
    for e in excerpt(run):
        assert e.end - e.start == pytest.approx(1.0 + e.stage)


def test_too_short_a_run_is_refused() -> None:
    with pytest.raises(ValueError, match="no 3 steps in a row"):
        excerpt(trained(pm.PipeMare(), steps=4), steps=3)


def test_length_and_idle_share() -> None:
    events = [Event(0, "F", 0, 1.0, 2.0, 0), Event(1, "F", 0, 2.0, 5.0, 0)]
    assert length(events) == 4.0
    assert [idle_share(events, 0), idle_share(events, 1)] == [0.75, 0.25]
    assert idle_share(events) == 0.5
