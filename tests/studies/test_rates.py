"""T1 on paper is T1 in a real run."""

from __future__ import annotations

import pytest
import torch

import pipemare_edu as pm
from pipemare_edu.studies.rates import BASES, Rescheduled, base_rate, factor
from pipemare_edu.trainer.rates import t1_factor


@pytest.mark.parametrize(
    ("tau", "expected"),
    [
        (5, [0.020000, 0.029907, 0.044721, 0.1, 0.1]),
        (27, [0.003704, 0.008443, 0.019245, 0.1, 0.1]),
    ],
)
def test_the_papers_values(tau, expected):
    found = [0.1 * factor(tau, k, 1000) for k in (0, 250, 500, 1000, 5000)]
    assert found == pytest.approx(expected, abs=1e-6)


def test_power_and_guard():
    assert factor(7, 0, 10, power=0.5) == pytest.approx(7**-0.5)
    assert factor(7, 5, 10, power=2) == pytest.approx(1 / 7)
    assert factor(7, 3, 10, power=0) == 1
    assert factor(0.125, 0, 10) == 1 and factor(0.125, 0, 10, guard=False) == 8
    assert factor(0.125, 10, 10, guard=False) == factor(0.125, 3, 0, guard=False) == 1
    assert factor(7, 3, 10, guard=False) == t1_factor(7, 3, 10)


def test_the_cosine_is_torchs():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    for k in range(40):
        assert base_rate("cosine", 0.2, k, 40) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()


def test_the_other_bases():
    assert [base_rate("constant", 0.2, k, 10) for k in (0, 9)] == [0.2, 0.2]
    assert [base_rate("step", 0.2, k, 10) for k in (4, 5)] == pytest.approx([0.2, 0.02])
    warm = [base_rate("warm-up", 0.2, k, 20) for k in (0, 1, 2, 11, 20)]
    assert warm == pytest.approx([0, 0.1, 0.2, 0.1, 0])
    with pytest.raises(ValueError, match="did you mean 'cosine'"):
        base_rate("cosin", 0.2, 0, 10)


@pytest.mark.parametrize("base", list(BASES))
def test_optimizers_step_with_the_rates_of_the_formula(base):
    method = Rescheduled(t1=6, base=base, peak=0.1, steps=12, guard=False)
    pm.train("digits", method, stages=3, microbatches=2, steps=12)
    taus = method.taus(3, 2)
    assert taus == (2.5, 1.5, 0.5)
    for seen, paper in zip(method.seen, method.on_paper(taus, range(12)), strict=True):
        assert seen == pytest.approx(paper)


def test_the_papers_power_over_the_cosine_is_pipemare_t1():
    runs = [
        pm.train("digits", method, stages=4, steps=20)
        for method in (pm.PipeMare(t1=10), Rescheduled(t1=10, peak=0.2, steps=20))
    ]
    assert runs[0].losses == pytest.approx(runs[1].losses, rel=1e-4)
