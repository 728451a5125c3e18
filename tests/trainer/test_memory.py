"""Bytes predicted (one probe forward, the schedule, the ledger) equal the bytes of a live run."""

import copy
import weakref

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.models.resnet import resnet
from pipemare_edu.plan.copies import counted_factor, instants, reported_factor
from pipemare_edu.plan.held import peaks
from pipemare_edu.plan.ledger import ledger
from pipemare_edu.plan.schedules import depths
from pipemare_edu.trainer.memory import memory, predict, probe_forward, state_copies
from pipemare_edu.trainer.stage import Stage

P = 6
OPTIMIZERS = {
    0: lambda named: torch.optim.SGD(named, lr=1e-3),
    1: lambda named: torch.optim.SGD(named, lr=1e-3, momentum=0.9),
    2: lambda named: torch.optim.AdamW(named, lr=1e-3),
}
METHODS = [
    (pm.GPipe(), "gpipe", {}),
    (pm.OneFOneB(), "1f1b", {}),
    (pm.PipeDream(), "lockstep", {"stashes": True}),
    (pm.PipeDream("async-1f1b", recompute=2), "async-1f1b", {"stashes": True}),
    (pm.PipeMare(), "lockstep", {}),
    (pm.PipeMare(t2=0.1, recompute=4), "lockstep", {"corrects": True}),
    (pm.PipeMare("async-1f1b", t2=0.1), "async-1f1b", {"corrects": True}),
]
IDS = [repr(method) for method, *_ in METHODS]


def linear(method, N, copies, rows=2):
    widths = [5, 4, 3, 6, 2, 7, 2]
    layers = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]  # noqa: B905
    batch = torch.randn(rows * N, 5), torch.randn(rows * N, 2)
    return pm.Trainer(layers, mse_loss, OPTIMIZERS[copies], method, P, N), batch, widths


@pytest.mark.parametrize("copies", OPTIMIZERS)
@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize(("method", "depth", "extra"), METHODS, ids=IDS)
def test_counted_equals_the_ledger(method, depth, extra, N, copies):
    trainer, batch, widths = linear(method, N, copies)
    run = trainer.fit([batch], steps=24)
    weights = [sum(p.nbytes for p in layer.parameters()) for layer in trainer.layers]
    inputs = [2 * a * 4 for a in widths[:P]]
    saved = list(inputs)  # a Linear saves its input of two rows
    saved[-1] += 2 * 2 * 4 * 2  # the loss its output and its target
    lists = pm.simulate(pm.schedule(depth, P, N, 24, recompute=method.recompute))
    held = lists.held if method.synchronous else None  # else by formula
    rows = ledger(
        weights, depths(depth, P), N, copies, activations=saved, inputs=inputs, held=held,
        recompute=method.recompute, **extra,
    )  # fmt: skip
    assert run.memory == rows


@pytest.mark.parametrize("steps", [1, 3, 20])
@pytest.mark.parametrize("t3", [0, 2])
@pytest.mark.parametrize(("method", "depth", "extra"), METHODS, ids=IDS)
def test_predicted_equals_counted_however_short_the_run(method, depth, extra, t3, steps):
    if t3 and not method.synchronous:
        method = type(method)(**{**vars(method), "t3": t3})
    trainer, batch, _ = linear(method, 4, 1)
    predicted = predict(trainer, batch, steps)
    both = memory(trainer, trainer.fit([batch], steps=steps), batch)
    assert predicted == both.predicted == both.counted
    assert sum(s.tensors for s in predicted) > 0


class Network(nn.ModuleList):
    """Skips, statistics, masks and layers that save nothing or twice the same."""

    def __init__(self):
        super().__init__(
            [
                nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
                nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Tanh(), nn.Dropout(0.2)),
                nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU()),
                nn.Linear(8, 3),
            ]
        )


def images(method, N=2):
    torch.manual_seed(0)
    trainer = pm.Trainer(list(Network()), nn.functional.cross_entropy, OPTIMIZERS[2], method, 5, N)
    return trainer, (torch.randn(3 * N, 1, 5, 5), torch.randint(0, 3, (3 * N,)))


