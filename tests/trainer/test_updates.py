"""Optimizers and schedulers: the stock ones work as they are, what cannot work is refused."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.optim import lr_scheduler

import pipemare_edu as pm
from pipemare_edu.trainer.stepping import step_together

WIDTH = 4
OPTIMIZERS = {
    "sgd": lambda n: torch.optim.SGD(n, lr=0.05),
    "momentum": lambda n: torch.optim.SGD(n, lr=0.02, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda n: torch.optim.SGD(n, lr=0.02, momentum=0.9, nesterov=True),
    "adam": lambda n: torch.optim.Adam(n, lr=0.01),
    "amsgrad": lambda n: torch.optim.Adam(n, lr=0.01, amsgrad=True),
    "adamw": lambda n: torch.optim.AdamW(n, lr=0.01),
    "fused": lambda n: torch.optim.AdamW(n, lr=0.01, fused=True),
    "foreach": lambda n: torch.optim.Adam(n, lr=0.01, foreach=True),
    "nadam": lambda n: torch.optim.NAdam(n, lr=0.01, betas=(0.99, 0.999)),
    "radam": lambda n: torch.optim.RAdam(n, lr=0.01),
    "adamax": lambda n: torch.optim.Adamax(n, lr=0.01),
    "adadelta": lambda n: torch.optim.Adadelta(n, lr=0.5),
    "adagrad": lambda n: torch.optim.Adagrad(n, lr=0.05),
    "rmsprop": lambda n: torch.optim.RMSprop(n, lr=0.005, momentum=0.5, centered=True),
    "rprop": lambda n: torch.optim.Rprop(n, lr=0.005),
    "asgd": lambda n: torch.optim.ASGD(n, lr=0.05),
}


def with_scheduler(build):
    def both(named):
        optimizer = torch.optim.AdamW(named, lr=0.01)
        return optimizer, build(optimizer)

    return both


SCHEDULERS = {
    "lambda": with_scheduler(lambda o: lr_scheduler.LambdaLR(o, lambda k: 0.9**k)),
    "step": with_scheduler(lambda o: lr_scheduler.StepLR(o, 3)),
    "milestones": with_scheduler(lambda o: lr_scheduler.MultiStepLR(o, [2, 5])),
    "cosine": with_scheduler(lambda o: lr_scheduler.CosineAnnealingLR(o, 10)),
    "one cycle": with_scheduler(lambda o: lr_scheduler.OneCycleLR(o, 0.02, total_steps=9)),
    "warm restarts": with_scheduler(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4)),
    "chained": with_scheduler(
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.1, 3), lr_scheduler.ExponentialLR(o, 0.9)]
        )
    ),
    "sequential": with_scheduler(
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.1), lr_scheduler.ExponentialLR(o, 0.9)], [4]
        )
    ),
    "none": lambda n: (torch.optim.SGD(n, lr=0.05), None),
}
SYNCHRONOUS = ["sequential", "gpipe", "1f1b"]


def net(depth: int = 3) -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).double() for _ in range(depth)]


def data(steps: int) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(1)
    return [tuple(torch.randn(2, 4, WIDTH, generator=g, dtype=torch.float64)) for _ in range(steps)]


def weights(layers) -> Tensor:
    return torch.cat([p.detach().reshape(-1).clone() for m in layers for p in m.parameters()])


def plain(build, batches, layers=None) -> Tensor:
    """The reference: one optimizer per layer in an ordinary loop."""
    layers = layers or net()
    built = [build([*m.named_parameters()]) for m in layers]
    pairs = [b if isinstance(b, tuple) else (b, None) for b in built]
    model = nn.Sequential(*layers)
    for x, y in batches:
        mse_loss(model(x), y).backward()
        for optimizer, scheduler in pairs:
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
    return weights(layers)


@pytest.mark.parametrize("method", SYNCHRONOUS)
@pytest.mark.parametrize("build", [*OPTIMIZERS.values(), *SCHEDULERS.values()],
                         ids=[*OPTIMIZERS, *SCHEDULERS])  # fmt: skip
def test_stock_optimizers_and_schedulers_do_what_they_do_in_a_plain_loop(build, method) -> None:
    layers = net()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pm.Trainer(layers, mse_loss, build, method, 3).fit(data(8))
    assert run.status == "done"
    expected = plain(build, data(8))
    torch.testing.assert_close(weights(layers), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [pm.PipeDream(), pm.PipeMare(t1=5, t2=0.1), pm.PipeMare(t3=2)])
@pytest.mark.parametrize("build", [*OPTIMIZERS.values(), *SCHEDULERS.values()],
                         ids=[*OPTIMIZERS, *SCHEDULERS])  # fmt: skip
def test_stock_optimizers_and_schedulers_run_in_asynchronous_methods(build, method) -> None:
    layers = net()
    run = pm.Trainer(layers, mse_loss, build, method, 3).fit(data(8))
    assert run.status == "done" and torch.isfinite(weights(layers)).all()


@pytest.mark.parametrize("method", [pm.GPipe(), pm.PipeMare(t2=0.1)])
def test_stepping_together_and_one_by_one_give_the_same_bits(method) -> None:
    def hooked(named):
        optimizer = torch.optim.Adam(named, lr=0.01)
        optimizer.register_step_pre_hook(lambda *_: None)
        return optimizer

    together, alone = net(), net()
    pm.Trainer(together, mse_loss, OPTIMIZERS["adam"], method, 3).fit(data(8))
    pm.Trainer(alone, mse_loss, hooked, method, 3).fit(data(8))
    assert torch.equal(weights(together), weights(alone))


def test_different_optimizers_on_different_stages() -> None:
    kinds = [OPTIMIZERS["adam"], OPTIMIZERS["momentum"], OPTIMIZERS["adam"]]

    def build(named):
        return kinds[int(named[0][0][0])](named)

    def reference(batches):
        layers = net()
        optimizers = [k([*m.named_parameters()]) for k, m in zip(kinds, layers, strict=True)]
        for x, y in batches:
            mse_loss(nn.Sequential(*layers)(x), y).backward()
            for o in optimizers:
                o.step()
                o.zero_grad()
        return weights(layers)

    layers = net()
    pm.Trainer(layers, mse_loss, build, "gpipe", 3).fit(data(6))
    torch.testing.assert_close(weights(layers), reference(data(6)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("style", ["named", "parameters", "groups", "named groups"])
def test_every_way_of_handing_parameters_over(style) -> None:
    def build(named):
        tensors = [p for _, p in named]
        given = {
            "named": named,
            "parameters": tensors,
            "groups": [{"params": [p], "lr": 0.05} for p in tensors],
            "named groups": [{"params": [pair], "lr": 0.05} for pair in named],
        }[style]
        return torch.optim.SGD(given, lr=0.05)

    layers = net()
    pm.Trainer(layers, mse_loss, build, "gpipe", 3).fit(data(4))
    expected = plain(OPTIMIZERS["sgd"], data(4))
    torch.testing.assert_close(weights(layers), expected, rtol=0, atol=1e-12)


def test_names_tell_the_layer_and_the_factory_is_called_once_per_stage() -> None:
    calls = []

    def build(named):
        calls.append([name for name, _ in named])
        return torch.optim.SGD(named, lr=0.1)

    layers = net()
    layers.insert(1, nn.Identity())
    layers[3].requires_grad_(False)
    layers.append(nn.Linear(WIDTH, WIDTH).double())
    layers[4].bias.requires_grad_(False)
    trainer = pm.Trainer(layers, mse_loss, build, "gpipe", [1, 1, 1, 1, 1])
    assert calls == [["0.0.weight", "0.0.bias"], ["2.0.weight", "2.0.bias"], ["4.weight"]]
    before = weights([layers[3]])
    assert trainer.fit(data(3)).status == "done"
    assert torch.equal(before, weights([layers[3]]))


def test_parameters_left_out_by_the_factory_stay_as_they_are() -> None:
    build = lambda named: torch.optim.SGD([p for n, p in named if "bias" not in n], lr=0.1)  # noqa: E731
    layers = net()
    biases = [m[0].bias.clone() for m in layers]
    with pytest.warns(UserWarning, match=r"the optimizer leaves out 0.0.bias, .*requires_grad_\(F"):
        trainer = pm.Trainer(layers, mse_loss, build, pm.PipeMare(), 3)
    trainer.fit(data(5))
    assert all(torch.equal(a, m[0].bias) for a, m in zip(biases, layers, strict=True))
    assert all(p.grad is None for m in layers for p in m.parameters())


def test_frozen_layers_are_nobodys_mistake_unless_all_are(recwarn) -> None:
    layers = net()
    layers[0].requires_grad_(False)
    pm.Trainer(layers, mse_loss, lambda n: torch.optim.SGD(n, lr=0.1), "gpipe", 3)
    assert not recwarn
    for layer in layers:
        layer.requires_grad_(False)
    with pytest.warns(UserWarning, match="no layer has a trainable parameter"):
        pm.Trainer(layers, mse_loss, lambda n: torch.optim.SGD(n, lr=0.1), "gpipe", 3)


def outside(named):
    return torch.optim.SGD(net()[0].parameters(), lr=0.1)


def borrowed(named):
    other = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    return torch.optim.SGD(named, lr=0.1), lr_scheduler.StepLR(other, 3)


REFUSED = {
    "lbfgs": (lambda n: torch.optim.LBFGS([p for _, p in n]), "LBFGS.*closure"),
    "other parameters": (outside, "other tensors.*lambda named"),
    "nothing": (lambda n: None, "NoneType.*return a"),
    "none of a stage": (
        lambda n: torch.optim.SGD([p for name, p in n if name.startswith("0")], lr=0.1),
        "ValueError for stage 2: optimizer got an empty parameter list; it is called once per sta",
    ),
    "a bad rate": (lambda n: torch.optim.SGD(n, lr=-1), "for stage 1: Invalid learning rate"),
    "no argument": (lambda: None, "optimizer raised TypeError for stage 1"),
    "a list": (lambda n: [torch.optim.SGD(n, lr=0.1)], "list.*return a"),
    "a class": (lambda n: torch.optim.SGD, "return a"),
    "a scheduler alone": (
        lambda n: lr_scheduler.StepLR(torch.optim.SGD(n, lr=0.1), 3),
        "StepLR.*return a",
    ),
    "the wrong order": (
        lambda n: SCHEDULERS["step"](n)[::-1],
        "return a",
    ),
    "three things": (
        lambda n: (*SCHEDULERS["step"](n), 3),
        r"optimizer\(named_parameters\) returned|return a",
    ),
    "plateau": (
        with_scheduler(lr_scheduler.ReduceLROnPlateau),
        "ReduceLROnPlateau.*metric",
    ),
    "no scheduler": (with_scheduler(lambda o: 0.9), "float.*scheduler"),
    "a scheduler of another optimizer": (borrowed, "scheduler.*another|scheduler.*optimizer"),
}


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_when_the_trainer_is_made(build, message) -> None:
    with pytest.raises(ValueError, match=message):
        pm.Trainer(net(), mse_loss, build, "gpipe", 3)


def test_a_custom_optimizer_that_needs_a_closure_is_named_at_its_first_step() -> None:
    class Closured(torch.optim.SGD):
        def step(self, closure):
            return super().step(closure)

    trainer = pm.Trainer(net(), mse_loss, lambda n: Closured(n, lr=0.1), "gpipe", 3)
    with pytest.raises(pm.StageError, match="update.*closure"):
        trainer.fit(data(2))


def test_the_callers_optimizer_stays_usable() -> None:
    kept = []

    def build(named):
        kept.append(torch.optim.SGD(named, lr=0.1, momentum=0.9))
        return kept[-1]

    pm.Trainer(net(), mse_loss, build, "gpipe", 3).fit(data(3))
    for optimizer in kept:
        state = optimizer.state_dict()["state"]
        assert sorted(state) == [0, 1]
        assert all(torch.is_tensor(s["momentum_buffer"]) for s in state.values())


class Rates(torch.optim.SGD):
    """Notes the rate of every step and raises if told to."""

    def __init__(self, named, lr):
        super().__init__(named, lr=lr)
        self.seen: list[float] = []
        self.fail_at = None

    def step(self, closure=None):
        self.seen.append(self.param_groups[0]["lr"])
        if len(self.seen) == self.fail_at:
            raise RuntimeError("no")
        return super().step(closure)


def test_t1_scales_the_rate_around_the_step_alone() -> None:
    between = []

    def build(named):
        optimizer = Rates(named, 0.1)

        def factor(k):
            between.append(optimizer.param_groups[0]["lr"])
            return 0.5**k

        return optimizer, lr_scheduler.LambdaLR(optimizer, factor)

    trainer = pm.Trainer(net(), mse_loss, build, pm.PipeMare(t1=4), 3)
    trainer.fit(data(6))
    for o, tau in zip(trainer.optimizers, (5, 3, 1), strict=True):
        expected = [0.1 * 0.5**k * tau ** -(1 - min(k / 4, 1)) for k in range(6)]
        assert o.optimizer.seen == pytest.approx(expected, rel=1e-12)
        assert o.optimizer.param_groups[0]["lr"] == 0.1 * 0.5**6
    assert set(between) <= {0.1 * 0.5**k for k in range(7)}


@pytest.mark.parametrize(("method", "start"), [(pm.PipeMare(t1=4, t3=3), 3)])
def test_t1_counts_from_the_switch(method, start) -> None:
    trainer = pm.Trainer(net(), mse_loss, lambda n: Rates(n, 0.1), method, 3)
    trainer.fit(data(9))
    k = [max(0, j - start) for j in range(9)]
    expected = [0.1 * (5 ** -(1 - min(j / 4, 1)) if i >= start else 1) for i, j in enumerate(k)]
    assert trainer.optimizers[0].optimizer.seen == pytest.approx(expected, rel=1e-12)


def test_t1_restores_the_rate_when_the_step_raises() -> None:
    trainer = pm.Trainer(net(), mse_loss, lambda n: Rates(n, 0.1), pm.PipeMare(t1=9), 3)
    trainer.optimizers[1].optimizer.fail_at = 3
    with pytest.raises(pm.StageError):
        trainer.fit(data(6))
    assert [o.optimizer.param_groups[0]["lr"] for o in trainer.optimizers] == [0.1] * 3


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "1", True])
def test_clip_is_a_number_above_zero(value) -> None:
    with pytest.raises(ValueError, match="clip is"):
        pm.Trainer(net(), mse_loss, OPTIMIZERS["sgd"], "gpipe", 3, clip=value)


@pytest.mark.parametrize("value", [float("nan"), 0.0, -1.0, "high"])
def test_the_limit_is_a_number_above_zero(value) -> None:
    with pytest.raises(ValueError, match="limit is"):
        pm.Trainer(net(), mse_loss, OPTIMIZERS["sgd"], "gpipe", 3, limit=value)


def test_clip_with_an_unused_parameter() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(WIDTH, WIDTH), nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    layers = [Unused().double(), *net(2)]
    idle = layers[0].idle.weight.clone()
    for method in (pm.GPipe(), pm.PipeMare(t2=0.1), pm.PipeDream()):
        adamw = OPTIMIZERS["adamw"]
        run = pm.Trainer(layers, mse_loss, adamw, method, 3, clip=0.1).fit(data(3))
        assert run.status == "done"
    assert torch.equal(idle, layers[0].idle.weight)


def test_stages_at_different_steps_step_together():
    """In a worker one stage may take its first step, without momentum, while another is ahead."""
    layers = [nn.Linear(3, 3) for _ in range(3)]
    together = pm.Trainer(layers, nn.functional.mse_loss, momentum, pm.PipeMare(), 3)
    alone = pm.Trainer(copy.deepcopy(layers), nn.functional.mse_loss, momentum, pm.PipeMare(), 3)
    for steps in ({1: 0, 2: 0}, {0: 0, 1: 1, 2: 1}, {0: 1, 1: 2}):
        for trainer in (together, alone):
            for i in steps:
                for alias in trainer.optimizers[i].aliases:
                    alias.grad = torch.ones_like(alias) * (i + 1)
        step_together({together.optimizers[i]: k for i, k in steps.items()})
        for i, k in steps.items():
            step_together({alone.optimizers[i]: k})
    for a, b in zip(together.stages, alone.stages, strict=True):
        assert torch.equal(a.flats[0].weights, b.flats[0].weights)


def momentum(named):
    return torch.optim.SGD(named, lr=0.1, momentum=0.9)
