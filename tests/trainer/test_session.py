"""How a run ends: by itself, cancelled, interrupted, left, diverged, or by an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import pipemare_edu as pm
from pipemare_edu.trainer import session

WIDTH = 4
METHODS = {
    "sequential": pm.Sequential(),
    "gpipe": pm.GPipe(),
    "pipedream": pm.PipeDream(),
    "t1t2": pm.PipeMare(t1=4, t2=0.135),
    "t3": pm.PipeMare(t2="theory", t3=3),
}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def net(depth: int = 3) -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).double() for _ in range(depth)]


def data(steps: int, size: int = 4) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(1)
    return [
        tuple(torch.randn(2, size, WIDTH, generator=g, dtype=torch.float64)) for _ in range(steps)
    ]


def momentum(named) -> torch.optim.Optimizer:
    return torch.optim.SGD(named, lr=0.05, momentum=0.9)


def trainer_of(method, layers=None, stages=3, n=1, **options) -> pm.Trainer:
    options.setdefault("optimizer", momentum)
    options.setdefault("loss", mse_loss)
    return pm.Trainer(layers or net(), method=method, stages=stages, microbatches=n, **options)


def weights(trainer: pm.Trainer) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for m in trainer.layers for p in m.parameters()])


def clean(trainer: pm.Trainer) -> None:
    """Nothing half-done: no gradients, nothing in flight, one version everywhere."""
    assert all(p.grad is None for m in trainer.layers for p in m.parameters())
    assert not any(s.flying for s in trainer.stages)
    assert {s.version for s in trainer.stages} == {trainer.step}


# Chunks


@each_method
def test_chunks_give_the_same_run_and_the_same_bits(method) -> None:
    whole, parts = trainer_of(method, n=2), trainer_of(method, n=2)
    run = whole.fit(data(9), evaluate=data(1), every=4)
    seen = list(parts.chunks(data(9), evaluate=data(1), every=4, seconds=0.0))
    assert len(seen) > 9 and all(r is seen[0] for r in seen)
    assert (seen[0].losses, seen[0].metrics, seen[0].status) == (run.losses, run.metrics, "done")
    assert torch.equal(weights(whole), weights(parts))
    assert seen[0].staleness == run.staleness and seen[0].memory == run.memory
    assert run.note == ""


def test_looking_at_the_utilization_early_does_not_freeze_it() -> None:
    looked, plain = trainer_of("gpipe"), trainer_of("gpipe")
    for run in looked.chunks(data(20), seconds=0.0):
        assert 0 < run.utilization.run <= 1
    assert run.utilization == plain.fit(data(20)).utilization


def test_between_chunks_the_callers_state_is_in_place() -> None:
    torch.manual_seed(1)
    expected = torch.stack([torch.rand(()) for _ in range(40)])
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    drawn = []
    trainer = trainer_of("gpipe", [nn.Dropout(0.5), *net()])
    torch.manual_seed(1)
    for _ in trainer.chunks(data(20), seconds=0.0):
        assert torch.get_num_threads() == threads
        assert signal.getsignal(signal.SIGINT) is handler
        if len(drawn) < 40:
            drawn.append(torch.rand(()))
    assert torch.equal(torch.stack(drawn), expected)


def test_one_thread_inside_and_the_callers_count_outside() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        inside = []
        trainer = trainer_of("gpipe")
        trainer.layers[0].register_forward_hook(lambda *_: inside.append(torch.get_num_threads()))
        trainer.fit(data(2))
        assert set(inside) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_run_in_another_thread() -> None:
    done = []
    worker = threading.Thread(target=lambda: done.append(trainer_of("gpipe").fit(data(3))))
    worker.start()
    worker.join(30)
    assert done[0].status == "done"


def test_two_runs_of_one_trainer_at_once_are_refused() -> None:
    trainer = trainer_of(METHODS["t1t2"])
    first = trainer.chunks(data(6), seconds=0.0)
    next(first)
    with pytest.raises((RuntimeError, ValueError), match="run"):
        trainer.fit(data(3))
    *_, run = first
    assert run.status == "done" and run.steps == 6
    alone = trainer_of(METHODS["t1t2"])
    alone.fit(data(6))
    assert torch.equal(weights(alone), weights(trainer))


def test_a_trainer_whose_layers_another_one_took_over_does_not_train_in_vain() -> None:
    """A notebook cell run twice makes a second Trainer over the same layers."""
    layers = net()
    first = trainer_of("gpipe", layers)
    trainer_of("gpipe", layers)
    before = weights(first).clone()
    try:
        first.fit(data(3))
    except (RuntimeError, ValueError) as error:
        assert "Trainer" in str(error) or "layers" in str(error)
    else:
        assert not torch.equal(before, weights(first))


def test_no_grad_outside_does_not_stop_learning() -> None:
    inside, outside = trainer_of("gpipe"), trainer_of("gpipe")
    with torch.no_grad():
        inside.fit(data(3))
    outside.fit(data(3))
    assert torch.equal(weights(inside), weights(outside))


# Cancelling


@each_method
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("after", [1, 9, 30])
def test_a_cancelled_run_drains_and_equals_a_shorter_run(method, n, after) -> None:
    trainer = trainer_of(method, n=n)
    for number, run in enumerate(trainer.chunks(data(40), seconds=0.0), start=1):
        if number == after:
            run.cancel()
            assert run.status == "running"
    assert run.status == "cancelled" and 1 <= run.steps < 40
    assert str(run.steps) in run.note
    clean(trainer)
    shorter = trainer_of(method, n=n)
    same = shorter.fit(data(40), steps=run.steps)
    assert run.losses == same.losses and torch.equal(weights(trainer), weights(shorter))
    assert run.staleness == same.staleness
    assert run.utilization == same.utilization
    again, going_on = trainer.fit(data(3)), shorter.fit(data(3))
    assert again.status == "done" and again.losses == going_on.losses
    assert torch.equal(weights(trainer), weights(shorter))


@each_method
@pytest.mark.parametrize("n", [1, 2])
def test_a_run_that_cannot_drain_in_time_drops_what_is_in_flight(method, n, monkeypatch) -> None:
    """Wherever it stops, every stage has taken the same number of steps, and says so."""
    monkeypatch.setattr(session, "DRAIN_SECONDS", -1.0)
    notes = []
    for after in range(1, 60, 3):
        taken: dict[str, int] = {}

        def counting(named, taken=taken):
            optimizer = momentum(named)
            name = named[0][0]
            taken[name] = 0
            optimizer.register_step_post_hook(
                lambda *_: taken.__setitem__(name, taken[name] + 1),
            )
            return optimizer

        trainer = trainer_of(method, n=n, optimizer=counting)
        for number, run in enumerate(trainer.chunks(data(40), seconds=0.0), start=1):
            if number == after:
                run.cancel()
        assert run.status == "cancelled"
        notes.append(run.note)
        assert set(taken.values()) == {trainer.step}
        clean(trainer)
        assert trainer.fit(data(2)).status == "done"
    assert any("dropped" in note for note in notes)


@each_method
def test_leaving_the_loop_ends_the_run(method) -> None:
    trainer = trainer_of(method)
    for run in trainer.chunks(data(40), seconds=0.0):
        if run.steps == 5:
            break
    assert run.status == "cancelled" and 5 <= run.steps < 40
    clean(trainer)
    shorter = trainer_of(method)
    shorter.fit(data(40), steps=run.steps)
    assert torch.equal(weights(trainer), weights(shorter))


def test_closing_and_raising_in_the_loop_end_the_run() -> None:
    trainer = trainer_of("gpipe")
    chunks = trainer.chunks(data(40), seconds=0.0)
    run = next(chunks)
    chunks.close()
    assert run.status == "cancelled"
    with pytest.raises(KeyError):
        for run in (loop := trainer.chunks(data(40), seconds=0.0)):  # noqa: B007
            raise KeyError("the caller's own")
    loop.close()
    assert run.status == "cancelled"
    clean(trainer)


def test_a_generator_that_was_never_started_leaves_no_trace() -> None:
    trainer = trainer_of("gpipe")
    trainer.chunks(data(3)).close()
    assert trainer.step == 0 and trainer.fit(data(3)).status == "done"


# Ctrl-C


def python(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": ROOT},
    )  # fmt: skip


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(pm.__file__)))
INTERRUPTED = """
    import os, signal, torch
    from torch import nn
    import pipemare_edu as pm

    class Layer(nn.Linear):
        def forward(self, x):
            global calls
            calls += 1
            if calls == AT:
                os.kill(os.getpid(), signal.SIGINT)
            return super().forward(x)

    calls, AT = 0, 25
    torch.manual_seed(0)
    layers = [Layer(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)]
    batches = [(torch.randn(4, 4), torch.randn(4, 4))] * 2000
    sgd = lambda named: torch.optim.SGD(named, lr=0.01)
    trainer = pm.Trainer(layers, nn.functional.mse_loss, sgd, pm.PipeMare(t2=0.1), stages=3)
    run = trainer.fit(batches)
    print(run.status, run.steps, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    print(trainer.fit(batches[:3]).status)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        print("no interrupt")
    except KeyboardInterrupt:
        print("interrupts work again")
"""


def test_ctrl_c_returns_the_run_so_far() -> None:
    result = python(INTERRUPTED)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    first, second, third = result.stdout.splitlines()
    assert first == "cancelled 25 True"
    assert (second, third) == ("done", "interrupts work again")


def test_a_second_ctrl_c_interrupts_an_operation_that_does_not_end() -> None:
    text = INTERRUPTED.replace(
        "return super().forward(x)",
        "while calls == AT: calls == AT and os.kill(os.getpid(), signal.SIGINT)\n"
        "            return super().forward(x)",
    )
    result = python(text)
    assert result.returncode != 0 and "KeyboardInterrupt" in result.stderr


# Errors


class Trip(Exception):
    pass


class Fragile(nn.Module):
    """Raises at its `at`-th forward (training or evaluation), once."""

    def __init__(self, at: int, training: bool = True) -> None:
        super().__init__()
        self.at, self.when, self.calls = at, training, 0
        self.linear = nn.Linear(WIDTH, WIDTH).double()

    def forward(self, x: Tensor) -> Tensor:
        if self.training == self.when:
            self.calls += 1
            if self.calls == self.at:
                raise Trip("forward")
        return self.linear(x)


class Backfire(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        Backfire.calls += 1
        if Backfire.calls == 6:
            raise Trip("backward")
        return g


class BackfireLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH).double()

    def forward(self, x: Tensor) -> Tensor:
        return Backfire.apply(self.linear(x))


class StumblingSGD(torch.optim.SGD):
    at, calls = 3, 0

    def step(self, closure=None):
        self.calls += 1
        if self.calls == self.at:
            raise Trip("optimizer")
        return super().step(closure)


def failing(trainer: pm.Trainer, where: tuple[int, str, int], steps: int = 12, **options):
    """Fit, check the error and what is left, and go on."""
    torch.manual_seed(8)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(pm.StageError) as caught:
        trainer.fit(data(steps), **options)
    error = caught.value
    assert (error.stage, error.operation, error.index) == where
    assert isinstance(error.__cause__, Trip) and "Trip" in str(error)
    assert f"stage {where[0] + 1}" in str(error)
    run = error.run
    assert run.status == "failed" and str(error) in run.note
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert signal.getsignal(signal.SIGINT) is handler
    clean(trainer)
    assert torch.isfinite(weights(trainer)).all()
    again = trainer.fit(data(4))
    assert again.status == "done" and again.steps == 4
    clean(trainer)
    return run


@each_method
def test_a_layer_that_raises_in_a_forward(method) -> None:
    layers = net()
    layers[1] = Fragile(at=6)
    failing(trainer_of(method, layers), (1, "F", 5))


@each_method
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_layer_that_raises_in_a_backward(method, stage) -> None:
    layers = net()
    layers[stage] = BackfireLayer()
    Backfire.calls = 0
    failing(trainer_of(method, layers), (stage, "B", 5))


@pytest.mark.parametrize("method", [pm.PipeDream(), pm.PipeMare(t2=0.1)], ids=["stash", "t2"])
def test_newest_weights_are_back_after_a_backward_that_raised(method) -> None:
    layers = net()
    layers[0] = BackfireLayer()
    Backfire.calls = 0
    trainer = trainer_of(method, layers)
    inside = []
    original = Backfire.backward

    def look(ctx, g):
        inside.append(weights(trainer))
        return original(ctx, g)

    after_update = []
    optimizer = trainer.optimizers[0].optimizer
    step = type(optimizer).step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Backfire, "backward", staticmethod(look))
        patch.setattr(
            torch.optim.SGD,
            "step",
            lambda self, closure=None: (step(self), after_update.append(weights(trainer)))[0],
        )
        with pytest.raises(pm.StageError):
            trainer.fit(data(12))
    assert not torch.equal(inside[-1], after_update[-1]), "other weights were read inside"
    assert torch.equal(weights(trainer), after_update[-1])


@each_method
def test_a_loss_that_raises(method) -> None:
    calls = []

    def loss(output, target):
        calls.append(1)
        if len(calls) == 5:
            raise Trip("loss")
        return mse_loss(output, target)

    run = failing(trainer_of(method, n=2, loss=loss), (2, "F", 4))
    assert run.steps == 2


@each_method
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_an_optimizer_that_raises_is_named_with_its_stage(method, stage) -> None:
    def optimizer(named):
        kind = StumblingSGD if named[0][0].startswith(f"{stage}.") else torch.optim.SGD
        return kind(named, lr=0.05)

    trainer = trainer_of(method, optimizer=optimizer)
    with pytest.raises(pm.StageError) as caught:
        trainer.fit(data(12))
    error = caught.value
    assert (error.stage, error.operation, error.index) == (stage, "U", 2)
    assert isinstance(error.__cause__, Trip) and error.run.status == "failed"
    clean(trainer)
    assert all(a.grad is None for o in trainer.optimizers for a in o.aliases)
    assert trainer.fit(data(4)).status == "done"


@each_method
def test_a_metric_that_raises_and_the_metrics_before_it(method) -> None:
    calls = []

    def metric(output, target):
        calls.append(1)
        if len(calls) == 3:
            raise Trip("metric")
        return 1.0

    run = failing(
        trainer_of(method), (2, "E", 5), evaluate=data(1), every=2, metrics={"mine": metric}
    )
    assert run.metrics["mine"] == [(2, 1.0), (4, 1.0)]


def test_a_layer_that_raises_in_an_evaluation_gets_its_mode_back() -> None:
    layers = net()
    layers[1] = Fragile(at=2, training=False)
    failing(trainer_of("gpipe", layers), (1, "E", 3), evaluate=data(1), every=2)
    assert all(m.training for layer in layers for m in layer.modules())


def test_a_scheduler_that_ran_out_is_named_with_its_stage() -> None:
    def one_cycle(named):
        optimizer = momentum(named)
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=4)

    trainer = trainer_of("gpipe", optimizer=one_cycle)
    with pytest.raises(pm.StageError, match="update.*[Tt]ried to step") as caught:
        trainer.fit(data(9))
    assert caught.value.operation == "U" and caught.value.run.steps == 5


def test_batches_that_raise_come_back_as_they_are_or_as_their_cause() -> None:
    def batches():
        yield from data(3)
        raise Trip("the caller's reader")

    trainer = trainer_of("gpipe")
    with pytest.raises((Trip, pm.PipelineError)) as caught:
        trainer.fit(batches(), steps=6)
    error = caught.value
    assert isinstance(error, Trip) or isinstance(error.__cause__, Trip)
    clean(trainer)
    assert trainer.fit(data(2)).status == "done"


@pytest.mark.parametrize(
    "output",
    [
        lambda x: [x, x],
        lambda x: {"x": x},
        lambda x: (x, (x, x)),
        lambda x: None,
        lambda x: 3.0,
    ],
    ids=["list", "dict", "nested", "none", "number"],
)
def test_a_layer_must_return_a_tensor_or_a_tuple_of_tensors(output) -> None:
    class Odd(nn.Module):
        def forward(self, x):
            return output(x)

    layers = net()
    layers[1] = Odd()
    with pytest.raises(pm.StageError, match="tensor or a tuple of tensors") as caught:
        trainer_of("gpipe", layers).fit(data(2))
    assert (caught.value.stage, caught.value.operation) == (1, "F")


@pytest.mark.parametrize(
    "loss",
    [
        lambda o, t: 1.0,
        lambda o, t: (o - t).square(),
        lambda o, t: None,
    ],
    ids=["number", "vector", "none"],
)
def test_a_loss_must_return_one_number_in_a_tensor(loss) -> None:
    with pytest.raises(pm.StageError, match="loss.*(scalar|one number|tensor)") as caught:
        trainer_of("gpipe", loss=loss).fit(data(2))
    assert caught.value.stage == 2


def test_a_stage_error_travels_between_processes() -> None:
    import pickle

    error = pm.StageError(1, "B", 7, Trip("deep"))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.stage, copy.operation, copy.index) == (1, "B", 7)


# Divergence


@each_method
def test_a_diverged_run_leaves_a_trainer_that_can_go_on(method) -> None:
    batches = data(12)
    batches[5] = (batches[5][0], batches[5][1] * float("nan"))
    trainer = trainer_of(method)
    run = trainer.fit(batches)
    assert run.status == "diverged" and run.diverged[:2] == (5, 2) and "nan" in run.diverged[2]
    assert run.steps == 6 and run.losses[5] != run.losses[5]
    assert run.memory and run.staleness.forward and run.utilization.model > 0
    clean(trainer)
    assert trainer.fit(data(3)).status == "done"


def test_divergence_while_draining_is_divergence() -> None:
    batches = data(40)
    batches[5] = (batches[5][0], batches[5][1] * float("inf"))
    trainer = trainer_of(pm.PipeMare())
    for run in trainer.chunks(batches, seconds=0.0):
        if run.steps == 3:
            run.cancel()
    assert run.status == "diverged" and run.diverged[0] == 5
