"""Methods by name, and a new method from outside the package."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.trainer import registry
from pipemare_edu.trainer.registry import Fixes, named
from pipemare_edu.trainer.weights import Newest

WIDTH = 4
NAMES = """sequential gpipe 1f1b pipedream pipemare pipemare-naive pipemare-t1 pipemare-t2
    pipemare-t1t2""".split()


@pytest.fixture(autouse=True)
def names_as_before(monkeypatch) -> None:
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


# A new method in about thirty lines: the stage's backward reads the average of the newest weights
# and the ones before its last update ("half-way"), at a depth of its own.


class HalfWay(Newest):
    kind = "stash"

    def __init__(self, newest: Tensor) -> None:
        super().__init__(newest)
        self.before = newest.clone()
        self.peak = newest.nbytes

    def alters(self, operation, read, version, asynchronous) -> bool:
        return operation == "B" and asynchronous

    def write(self, newest: Tensor, read: int) -> None:
        torch.lerp(newest, self.before, 0.5, out=self.newest)

    def before_update(self, version: int, in_use: bool) -> None:
        self.before.copy_(self.newest)

    def held(self) -> dict[str, Tensor]:
        return {"before": self.before}


@dataclass(frozen=True)
class Midway(pm.Method):
    """Backward half-way between the newest weights and the ones before; rate / sqrt(1 + tau)."""

    depth: str = "async-1f1b"
    stashes: ClassVar[bool] = False

    def weights(self, newest: Tensor, tau: float) -> Newest:
        return HalfWay(newest)

    def rate(self, tau: float, step: int) -> float:
        return 1 / math.sqrt(1 + tau)


def net() -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Linear(WIDTH, WIDTH, bias=False).double() for _ in range(2)]


def data(steps: int) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(1)
    return [tuple(torch.randn(2, 4, WIDTH, generator=g, dtype=torch.float64)) for _ in range(steps)]


def by_hand(steps: int, lr: float) -> list[Tensor]:
    """Two linear stages, N = 1, depths (1, 0): stage 1's forward is one step old."""
    w1, w2 = (m.weight.detach().clone() for m in net())
    past1, past2 = [w1.clone()], [w2.clone()]
    for k, (x, y) in enumerate(data(steps)):
        read1 = past1[max(0, k - 1)]
        newest2 = past2[k]
        half2 = (newest2 + past2[max(0, k - 1)]) / 2
        h = x @ read1.T
        g = 2 * (h @ newest2.T - y) / y.numel()
        past2.append(newest2 - lr * g.T @ h)
        past1.append(past1[k] - lr / math.sqrt(2) * (g @ half2).T @ x)
    return [past1[-1], past2[-1]]


def test_a_new_method_from_outside_trains_as_it_says() -> None:
    layers = net()
    pm.register("midway", Midway())
    sgd = lambda n: torch.optim.SGD(n, lr=0.1)  # noqa: E731
    trainer = pm.Trainer(layers, mse_loss, sgd, "midway", 2)
    run = trainer.fit(data(7))
    for layer, expected in zip(layers, by_hand(7, 0.1), strict=True):
        torch.testing.assert_close(layer.weight.detach(), expected, rtol=0, atol=1e-12)
    assert [d.mean for d in run.staleness.forward] == [1.0, 0.0]
    assert run.staleness.forward[0].implied_mean == 1.0
    assert run.memory[0]["stash"] == layers[0].weight.nbytes


def test_a_new_method_is_known_to_train_and_compare_by_name() -> None:
    from pipemare_edu.compare import compare, methods_for, table

    pm.register("midway", Midway())
    assert "midway" in pm.method_names()
    run = pm.train("regression", method="midway", steps=20, stages=4)
    assert run.status == "done" and run.steps == 20 and "Midway" in run.config["method"]
    options = {"steps": 20, "stages": 4}
    methods = methods_for("regression", ["gpipe", "midway"], options)
    records = list(compare("regression", methods, 1, **options))
    assert [r["method"] for r in records] == ["gpipe", "midway"]
    assert records[1]["loss"] == run.losses[-1]
    assert "midway" in table(records, "regression")


def test_a_maker_gets_the_tasks_fixes() -> None:
    seen = []

    def maker(fixes):
        seen.append(fixes)
        return pm.PipeMare(t1=fixes.t1, depth="async-1f1b")

    pm.register("mine", maker)
    run = pm.train("regression", method="mine", steps=16, stages=2)
    assert all(isinstance(f, Fixes) and f.t1 == 4 for f in seen) and seen
    assert "t1=4" in run.config["method"] and "async-1f1b" in run.config["method"]


@pytest.mark.parametrize("thing", [3, None, "gpipe", pm.PipeMare])
def test_what_is_no_method_is_refused_when_registered(thing) -> None:
    with pytest.raises(ValueError, match="Method"):
        pm.register("odd", thing)


