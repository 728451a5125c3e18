"""Minibatches in every shape a caller may have them, and the ones that are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler, TensorDataset

import pipemare_edu as pm
from pipemare_edu.trainer.feed import cut, split_pair

WIDTH = 3


def net(*middle: nn.Module) -> list[nn.Module]:
    torch.manual_seed(3)
    return [nn.Linear(WIDTH, WIDTH), *middle, nn.Linear(WIDTH, WIDTH)]


def data(*sizes: int) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(1)
    return [tuple(torch.randn(2, n, WIDTH, generator=g)) for n in sizes]


def trainer_of(layers=None, n: int = 1, method="gpipe", loss=mse_loss, **options) -> pm.Trainer:
    sgd = lambda named: torch.optim.SGD(named, lr=0.1)  # noqa: E731
    return pm.Trainer(layers or net(), loss, sgd, method, 2, n, **options)


LOSSES = trainer_of().fit(data(4, 4, 4)).losses


def rows() -> TensorDataset:
    return TensorDataset(*(torch.cat(part) for part in zip(*data(4, 4, 4), strict=True)))


class Endless(IterableDataset):
    def __iter__(self):
        yield from zip(*rows().tensors, strict=True)


SOURCES = {
    "list": lambda: data(4, 4, 4),
    "tuple": lambda: tuple(data(4, 4, 4)),
    "lists as pairs": lambda: [list(pair) for pair in data(4, 4, 4)],
    "generator": lambda: (pair for pair in data(4, 4, 4)),
    "zip": lambda: zip(*zip(*data(4, 4, 4), strict=True), strict=True),
    "map": lambda: map(tuple, data(4, 4, 4)),
    "loader": lambda: DataLoader(rows(), batch_size=4),
    "loader of a stream": lambda: DataLoader(Endless(), batch_size=4),
    "loader of batches": lambda: DataLoader(data(4, 4, 4), batch_size=None),
    "batch sampler": lambda: DataLoader(
        rows(), batch_sampler=[range(4), range(4, 8), range(8, 12)]
    ),
}


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_any_iterable_of_pairs_will_do(source, steps) -> None:
    assert trainer_of().fit(source(), steps=steps).losses == LOSSES


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_fewer_steps_than_batches(source) -> None:
    assert trainer_of().fit(source(), steps=2).losses == LOSSES[:2]


@pytest.mark.parametrize("kind", ["list", "tuple", "loader", "loader of a stream"])
def test_more_steps_than_a_pass_start_it_again(kind) -> None:
    run = trainer_of().fit(SOURCES[kind](), steps=7)
    twice = data(4, 4, 4) * 3
    assert run.losses == trainer_of().fit(twice[:7]).losses


@pytest.mark.parametrize("kind", ["generator", "zip", "map"])
def test_an_iterator_that_ends_early_says_how_many_and_what_to_do(kind) -> None:
    with pytest.raises(pm.DataError, match="ended after 3 minibatches and 5 steps.*DataLoader"):
        trainer_of().fit(SOURCES[kind](), steps=5)


def test_no_more_is_read_than_the_steps_need() -> None:
    source = itertools.cycle(data(4, 4, 4))
    run = trainer_of().fit(source, steps=3)
    assert run.losses == LOSSES
    assert torch.equal(next(source)[0], data(4)[0][0])


def test_a_shuffling_loader_gives_what_it_gives_a_plain_loop() -> None:
    loader = DataLoader(rows(), batch_size=4, shuffle=True)
    seen = []

    def loss(output, target):
        seen.append(target)
        return mse_loss(output, target)

    trainer = trainer_of(loss=loss)
    torch.manual_seed(5)
    trainer.fit(loader, steps=9)
    after = torch.rand(())
    torch.manual_seed(5)
    plain = [target for _ in range(3) for _, target in loader]
    assert torch.equal(torch.cat(seen), torch.cat(plain))
    assert torch.equal(after, torch.rand(())), "the caller's random state moved the same way"


def test_a_sampler_decides_how_many_there_are() -> None:
    nine = TensorDataset(*torch.randn(2, 9, WIDTH))
    loader = DataLoader(nine, batch_size=4, sampler=SubsetRandomSampler(range(8)))
    assert trainer_of(n=4).fit(loader).steps == 2
    loader = DataLoader(
        TensorDataset(*torch.randn(2, 8, WIDTH)), 4, sampler=SubsetRandomSampler(range(5))
    )
    with pytest.raises(pm.DataError, match="1 samples for 4"):
        trainer_of(n=4).fit(loader)


@pytest.mark.parametrize("kind", ["list", "loader"])
def test_a_short_last_minibatch_that_is_never_reached_is_no_obstacle(kind) -> None:
    batches = data(4, 4, 1)
    if kind == "loader":
        x, y = (torch.cat(part) for part in zip(*batches, strict=True))
        batches = DataLoader(TensorDataset(x, y), batch_size=4)
    assert trainer_of(n=4).fit(batches, steps=2).status == "done"


def test_drop_last_is_the_way_out_that_it_is_said_to_be() -> None:
    x, y = (torch.cat(part) for part in zip(*data(4, 4, 1), strict=True))
    with pytest.raises(pm.DataError, match="drop_last=True"):
        trainer_of(n=4).fit(DataLoader(TensorDataset(x, y), 4))
    assert trainer_of(n=4).fit(DataLoader(TensorDataset(x, y), 4, drop_last=True)).steps == 2


class Add(nn.Module):
    def forward(self, pair):
        return pair[0] + 2 * pair[1]


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("n", [1, 3])
def test_tuples_and_lists_of_tensors_as_inputs_and_targets(kind, n) -> None:
    batches = [(kind((x, y)), kind((y, x))) for x, y in data(5, 5)]

    def loss(output, target):
        assert isinstance(target, tuple)
        return mse_loss(output, target[0] - target[1])

    trainer = trainer_of([Add(), *net()], n, loss=loss)
    plain = [(x + 2 * y, y - x) for x, y in data(5, 5)]
    expected = trainer_of(net(), n).fit(plain).losses
    assert trainer.fit(batches).losses == pytest.approx(expected, abs=1e-6)


ODD = {
    "a tensor": (torch.zeros(4, 3), "minibatch 0 is a Tensor: give pairs"),
    "a dict": ({"x": torch.zeros(4, 3)}, "minibatch 0 is a dict: give pairs"),
    "a triple": ((torch.zeros(4),) * 3, "minibatch 0.*pairs"),
    "an array": ((np.zeros((4, 3)), torch.zeros(4, 3)), "minibatch 0 holds a ndarray"),
    "labels as a list of numbers": ((torch.zeros(4, 3), [0, 1, 2, 3]), "minibatch 0 holds a int"),
    "inputs as a dict": (({"x": torch.zeros(4, 3)}, torch.zeros(4)), "minibatch 0 holds a dict"),
    "none": ((torch.zeros(4, 3), None), "minibatch 0 holds a NoneType"),
    "a number": ((torch.zeros(()), torch.zeros(())), "minibatch 0 holds.*dimension 0"),
    "other lengths": ((torch.zeros(4, 3), torch.zeros(5, 3)), r"minibatch 0 mixes.*\[4, 5\]"),
    "nothing inside": (((), torch.zeros(4, 3)), "minibatch 0"),
    "no samples": ((torch.zeros(0, 3), torch.zeros(0, 3)), "minibatch 0 has 0 samples"),
    "nested tuples": (
        ((torch.zeros(4, 3), (torch.zeros(4, 3),)), torch.zeros(4, 3)),
        "minibatch 0 holds a tuple",
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("batch", "message"), ODD.values(), ids=ODD)
def test_odd_minibatches_are_refused_by_number(batch, message, stream) -> None:
    layers, calls = net(), []
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    with pytest.raises(pm.DataError, match=message):
        trainer_of(layers).fit(iter([batch]) if stream else [batch], steps=1)
    assert not calls


def test_a_pair_that_was_meant_as_the_only_batch_is_refused_helpfully() -> None:
    with pytest.raises(pm.DataError, match=r"pairs \(inputs, targets\)"):
        trainer_of().fit(data(4)[0])


@pytest.mark.parametrize("batches", [[], (), DataLoader([], batch_size=2)])
@pytest.mark.parametrize("steps", [None, 2])
def test_no_batches_at_all(batches, steps) -> None:
    with pytest.raises(ValueError, match="batch"):
        trainer_of().fit(batches, steps)


@pytest.mark.parametrize("batches", [None, 3, "pairs"])
@pytest.mark.parametrize("steps", [None, 2])
def test_what_no_loop_can_go_over_is_refused_by_name(batches, steps) -> None:
    with pytest.raises(ValueError, match=f"batches is {batches!r}: give pairs"):
        trainer_of().fit(batches, steps)
    with pytest.raises(ValueError, match="evaluate is 3: give pairs"):
        trainer_of().fit(data(4, 4, 4), steps, evaluate=3)


def broken():
    yield data(4)[0]
    raise KeyError("as told")


@pytest.mark.parametrize("steps", [None, 3])
def test_batches_that_raise_say_at_which_minibatch(steps) -> None:
    with pytest.raises(KeyError, match="as told") as caught:
        trainer_of().fit(broken(), steps)
    assert caught.value.__notes__ == ["raised by batches, asked for minibatch 1 (the first is 0)"]
    with pytest.raises(KeyError) as caught:
        trainer_of().fit(data(4, 4, 4), steps, evaluate=broken())
    assert "raised by evaluate, asked for minibatch 1" in caught.value.__notes__[0]


@pytest.mark.parametrize("steps", [0, -1, 2.0, "3", True])
def test_steps_are_a_whole_number(steps) -> None:
    with pytest.raises(ValueError, match="steps is"):
        trainer_of().fit(data(4), steps)


@pytest.mark.parametrize("every", [-1, 2.5, "1"])
def test_every_is_a_whole_number(every) -> None:
    with pytest.raises(ValueError, match="every is"):
        trainer_of().fit(data(4), evaluate=data(4), every=every)


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [([], "evaluate.*no batches"), (torch.zeros(4, 3), "pair"), ([3], "pair")],
)
def test_odd_evaluations_are_refused_before_anything_runs(evaluate, message) -> None:
    layers, calls = net(), []
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    with pytest.raises(ValueError, match=message):
        trainer_of(layers).fit(data(4), evaluate=evaluate)
    assert not calls


def test_an_evaluation_of_padding_alone_is_refused_before_anything_runs() -> None:
    class Loss(nn.MSELoss):
        def count(self, target):
            return int((target != 0).any(1).sum())

    with pytest.raises(ValueError, match="evaluate|count"):
        trainer_of(loss=Loss()).fit(data(4), evaluate=[(torch.ones(4, 3), torch.zeros(4, 3))])


def test_metrics_are_functions_and_not_called_loss() -> None:
    with pytest.raises(ValueError, match="loss"):
        trainer_of().fit(data(4), evaluate=data(4), metrics={"loss": mse_loss})
    with pytest.raises(ValueError, match="mae"):
        trainer_of().fit(data(4), evaluate=data(4), metrics={"mae": 3})


def test_one_sample_before_batch_norm_2d_or_in_eval_mode_is_fine() -> None:
    layers = [nn.Unflatten(1, (3, 1, 1)), nn.Upsample(2), nn.BatchNorm2d(3), nn.Flatten()]
    layers.append(nn.Linear(12, 3))
    assert trainer_of(layers, 4).fit(data(4)).status == "done"
    frozen = nn.BatchNorm1d(WIDTH).eval()
    assert trainer_of(net(frozen), 4).fit(data(4)).status == "done"


@pytest.mark.parametrize(("samples", "n"), [(7, 3), (5, 5), (8, 3), (9, 1)])
def test_cut_is_exact_and_even(samples, n) -> None:
    x = torch.arange(samples)
    parts = cut(x, n, 0)
    assert torch.equal(torch.cat(parts), x) and len(parts) == n
    sizes = [len(p) for p in parts]
    assert max(sizes) - min(sizes) <= 1
    pairs = cut((x, x + 1), n, 0)
    assert all(torch.equal(a + 1, b) for a, b in pairs)


def test_split_pair_turns_lists_into_tuples() -> None:
    x = torch.zeros(2, 3)
    assert split_pair([[x, x], x], 0) == ((x, x), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("method", [pm.GPipe(), pm.PipeDream(), pm.PipeMare(t1=3, t2=0.1)])
def test_other_dtypes_train(dtype, method) -> None:
    layers = [m.to(dtype) for m in net(nn.LayerNorm(WIDTH))]
    batches = [(x.to(dtype), y.to(dtype)) for x, y in data(*[4] * 30)] * 2
    trainer = trainer_of(layers, 2, method, clip=5.0)
    run = trainer.fit(batches, evaluate=batches[:1])
    assert run.status == "done" and all(p.dtype == dtype for m in layers for p in m.parameters())
    assert sum(run.losses[-30:]) < sum(run.losses[:30])


def test_mixed_dtypes_in_one_stage() -> None:
    class Cast(nn.Module):
        def forward(self, x):
            return x.double()

    layers = [nn.Linear(3, 3), Cast(), nn.Linear(3, 3).double()]
    batches = [(x, y.double()) for x, y in data(*[4] * 30)] * 2
    for method in (pm.GPipe(), pm.PipeDream(), pm.PipeMare(t2=0.1)):
        run = trainer_of(layers, 2, method).fit(batches)
        assert run.status == "done" and len(run.memory) == 2