def test_a_probe_changes_nothing():
    trainer, batch = images(pm.PipeMare(recompute=2))
    before = copy.deepcopy([layer.state_dict() for layer in trainer.layers])
    state = torch.get_rng_state()
    assert all(saved.bytes >= 0 and saved.input_bytes for saved in probe_forward(trainer, batch))
    assert torch.equal(state, torch.get_rng_state())
    assert not any(s.flying or s.waiting or s.saved.tensors for s in trainer.stages)
    for layer, kept in zip(trainer.layers, before, strict=True):
        assert all(torch.equal(t, kept[name]) for name, t in layer.state_dict().items())


class Alive:
    """Counts, by itself, the tensors that autograd holds for the backwards of one stage: whatever
    is saved while it is entered, until the graph is freed."""

    def __init__(self, own):
        self.now = self.peak = 0
        self.own = own
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, lambda held: held[0])

    def pack(self, tensor):
        class Holder(list):
            pass

        holder = Holder([tensor.detach()])
        if tensor.untyped_storage().data_ptr() not in self.own:
            self.now += 1
            weakref.finalize(holder, self.free)
        return holder

    def free(self):
        self.now -= 1


@pytest.mark.parametrize(
    "method",
    [pm.PipeMare(), pm.PipeMare(recompute=2), pm.PipeDream(recompute=1), pm.GPipe()],
    ids=repr,
)
def test_the_tensors_saved_are_really_alive_at_the_peak(method, monkeypatch):
    """An independent count: hooks on every forward and re-run, finalizers on what they saved."""
    N, stages = 2, 5
    trainer = pm.Trainer(
        [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(stages)],
        lambda output, target: (output - target).mean(),  # saves nothing
        OPTIMIZERS[0], method, stages, N,
    )  # fmt: skip
    batch = torch.randn(2 * N, 4), torch.randn(2 * N, 4)
    predicted = predict(trainer, batch, 16)
    own = {f.weights.untyped_storage().data_ptr() for s in trainer.stages for f in s.flats}
    counters = [Alive(own) for _ in range(stages)]
    computed, noted = Stage._computed, Stage._note_peak

    def watched(stage, *args):
        with counters[stage.index].hooks:
            return computed(stage, *args)

    def after(stage):
        noted(stage)
        counter = counters[stage.index]
        counter.peak = max(counter.peak, counter.now)

    monkeypatch.setattr(Stage, "_computed", watched)
    monkeypatch.setattr(Stage, "_note_peak", after)
    trainer.fit([batch], steps=16)
    assert [c.peak for c in counters] == [s.tensors for s in predicted]
    assert [s.saved.tensors for s in predicted] == [2] * stages  # a Linear's input, a Tanh's result
    assert not any(c.now for c in counters)


@pytest.mark.parametrize(
    ("P", "S", "slots", "without"), [(16, 4, 128, 272), (36, 6, 432, 1332), (9, 3, 54, 90)]
)
def test_activations_in_flight_in_a_real_run(P, S, slots, without):
    """P^2 / S + P S, where the paper counts about that, and P (P + 1) for its P^2."""
    for recompute, expected in ((S, slots), (0, without)):
        layers = [nn.Linear(1, 1) for _ in range(P)]
        x = torch.randn(1, 1)
        method = pm.PipeMare(recompute=recompute)
        trainer = pm.Trainer(layers, mse_loss, OPTIMIZERS[0], method, P)
        trainer.fit([(x, x)], steps=2 * P + 2)
        counted = tuple(s.peak for s in trainer.stages)
        assert sum(h.slots for h in counted) == expected
        assert counted == peaks(depths("lockstep", P), recompute)
    assert slots == P * P // S + P * S and without == P * (P + 1)


def test_frozen_weights_have_no_gradient_and_no_stash():
    frozen = nn.Linear(3, 3)
    frozen.weight.requires_grad_(False)
    x = torch.randn(2, 3)
    trainer = pm.Trainer(
        [frozen, nn.Linear(3, 3)], mse_loss, OPTIMIZERS[1], pm.PipeDream(), stages=2
    )
    before = frozen.weight.clone()
    run = trainer.fit([(x, x)], steps=12)
    [first, _] = run.memory
    assert (first["weights"], first["gradients"], first["optimizer"]) == (48, 12, 12)
    assert first["stash"] == 3 * 12
    assert torch.equal(frozen.weight, before)
    both = memory(trainer, run, (x, x))
    assert both.predicted == both.counted


