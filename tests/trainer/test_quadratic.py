"""The paper's quadratic on the real trainer: one scalar layer, depth [10], 10,000 steps.

Below the threshold of PAPER.md section 3 the iterates shrink, above it they grow; three digits of
each threshold are pinned from both sides.
"""

import warnings

import pytest
import torch
from torch import nn

import pipemare_edu as pm
from pipemare_edu.plan import theory

TAU, STEPS = 10, 10_000


class Quadratic(nn.Module):
    """Gradient (1 + Delta) u_fwd - Delta u_bkwd: w * 1 keeps the weights of forward time, w ** 2
    is differentiated at the backward weights (DESIGN.md section 5)."""

    def __init__(self, delta: float):
        super().__init__()
        self.w, self.delta = nn.Parameter(torch.ones((), dtype=torch.float64)), delta

    def forward(self, x):
        kept, live = (self.w * 1) ** 2, self.w**2
        return x * ((1 + self.delta) / 2 * kept - self.delta / 2 * live)


def amplitudes(rate, delta=0.0, t2=0.0):
    """max |w| over the second and the last tenth of a real run."""
    layer = Quadratic(delta)
    seen = []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            seen.append(abs(layer.w.item()))

    trainer = pm.Trainer(
        [layer],
        lambda output, target: output.mean(),
        lambda named: Watched(named, lr=rate),
        method=pm.PipeMare([TAU], t2=t2),
        limit=float("inf"),
    )
    one = torch.ones(1, 1, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.WeightSemanticsWarning)
        trainer.fit([(one, one)], steps=STEPS)
    tenth = STEPS // 10
    return max(seen[tenth : 2 * tenth]), max(seen[-tenth:])


@pytest.mark.parametrize(
    ("delta", "t2", "stable", "unstable"),
    [(0.0, 0.0, 0.149, 0.150), (5.0, 0.0, 0.0175, 0.0176), (5.0, "theory", 0.0976, 0.0977)],
)
def test_threshold_on_the_real_trainer(delta, t2, stable, unstable):
    gamma = theory.gamma_star(TAU) if t2 else None
    predicted = theory.threshold(theory.Quadratic(TAU, discrepancy=delta, gamma=gamma))
    assert stable < predicted < unstable
    second, last = amplitudes(stable, delta, t2)
    assert last < second
    second, last = amplitudes(unstable, delta, t2)
    assert last > second


def test_iterates_are_those_of_the_recurrence():
    layer = Quadratic(5.0)
    case = theory.Quadratic(TAU, discrepancy=5.0, gamma=theory.gamma(0.135, TAU))
    expected = theory.iterates(case, 0.05, 200)
    with pytest.warns(pm.WeightSemanticsWarning):
        pm.Trainer(
            [layer],
            lambda output, target: output.mean(),
            lambda named: torch.optim.SGD(named, lr=0.05),
            method=pm.PipeMare([TAU], t2=0.135),
        ).fit([(torch.ones(1, 1, dtype=torch.float64),) * 2], steps=200)
    assert layer.w.item() == pytest.approx(expected[-1], rel=1e-9)