def test_the_name_is_text_and_a_taken_one_is_replaced() -> None:
    with pytest.raises(ValueError, match="name"):
        pm.register(3, pm.GPipe())
    pm.register("gpipe", pm.OneFOneB())
    assert named("gpipe") == pm.OneFOneB()
    pm.register("pipemare", pm.PipeMare(t1=3))
    assert named("pipemare") == pm.PipeMare(t1=3), "no task is needed for a value"


def test_all_names_are_there_and_make_what_they_say() -> None:
    assert set(NAMES) <= set(pm.method_names())
    fixes = Fixes(t1=9, t2=0.3, t3=4)
    made = {name: named(name, fixes) for name in NAMES}
    assert made["pipemare"] == pm.PipeMare(t1=9, t2=0.3, t3=4)
    assert made["pipemare-t1t2"] == pm.PipeMare(t1=9, t2=0.3)
    assert made["pipemare-t1"] == pm.PipeMare(t1=9)
    assert made["pipemare-t2"] == pm.PipeMare(t2=0.3)
    assert made["pipemare-naive"] == pm.PipeMare()
    assert made["1f1b"] == pm.OneFOneB() and made["pipedream"] == pm.PipeDream()


@pytest.mark.parametrize(
    ("name", "close"), [("pipemare-t12", "pipemare-t1"), ("gpip", "gpipe"), ("1F1B", "1f1b")]
)
def test_an_unknown_name_gets_the_close_match(name, close) -> None:
    with pytest.raises(ValueError, match=f"unknown method {name!r}: did you mean '{close}"):
        named(name)
    with pytest.raises(ValueError, match="unknown method.*There are.*gpipe"):
        named("zzzzzz")


@pytest.mark.parametrize("name", ["pipemare", "pipemare-t1", "pipemare-t1t2"])
def test_a_trainer_does_not_guess_annealing_steps(name) -> None:
    sgd = lambda n: torch.optim.SGD(n, lr=0.1)  # noqa: E731
    with pytest.raises(ValueError, match=r"pm\.PipeMare\(t1="):
        pm.Trainer(net(), mse_loss, sgd, name, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"t1": -1}, {"t1": 0.5}, {"t1": True}, {"t3": -1}, {"t3": 2.0}, {"t2": 1.0}, {"t2": -0.1},
        {"t2": math.nan}, {"t2": "gamma"}, {"t2": None}, {"t1": None}, {"t2": math.inf},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused_by_name(arguments) -> None:
    [(name, _)] = arguments.items()
    with pytest.raises(ValueError, match=f"{name} is"):
        pm.PipeMare(**arguments)


@pytest.mark.parametrize(
    ("depth", "reason"),
    [
        ([1, 2], "not increase along the pipe: stage 2"),
        ([3], "1 depths for 2 stages"),
        ([3, 2, 1], "3 depths for 2 stages"),
        ([-1, -1], "stage 1 has depth -1"),
        ([1.5, 0], "stage 1 has depth 1.5"),
        ([True, 0], "stage 1 has depth True"),
        ("fast", "unknown schedule 'fast'"),
    ],
)
@pytest.mark.parametrize("kind", [pm.PipeMare, pm.PipeDream])
def test_an_illegal_depth_is_refused_with_the_reason(kind, depth, reason) -> None:
    sgd = lambda n: torch.optim.SGD(n, lr=0.1)  # noqa: E731
    with pytest.raises(ValueError, match=reason):
        pm.Trainer(net(), mse_loss, sgd, kind(depth=depth), 2)


@pytest.mark.parametrize("kind", [pm.Sequential, pm.GPipe, pm.OneFOneB])
def test_a_synchronous_method_has_its_own_depth_alone(kind) -> None:
    with pytest.raises(TypeError, match="depth"):
        kind(depth="lockstep")
    assert kind().synchronous


def test_methods_are_frozen_values() -> None:
    assert pm.PipeMare(depth=[3, 1]) == pm.PipeMare(depth=(3, 1))
    assert hash(pm.PipeMare(depth=[3, 1])) == hash(pm.PipeMare(depth=(3, 1)))
    with pytest.raises(FrozenInstanceError):
        pm.GPipe().t3 = 4
    assert eval(repr(pm.PipeMare(t1=3, t2="theory")), {"PipeMare": pm.PipeMare}) == pm.PipeMare(
        t1=3, t2="theory"
    )


@pytest.mark.parametrize("thing", [None, 3, pm.GPipe, object()])
def test_a_trainer_refuses_what_is_no_method(thing) -> None:
    sgd = lambda n: torch.optim.SGD(n, lr=0.1)  # noqa: E731
    with pytest.raises(ValueError, match="method"):
        pm.Trainer(net(), mse_loss, sgd, thing, 2)