@pytest.mark.parametrize("method", [pm.PipeDream(), pm.PipeMare(t2=0.1, recompute="auto")])
def test_a_network_of_many_kinds_of_layers(method):
    trainer, batch = images(method)
    run = trainer.fit([batch], steps=15)
    both = memory(trainer, run, batch)
    assert both.predicted == both.counted


def test_optimizers_that_are_not_known_are_refused():
    class Mine(torch.optim.SGD):
        pass

    layers, x = [nn.Linear(2, 2)], torch.randn(2, 2)
    trainer = pm.Trainer(layers, mse_loss, lambda named: Mine(named, lr=0.1))
    with pytest.raises(ValueError, match="optimizer_copies"):
        predict(trainer, (x, x), 1)
    assert dict(predict(trainer, (x, x), 1, optimizer_copies=3)[0].bytes)["optimizer"] == 72


@pytest.mark.parametrize(
    "build",
    [
        lambda named: torch.optim.Adam(named, amsgrad=True),
        lambda named: torch.optim.RMSprop(named, momentum=0.9, centered=True),
        lambda named: torch.optim.Adagrad(named),
        lambda named: torch.optim.Adamax(named),
        lambda named: torch.optim.NAdam(named),
    ],
)
def test_known_optimizers_keep_what_is_predicted(build):
    layers, x = [nn.Linear(3, 2)], torch.randn(2, 3)
    trainer = pm.Trainer(layers, mse_loss, build)
    trainer.fit([(x, x[:, :2])], steps=2)
    [optimizer] = trainer.optimizers
    assert optimizer.state_bytes() == state_copies(optimizer) * 4 * 8


# The paper's factors for ResNet-50 at 107 stages and 8 microbatches


def resnet_weights():
    return [4 * sum(p.numel() for p in layer.parameters()) for layer in resnet(50)]


class Weighs(nn.Module):
    """A stage that weighs as much as another one, and computes next to nothing."""

    def __init__(self, numbers):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(numbers))

    def forward(self, x):
        return x * 1.0 + self.w[0]


def test_weights_and_optimizer_of_the_papers_resnet():
    P, N = 107, 8
    D, weights = depths("lockstep", P), resnet_weights()
    assert reported_factor(weights, D, N) == pytest.approx(2.67, abs=5e-3)
    assert counted_factor(ledger(weights, D, N, stashes=True)) == pytest.approx(3.20, abs=5e-3)
    moment = instants(pm.simulate(pm.schedule("lockstep", P, N, 60)), weights)
    assert reported_factor(weights, D, N) + 1 / 3 == pytest.approx(moment.mean, rel=2e-3)
    assert 2.9 < moment.low < moment.mean < moment.high < 3.1
    assert counted_factor(ledger(weights, D, N)) == 1
    assert counted_factor(ledger(weights, D, N, corrects=True)) == pytest.approx(4 / 3)
    assert counted_factor(ledger(weights, D, N, 2, corrects=True)) == pytest.approx(5 / 4)


@pytest.mark.parametrize(
    ("method", "copies", "steps", "factor"),
    [
        (pm.PipeDream(), 1, 54, 3.2),  # 4P microbatches; the stash is full after about 2P
        (pm.PipeMare(), 1, 2, 1),
        (pm.PipeMare(t2=0.5), 1, 2, 4 / 3),
        (pm.PipeMare(t2=0.5), 2, 2, 5 / 4),
    ],
)
def test_the_same_counted_in_a_live_run(method, copies, steps, factor):
    P, N = 107, 8
    layers = [Weighs(max(1, w // 2048)) for w in resnet_weights()]
    x = torch.randn(N, 1)
    run = pm.Trainer(layers, mse_loss, OPTIMIZERS[copies], method, P, N).fit([(x, x)], steps=steps)
    weights = [4 * layer.w.numel() for layer in layers]
    corrects = method != pm.PipeMare() and not method.stashes
    rows = ledger(weights, depths("lockstep", P), N, copies, method.stashes, corrects)
    assert counted_factor(run.memory) == counted_factor(rows) == pytest.approx(factor, abs=0.01)
