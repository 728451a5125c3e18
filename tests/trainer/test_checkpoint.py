"""A trainer's state between two fits: saved, taken back, and refused when it does not fit."""

from __future__ import annotations

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import pipemare_edu as pm

WIDTH = 4
METHODS = {
    "sequential": pm.Sequential(),
    "gpipe": pm.GPipe(),
    "1f1b": pm.OneFOneB(),
    "pipedream": pm.PipeDream(),
    "naive": pm.PipeMare(),
    "t1t2": pm.PipeMare(t1=9, t2=0.135),
    "t3": pm.PipeMare(t1=4, t2="theory", t3=5),
}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def sgd(named):
    return torch.optim.SGD(named, lr=0.05, momentum=0.9, weight_decay=0.01)


def adam(named):
    optimizer = torch.optim.Adam(named, lr=0.01, betas=(0.8, 0.9))
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)


def milestones(named):
    optimizer = torch.optim.SGD(named, lr=0.1)
    return optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 6, 8], gamma=0.5)


def one_cycle(named):
    optimizer = torch.optim.AdamW(named, lr=0.01)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=30)


def warm_up(named):
    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.NAdam(named, lr=0.01)
    parts = [schedulers.LinearLR(optimizer, 0.1, 1.0, 5), schedulers.ExponentialLR(optimizer, 0.9)]
    return optimizer, schedulers.SequentialLR(optimizer, parts, [5])


def lambda_rate(named):
    optimizer = torch.optim.RMSprop(named, lr=0.01)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k))


OPTIMIZERS = [sgd, adam, milestones, one_cycle, warm_up, lambda_rate]


def net() -> list[nn.Module]:
    torch.manual_seed(3)
    layers = [nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.2), nn.Tanh()]
    layers += [nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)]
    return [m.double() for m in layers]


def loader() -> DataLoader:
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(2, 20, WIDTH, generator=g, dtype=torch.float64)
    return DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


def trainer_of(method, optimizer=sgd, stages=4, **options) -> pm.Trainer:
    options.setdefault("microbatches", 2)
    return pm.Trainer(net(), mse_loss, optimizer, method, stages, **options)


def state(trainer) -> dict[str, Tensor]:
    return {
        f"{j}.{k}": v.clone()
        for j, m in enumerate(trainer.layers)
        for k, v in m.state_dict().items()
    }


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def batches_of(passes: int, seed: int) -> list:
    """What a shuffling loader gives over `passes` passes from this random state."""
    torch.manual_seed(seed)
    source = loader()
    return [pair for _ in range(passes) for pair in source]


@each_method
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_case_22_resuming_is_bitwise_the_run_without_the_stop(method, optimizer, tmp_path) -> None:
    """Seven steps, a drain, seven more: in one trainer, and through a file into a new one.  The
    shuffling loader is in its second pass at the stop."""
    whole = trainer_of(method, optimizer)
    batches = batches_of(3, seed=8)
    first = whole.fit(batches[:7]).losses
    second = whole.fit(batches[7:14]).losses

    stopped = trainer_of(method, optimizer)
    torch.manual_seed(8)
    assert stopped.fit(loader(), steps=7).losses == first
    stopped.save(tmp_path / "state")
    torch.manual_seed(12345)
    resumed = trainer_of(method, optimizer)
    resumed.restore(tmp_path / "state")
    assert resumed.step == 7 and same(state(resumed), state(stopped))
    assert resumed.fit(loader(), steps=7).losses == second
    assert same(state(resumed), state(whole)) and resumed.step == 14


@pytest.mark.parametrize("method", [pm.GPipe(), pm.PipeMare(t2=0.3)], ids=["gpipe", "t2"])
def test_case_22_resuming_twice(method, tmp_path) -> None:
    whole = trainer_of(method)
    batches = batches_of(3, seed=8)
    losses = [whole.fit(batches[a : a + 4]).losses for a in (0, 4, 8)]
    trainer = trainer_of(method)
    torch.manual_seed(8)
    for k, expected in enumerate(losses):
        if k:
            trainer = trainer_of(method)
            trainer.restore(tmp_path / "state")
        assert trainer.fit(loader(), steps=4).losses == expected
        trainer.save(tmp_path / "state")
    assert same(state(trainer), state(whole))


