"""Recompute on the real trainer: three delays, the formula's gradients, the paper's thresholds.

PAPER.md section 2: a segment's first stage keeps its input; R<m> runs the segment's forwards again
2j + 1 backwards before B<m>, which then differentiates what the re-run has left.
"""

import math
import warnings

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.plan import theory
from pipemare_edu.plan.held import held
from pipemare_edu.plan.schedules import depths, pipe_reruns

CASES = [(4, 1, 2), (5, 2, 2), (8, 4, 3), (7, 3, 1), (9, 1, "auto"), (6, 5, 4), (12, 2, "auto")]


def fit(method, P, N, steps, width=3, rate=1e-2, layer=None):
    """A run of P stages with a full trace, and its trainer."""
    torch.manual_seed(0)
    layers = [(layer or nn.Linear)(width, width) for _ in range(P)]
    x = torch.randn(2 * N, width)
    trainer = pm.Trainer(
        layers, mse_loss, lambda named: torch.optim.SGD(named, lr=rate), method, P, N, seed=3
    )
    *_, run = trainer.chunks([(x, x + 1)], steps=steps, full_trace=True)
    return trainer, run


@pytest.mark.parametrize(("P", "N", "S"), CASES)
@pytest.mark.parametrize("method", [pm.PipeMare, pm.PipeDream])
@pytest.mark.parametrize("t3", [0, 2])
def test_three_delays_measured_are_those_of_the_lists(method, P, N, S, t3):
    steps = t3 + 2 * math.ceil(2 * P / N) + 3
    _, run = fit(method(recompute=S, t3=t3), P, N, steps)
    size = round(math.sqrt(P)) if S == "auto" else S
    lists = pm.schedule("lockstep", P, N, steps, t3=t3, recompute=S)
    for i, row in enumerate(lists):
        assert run.trace.operations(i) == row
        measured = run.trace.staleness(i)
        if method is pm.PipeMare:
            assert measured == pm.simulate(lists).staleness[i]
        end = min(i // size * size + size - 1, P - 1)
        forward, backward = run.staleness.forward[i], run.staleness.backward[i]
        again = run.staleness.recompute[i]
        D, lead = 2 * (P - i) - 1, 2 * (end - i) + 1
        if end == P - 1:
            assert again is None and all(d.recompute is None for d in measured)
        elif method is pm.PipeDream:
            assert again == forward == backward
        else:
            assert again.mean == again.implied_mean == pytest.approx(lead / N)
            assert again.max == again.implied_max == math.ceil(lead / N)
            assert forward.mean == pytest.approx(D / N) and backward.max == 0
            assert forward.mean > again.mean > backward.mean


@pytest.mark.parametrize("kind", ["async-1f1b", [9, 9, 6, 6, 2], [4, 3, 3, 1, 0], [7, 5, 3, 1, 1]])
@pytest.mark.parametrize("S", [1, 2, 3])
def test_other_depths_derive_their_lead(kind, S):
    N, D = 2, depths(kind, 5)
    trainer, run = fit(pm.PipeMare(kind, recompute=S), 5, N, 12)
    for i, rerun in enumerate(pipe_reruns(kind, 5, S)):
        end = min(i // S * S + S - 1, 4)
        assert (rerun is None) == (D[end] == D[-1])
        if rerun:
            lead = D[i] - D[end] + D[-1]
            assert run.staleness.recompute[i].mean == pytest.approx(lead / N)
        assert trainer.stages[i].peak == held(run.plan.lists(12)[i])


@pytest.mark.parametrize("bad", [-1, 1.5, True, "sqrt", None])
def test_what_is_no_segment_length_is_refused(bad):
    with pytest.raises(ValueError, match=r'recompute is .*"auto"'):
        pm.PipeMare(recompute=bad)


@pytest.mark.parametrize("depth", ["gpipe", "1f1b", "sequential", [0, 0]])
def test_synchronous_schedules_have_nothing_to_re_run(depth):
    with pytest.raises(ValueError, match="forwards run ahead"):
        pm.PipeMare(depth, recompute=1)
    with pytest.raises(ValueError, match=r"forwards run\s+ahead|follow its forward"):
        pm.schedule(depth, 2, recompute=1)


def test_what_cannot_work_at_this_stage_count_is_refused():
    layers = [nn.Linear(2, 2) for _ in range(3)]
    sgd = lambda named: torch.optim.SGD(named, lr=0.1)  # noqa: E731
    with pytest.raises(ValueError, match="at most the pipe's 3 stages"):
        pm.Trainer(layers, mse_loss, sgd, pm.PipeDream(recompute=4), stages=3)
    with pytest.raises(ValueError, match="follow its forward at once"):
        pm.Trainer(layers, mse_loss, sgd, pm.PipeMare([3, 3, 3], recompute=1), stages=3)


# What is computed


class Block(nn.Module):
    """Everything that a second forward could do twice: masks, statistics, counters, writes."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True)
        )
        self.register_buffer("calls", torch.zeros(()))
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        self.calls = self.calls + 1
        return self.drop(self.body(x))


def gradients_of(method, rate, steps=9, P=6, N=3):
    """Every gradient that any optimizer step saw, the losses, and all buffers at the end."""
    seen = []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            seen.extend(p.grad.clone() for g in self.param_groups for p in g["params"])
            super().step(closure)

    torch.manual_seed(0)
    layers = [Block(4, 4) for _ in range(P)]
    data = [(torch.randn(2 * N, 4), torch.randn(2 * N, 4)) for _ in range(3)]
    run = pm.Trainer(
        layers, mse_loss, lambda named: Watched(named, lr=rate), method, P, N, seed=7
    ).fit(data, steps=steps)
    return seen, run.losses, [b for layer in layers for b in layer.buffers()]


def same(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


@pytest.mark.parametrize("S", [1, 2, 4, "auto"])
@pytest.mark.parametrize(
    "plain", [pm.PipeMare(), pm.PipeMare("async-1f1b", t2=0.1, t3=2), pm.PipeDream()], ids=str
)
def test_with_weights_that_stand_still_a_re_run_changes_no_bit(plain, S):
    again = type(plain)(**{**vars(plain), "recompute": S})
    for one, other in zip(gradients_of(plain, 0.0), gradients_of(again, 0.0), strict=True):
        assert one == other if isinstance(one[0], float) else same(one, other)


@pytest.mark.parametrize("depth", ["lockstep", "async-1f1b"])
def test_a_stashing_re_run_reads_what_its_forward_read(depth):
    """So it changes nothing, whatever the weights do meanwhile."""
    plain, again = (gradients_of(pm.PipeDream(depth, recompute=S), 0.05) for S in (0, 2))
    assert plain[1] == again[1] and same(plain[0], again[0]) and same(plain[2], again[2])
    moved = (gradients_of(pm.PipeMare(depth, recompute=S), 0.05)[0] for S in (0, 2))
    assert not same(*moved)  # else the line above would say nothing


def test_buffers_move_once_a_microbatch():
    _, _, buffers = gradients_of(pm.PipeMare(recompute=2), 0.05, steps=9, N=3)
    counters = [int(b) for b in buffers if not b.ndim]
    assert counters == [27] * 12  # num_batches_tracked and the layer's own


# By hand: linear stages, where gradients are products of what was read


def by_hand(depth, rerun, N, steps, decay, stash, data, weights, rate=0.05):
    """The weights after each step, from PAPER.md's definitions alone (section 2)."""
    history = [[w] for w in weights]
    deltas = [[torch.zeros_like(w)] for w in weights]  # deltas[i][k] goes with history[i][k]
    gammas = [decay ** (N / d) if d else 0.0 for d in depth]
    P = len(weights)
    for k in range(steps):
        x, y = data[k % len(data)]
        grads = [torch.zeros_like(w) for w in weights]
        for n, (xm, ym) in enumerate(zip(x.tensor_split(N), y.tensor_split(N), strict=True)):
            read = [max(0, k + math.floor((n - d) / N)) for d in depth]
            first = [xm]  # what each stage's forward was given
            for i in range(P):
                first.append(first[i] @ history[i][read[i]].T)
            again = list(first)  # what its backward is given
            for i, r in enumerate(rerun):
                if r is None:
                    continue
                version = read[i] if stash else max(0, k + math.floor((n - r.lead) / N))
                w = history[i][version]
                if decay and not stash:
                    w = w - (depth[i] - r.lead) / N * deltas[i][version]
                source = first[i] if r.first else again[i]
                again[i] = source
                if not r.last:
                    again[i + 1] = source @ w.T
            g = len(xm) / len(x) * 2 * (first[P] - ym) / ym.numel()
            for i in reversed(range(P)):
                grads[i] += g.T @ again[i]
                if stash:
                    back = history[i][read[i]]
                else:
                    back = history[i][k] - (depth[i] / N * deltas[i][k] if decay else 0)
                g = g @ back
        for i in range(P):
            history[i].append(history[i][k] - rate * grads[i])
            moved = (1 - gammas[i]) * (history[i][k + 1] - history[i][k])
            deltas[i].append(gammas[i] * deltas[i][k] + moved)
    return history


@pytest.mark.parametrize("kind", ["lockstep", "async-1f1b", [6, 6, 3, 2, 1]])
@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("S", [1, 2, 3])
@pytest.mark.parametrize(
    ("method", "t2"), [(pm.PipeMare, 0.0), (pm.PipeMare, 0.3), (pm.PipeDream, 0.0)]
)
def test_weights_are_those_of_the_formula(kind, N, S, method, t2):
    P, steps = 5, 14
    g = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    layers = [nn.Linear(3, 3, bias=False).double() for _ in range(P)]
    weights = [torch.eye(3).double() + draw(3, 3) / 4 for _ in layers]
    for layer, w in zip(layers, weights, strict=True):
        layer.weight.data.copy_(w)
    data = [(draw(7, 3), draw(7, 3)) for _ in range(4)]
    extra = {"t2": t2} if t2 else {}
    pm.Trainer(
        layers,
        mse_loss,
        lambda named: torch.optim.SGD(named, lr=0.05),
        method(kind, recompute=S, **extra),
        P,
        N,
    ).fit(data, steps=steps)
    D, rerun = depths(kind, P), pipe_reruns(kind, P, S)
    history = by_hand(D, rerun, N, steps, t2, method is pm.PipeDream, data, weights)
    for layer, row in zip(layers, history, strict=True):
        torch.testing.assert_close(layer.weight.detach(), row[-1], rtol=1e-10, atol=1e-10)


# The paper's quadratic with a re-run (PAPER.md section 3)


class Quadratic(nn.Module):
    """Three reads of one weight, told apart by the three outputs: through the loss the first gives
    the gradient the value of forward time; w * 1 keeps that of the re-run; w ** 2 is differentiated
    at the backward weights."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x):
        return x * self.w, x * (self.w * 1) ** 2, x * self.w**2


class Passes(nn.Module):
    def forward(self, value):
        return value


def amplitudes(case, rate, t2, steps=2000):
    layer, seen = Quadratic(), []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            seen.append(abs(layer.w.item()))

    def loss(output, target):
        forward, again, live = output
        sensitivity = case.discrepancy - case.phi
        value = (1 + case.discrepancy) * forward**2 - case.phi * again - sensitivity * live
        return (value / 2).sum()

    one = torch.ones(1, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.WeightSemanticsWarning)
        pm.Trainer(
            [layer, Passes()],
            loss,
            lambda named: Watched(named, lr=rate),
            pm.PipeMare([case.tau_fwd, case.tau_recomp], t2=t2, recompute=1),
            stages=2,
            limit=math.inf,
        ).fit([(one, one)], steps=steps)
    return seen


@pytest.mark.parametrize(("t2", "paper"), [(0.0, 0.021374), ("theory", 0.084198)])
def test_the_papers_recompute_thresholds_on_the_real_trainer(t2, paper):
    case = theory.Quadratic(
        10, discrepancy=5, tau_recomp=4, phi=2.5, gamma=theory.gamma_star(10) if t2 else None
    )
    assert theory.threshold(case) == pytest.approx(paper, abs=5e-7)
    expected = theory.iterates(case, 0.9 * paper, 150)
    got = amplitudes(case, 0.9 * paper, t2, steps=150)
    assert got == pytest.approx(abs(expected[1:]).tolist(), rel=1e-9, abs=1e-12)
    tenth = 200
    for rate, grows in ((0.99 * paper, False), (1.01 * paper, True)):
        seen = amplitudes(case, rate, t2)
        assert (max(seen[-tenth:]) > max(seen[tenth : 2 * tenth])) == grows


def test_cancelled_runs_drain_and_go_on():
    """Stopped at any operation and continued, a run with re-runs is a shorter run, twice."""
    torch.manual_seed(0)
    x = torch.randn(4, 3)
    method = pm.PipeMare(t2=0.1, recompute=2)
    for stop in (3, 40, 77, 150):
        trainers = []
        for _ in range(2):
            torch.manual_seed(1)
            layers = [nn.Linear(3, 3) for _ in range(5)]
            sgd = lambda named: torch.optim.SGD(named, lr=0.05)  # noqa: E731
            trainers.append(pm.Trainer(layers, mse_loss, sgd, method, 5, 2))
        for n, run in enumerate(trainers[0].chunks([(x, x)], steps=40, seconds=0.0)):
            if n == stop:
                run.cancel()
        assert run.status == "cancelled" and not any(s.waiting for s in trainers[0].stages)
        if run.steps:
            trainers[1].fit([(x, x)], steps=run.steps)
        for a, b in zip(trainers[0].layers, trainers[1].layers, strict=True):
            assert torch.equal(a.weight, b.weight)


def test_runs_with_a_re_run_are_saved_whole(tmp_path):
    _, run = fit(pm.PipeMare(recompute=2), 5, 2, 12)
    run.save(tmp_path / "run")
    loaded = pm.load(tmp_path / "run")
    assert loaded.staleness == run.staleness and loaded.trace.reads == run.trace.reads


def test_an_error_in_a_re_run_says_so():
    class Once(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            if self.calls > 5:  # the sixth is R0
                raise RuntimeError("broken")
            return super().forward(x)

    with pytest.raises(pm.StageError, match="recompute: RuntimeError: broken") as error:
        fit(pm.PipeMare("lockstep", recompute=1), 3, 1, 9, layer=Once)
    assert error.value.operation == "R"