def test_case_22_a_synchronous_run_resumed_equals_one_fit(tmp_path) -> None:
    whole = trainer_of("gpipe", adam)
    torch.manual_seed(8)
    losses = whole.fit(loader(), steps=12).losses
    stopped = trainer_of("gpipe", adam)
    torch.manual_seed(8)
    stopped.fit(loader(), steps=6)
    stopped.save(tmp_path / "state")
    resumed = trainer_of("gpipe", adam)
    resumed.restore(tmp_path / "state")
    assert resumed.fit(loader(), steps=6).losses == losses[6:]
    assert same(state(resumed), state(whole))


def test_steps_none_after_a_restore_is_the_rest_of_the_pass(tmp_path) -> None:
    stopped = trainer_of("gpipe")
    stopped.fit(loader(), steps=2)
    stopped.save(tmp_path / "state")
    resumed = trainer_of("gpipe")
    resumed.restore(tmp_path / "state")
    assert resumed.fit(loader()).steps == 3


def test_two_fits_then_a_save_pass_over_what_the_second_used(tmp_path) -> None:
    """Each fit iterates its batches from the start, so a resumed fit passes over the last one's."""
    g = torch.Generator().manual_seed(1)
    early, late = (
        [tuple(torch.randn(2, 4, WIDTH, generator=g, dtype=torch.float64)) for _ in range(8)]
        for _ in range(2)
    )
    straight, stopped = trainer_of("gpipe"), trainer_of("gpipe")
    straight.fit(early, steps=3)
    expected = straight.fit(late).losses
    stopped.fit(early, steps=3)
    stopped.fit(late, steps=2)
    stopped.save(tmp_path / "state")
    resumed = trainer_of("gpipe")
    resumed.restore(tmp_path / "state")
    assert resumed.fit(late, steps=6).losses == expected[2:]


@each_method
@pytest.mark.parametrize("optimizer", [sgd, adam, one_cycle])
@pytest.mark.parametrize("stages", [1, 2, [3, 3], 6])
def test_case_22_another_number_of_stages_works(method, optimizer, stages, tmp_path) -> None:
    stopped = trainer_of(method, optimizer)
    stopped.fit(loader(), steps=7)
    stopped.save(tmp_path / "state")
    resumed = trainer_of(method, optimizer, stages)
    resumed.restore(tmp_path / "state")
    assert same(state(resumed), state(stopped))
    run = resumed.fit(loader(), steps=4)
    assert run.status == "done" and resumed.step == 11
    if method.synchronous:
        other = trainer_of(method, optimizer)
        other.restore(tmp_path / "state")
        expected = other.fit(loader(), steps=4).losses
        assert run.losses == pytest.approx(expected, abs=1e-12)


def test_a_cancelled_run_can_be_saved_and_resumed(tmp_path) -> None:
    batches = batches_of(3, seed=8)
    method = METHODS["t1t2"]
    stopped = trainer_of(method)
    for run in stopped.chunks(batches, seconds=0.0):
        if run.steps == 5:
            run.cancel()
    stopped.save(tmp_path / "state")
    resumed, straight = trainer_of(method), trainer_of(method)
    resumed.restore(tmp_path / "state")
    straight.fit(batches[: run.steps])
    assert resumed.fit(batches).losses == straight.fit(batches[run.steps :]).losses


def test_two_groups_a_frozen_layer_and_one_without_weights(tmp_path) -> None:
    def grouped(named):
        decay = [p for n, p in named if n.endswith("weight")]
        plain = [p for n, p in named if not n.endswith("weight")]
        return torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.1}, {"params": plain, "lr": 0.02}], lr=0.01
        )

    def build(stages=6):
        layers = net()
        layers[4].requires_grad_(False)
        return pm.Trainer(layers, mse_loss, grouped, METHODS["t1t2"], stages, 2)

    straight, stopped = build(), build()
    batches = batches_of(2, seed=8)
    straight.fit(batches[:5])
    expected = straight.fit(batches[5:]).losses
    stopped.fit(batches, steps=5)
    stopped.save(tmp_path / "state")
    resumed = build()
    resumed.restore(tmp_path / "state")
    assert resumed.fit(batches).losses == expected


# Refused, with nothing changed


def saved(tmp_path, method="gpipe", optimizer=sgd, **options):
    trainer = trainer_of(method, optimizer, **options)
    torch.manual_seed(8)
    trainer.fit(loader(), steps=3)
    trainer.save(tmp_path / "state")
    return tmp_path / "state"


def optimizer_state(trainer: pm.Trainer) -> str:
    """All numbers of the optimizers and schedulers, as text."""
    return repr([(o.state(), o.settings()) for o in trainer.optimizers if o is not None])


def refused(trainer: pm.Trainer, path, match: str) -> None:
    trainer.fit(loader(), steps=2)
    torch.manual_seed(77)
    before, content = state(trainer), path.read_bytes() if path.is_file() else None
    old = optimizer_state(trainer)
    at = trainer.step, trainer.seen, trainer.used, torch.get_rng_state()
    with pytest.raises(ValueError, match=match):
        trainer.restore(path)
    assert same(before, state(trainer)), "weights changed"
    assert optimizer_state(trainer) == old, "optimizer changed"
    assert (trainer.step, trainer.seen, trainer.used) == at[:3]
    assert torch.equal(torch.get_rng_state(), at[3])
    if content is not None:
        assert path.read_bytes() == content


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, keep) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    refused(trainer_of("gpipe"), path, "truncated|no state")


def test_foreign_files_are_refused(tmp_path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    refused(trainer_of("gpipe"), path, str(path))
    save_file({"a": torch.zeros(3)}, path)
    refused(trainer_of("gpipe"), path, str(path))
    for text in ("{}", "5", "[]", "null", "{"):
        save_file({"a": torch.zeros(3)}, path, {"state": text})
        refused(trainer_of("gpipe"), path, str(path))
    run = tmp_path / "run.json"
    trainer_of("gpipe").fit(loader(), steps=1).save(run)
    refused(trainer_of("gpipe"), run, str(run))


def test_a_missing_file_says_so(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        trainer_of("gpipe").restore(tmp_path / "nowhere")


def other_layers(change) -> pm.Trainer:
    layers = net()
    change(layers)
    return pm.Trainer(layers, mse_loss, sgd, "gpipe", 2, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda layers: layers.append(nn.Linear(WIDTH, WIDTH).double()),
        lambda layers: layers.pop(),
        lambda layers: layers.insert(0, nn.Identity()),
        lambda layers: layers.__setitem__(4, nn.Linear(WIDTH, WIDTH, bias=False).double()),
        lambda layers: layers.__setitem__(1, nn.BatchNorm1d(WIDTH, affine=False).double()),
    ],
)
def test_other_layers_are_refused(tmp_path, change) -> None:
    refused(other_layers(change), saved(tmp_path), "layers")


def test_another_seed_and_another_n_are_refused(tmp_path) -> None:
    path = saved(tmp_path)
    refused(trainer_of("gpipe", seed=4), path, "seed=0.*4")
    refused(trainer_of("gpipe", microbatches=1), path, "microbatches=2.*1")


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [(sgd, adam), (adam, sgd), (milestones, sgd), (sgd, milestones), (adam, one_cycle)],
)
def test_another_optimizer_is_refused_with_nothing_changed(tmp_path, theirs, mine) -> None:
    refused(trainer_of("gpipe", mine), saved(tmp_path, optimizer=theirs), "optimizer|scheduler")


def test_other_frozen_layers_are_refused_with_nothing_changed(tmp_path) -> None:
    path = saved(tmp_path)
    layers = net()
    layers[0].requires_grad_(False)
    trainer = pm.Trainer(layers, mse_loss, sgd, "gpipe", [5, 1], 2)
    trainer_all = trainer_of("gpipe")
    refused_path = tmp_path / "frozen"
    trainer.fit(loader(), steps=1)
    trainer.save(refused_path)
    refused(trainer_all, refused_path, "trainable|frozen|layers|optimizer")
    assert path.exists()


def test_a_state_that_cannot_be_written_overwrites_nothing(tmp_path) -> None:
    path = saved(tmp_path)
    content = path.read_bytes()

    class Hooked(torch.optim.SGD):
        def __init__(self, named, lr):
            super().__init__(named, lr)
            self.param_groups[0]["note"] = object()

    trainer = trainer_of("gpipe", lambda named: Hooked(named, 0.1))
    trainer.fit(loader(), steps=1)
    with pytest.raises(ValueError, match="optimizer"):
        trainer.save(path)
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["state"], "no temporary file is left"


def test_saving_during_a_run_is_refused_or_a_consistent_state(tmp_path) -> None:
    """Weights with microbatches in flight are no drain point."""
    trainer = trainer_of(METHODS["t1t2"])
    chunks = trainer.chunks(batches_of(3, 8), seconds=0.0)
    for _ in range(25):
        run = next(chunks)
    assert run.status == "running"
    with pytest.raises((ValueError, RuntimeError), match="run"):
        trainer.save(tmp_path / "state")
    chunks.close()
    trainer.save(tmp_path / "state")
