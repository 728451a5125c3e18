"""CASES.md, one test or more per case of this engine; the name says which."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, TensorDataset

import pipemare_edu as pm
from pipemare_edu.training import prepare

WIDTH = 5
METHODS = {
    "sequential": pm.Sequential(),
    "gpipe": pm.GPipe(),
    "1f1b": pm.OneFOneB(),
    "pipedream": pm.PipeDream(),
    "naive": pm.PipeMare(),
    "t1t2": pm.PipeMare(t1=4, t2=0.135),
    "t3": pm.PipeMare(t2="theory", t3=2),
    "1f1b-async": pm.PipeMare(t2=0.5, depth="async-1f1b"),
}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def net(depth: int = 4, *middle: nn.Module) -> list[nn.Module]:
    torch.manual_seed(3)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(depth)]
    return [m.double() for m in (*layers[:2], *middle, *layers[2:])]


def data(*sizes: int) -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(1)
    return [tuple(torch.randn(2, n, WIDTH, generator=g, dtype=torch.float64)) for n in sizes]


def sgd(named, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(named, lr=lr)


def weights(layers) -> Tensor:
    return torch.cat([p.detach().reshape(-1).clone() for m in layers for p in m.parameters()])


def state(layers) -> dict[str, Tensor]:
    return {f"{j}.{k}": v.clone() for j, m in enumerate(layers) for k, v in m.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def full_gradient(batch, loss=mse_loss) -> Tensor:
    layers = net()
    loss(nn.Sequential(*layers)(batch[0]), batch[1]).backward()
    return torch.cat([p.grad.reshape(-1) for m in layers for p in m.parameters()])


def step_taken(batch, method, stages=4, microbatches=1, loss=mse_loss) -> Tensor:
    """Minus the one update that SGD at rate 1 makes: the minibatch's gradient, in every method."""
    if isinstance(method, pm.PipeMare):
        method = replace(method, t1=0)  # T1 would scale it
    layers = net()
    before = weights(layers)
    trainer = pm.Trainer(layers, loss, lambda n: sgd(n, 1.0), method, stages, microbatches)
    trainer.fit([batch])
    return before - weights(layers)


@each_method
@pytest.mark.parametrize(("samples", "n"), [(7, 3), (5, 4), (4, 4), (6, 1)])
def test_case_1_a_batch_that_n_does_not_divide(method, samples, n) -> None:
    [batch] = data(samples)
    torch.testing.assert_close(
        step_taken(batch, method, 4, n), full_gradient(batch), rtol=0, atol=1e-12
    )


@each_method
def test_case_1_a_short_last_minibatch(method) -> None:
    """Every minibatch's update at a frozen version (rate 0 but for the last) is its own mean."""
    batches = data(6, 6, 4)

    def only_last(named):
        optimizer = sgd(named, 1.0)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: float(k == 2))

    layers = net()
    before = weights(layers)
    run = pm.Trainer(layers, mse_loss, only_last, method, 4, 3).fit(batches)
    factor_free = isinstance(method, pm.PipeMare) and method.t1 == 0
    if factor_free or not isinstance(method, pm.PipeMare):
        expected = full_gradient(batches[2])
        torch.testing.assert_close(before - weights(layers), expected, rtol=0, atol=1e-12)
    losses = [mse_loss(nn.Sequential(*net())(x), y).item() for x, y in batches]
    assert run.losses == pytest.approx(losses, abs=1e-12)


@each_method
@pytest.mark.parametrize("n", [1, 2, 3])
def test_case_2_fewer_microbatches_than_stages(method, n) -> None:
    run = pm.Trainer(net(), mse_loss, sgd, method, 4, n).fit(data(6, 6, 6, 6))
    assert run.status == "done" and run.steps == 4


@pytest.mark.parametrize("kind", ["list", "loader"])
def test_case_2_more_microbatches_than_samples_is_refused_before_anything_runs(kind) -> None:
    batches = data(6, 3)
    if kind == "loader":
        x, y = (torch.cat(part) for part in zip(*batches, strict=True))
        batches = DataLoader(TensorDataset(x, y), batch_size=6)
    layers, calls = net(), []
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    trainer = pm.Trainer(layers, mse_loss, sgd, "gpipe", 2, 4)
    with pytest.raises(pm.DataError, match="minibatch.*1.*3 samples for 4.*drop_last"):
        trainer.fit(batches)
    assert not calls


def test_case_2_a_generator_is_refused_at_its_short_minibatch_by_number() -> None:
    trainer = pm.Trainer(net(), mse_loss, sgd, "gpipe", 2, 4)
    with pytest.raises(pm.DataError, match="minibatch 1 has 3 samples") as caught:
        trainer.fit((pair for pair in data(6, 3)), steps=2)
    assert caught.value.run.status == "failed" and caught.value.run.steps == 1


@pytest.mark.parametrize("kind", ["list", "loader"])
def test_case_2_one_sample_before_batch_norm_is_refused_before_anything_runs(kind) -> None:
    layers, calls = net(4, nn.BatchNorm1d(WIDTH)), []
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    before = state(layers)
    batches = data(6, 6, 3)
    if kind == "loader":
        x, y = (torch.cat(part) for part in zip(*batches, strict=True))
        batches = DataLoader(TensorDataset(x, y), batch_size=6)
    trainer = pm.Trainer(layers, mse_loss, sgd, "gpipe", 2, 2)
    with pytest.raises(pm.DataError, match="BatchNorm.*drop_last"):
        trainer.fit(batches)
    assert not calls and same(before, state(layers))


class Padded(nn.Module):
    """Mean over the rows whose target is not all zero; the count is theirs."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        kept = target.abs().sum(1) > 0
        return (output[kept] - target[kept]).square().mean()

    def count(self, target: Tensor) -> int:
        return int((target.abs().sum(1) > 0).sum())


@each_method
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_case_3_the_gradient_does_not_depend_on_n(method, n) -> None:
    x, y = data(6)[0]
    y[[0, 1, 4]] = 0.0  # for N = 3 the first microbatch has nothing but padding
    loss = Padded()
    got = step_taken((x, y), method, 3, n, loss)
    torch.testing.assert_close(got, full_gradient((x, y), loss), rtol=0, atol=1e-12)


def test_case_3_a_minibatch_of_padding_alone_is_refused_by_number() -> None:
    x, y = data(6)[0]
    trainer = pm.Trainer(net(), Padded(), sgd, "gpipe", 2, 2)
    with pytest.raises(pm.DataError, match="minibatch 1"):
        trainer.fit([(x, y), (x, torch.zeros_like(y))])


def fit_noisy(method, evaluate, loader: bool = False):
    frozen = nn.BatchNorm1d(WIDTH).double().eval()
    layers = net(4, nn.BatchNorm1d(WIDTH), nn.Dropout(0.3), frozen)
    x, y = (torch.cat(part) for part in zip(*data(6, 6, 6, 6), strict=True))
    torch.manual_seed(11)
    batches = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
    flags = [m.training for layer in layers for m in layer.modules()]
    trainer = pm.Trainer(layers, mse_loss, sgd, method, 4, 2)
    every = 2 if evaluate is not None else 0
    run = trainer.fit(batches, 8, evaluate, every, {"noise": lambda o, t: torch.rand(())})
    assert [m.training for layer in layers for m in layer.modules()] == flags
    assert all(p.grad is None for layer in layers for p in layer.parameters())
    return run, state(layers), torch.get_rng_state(), [s.version for s in trainer.stages]


@each_method
@pytest.mark.parametrize("kind", ["list", "pair", "loader"])
def test_case_4_evaluation_changes_nothing(method, kind) -> None:
    held_out = data(7, 1, 3)
    evaluate = {"list": held_out, "pair": held_out[0]}.get(kind)
    if kind == "loader":
        x, y = (torch.cat(part) for part in zip(*held_out, strict=True))
        evaluate = DataLoader(TensorDataset(x, y), batch_size=4)
    kept = [(x.clone(), y.clone()) for x, y in held_out]
    bare, evaluated = fit_noisy(method, None), fit_noisy(method, evaluate)
    assert [k for k, _ in evaluated[0].metrics["loss"]] == [2, 4, 6, 8]
    assert bare[0].losses == evaluated[0].losses
    assert same(bare[1], evaluated[1])
    assert torch.equal(bare[2], evaluated[2]) and bare[3] == evaluated[3]
    assert all(torch.equal(a, b) for p, q in zip(held_out, kept, strict=True) for a, b in zip(p, q))  # noqa: B905


@pytest.mark.parametrize("middle", [nn.Identity(), nn.Flatten()])
@pytest.mark.parametrize("stages", [1, [1, 5], [2, 4], 6])
def test_case_4_an_in_place_layer_writes_on_nobodys_data(middle, stages) -> None:
    layers = [middle, nn.ReLU(inplace=True), *net()]
    [(x, y), (v, w)] = data(4, 4)
    before = x.clone(), v.clone()
    pm.Trainer(layers, mse_loss, sgd, "gpipe", stages).fit([(x, y)], evaluate=[(v, w)])
    assert torch.equal(x, before[0]) and torch.equal(v, before[1])


def test_case_4_evaluation_uses_evaluation_mode_and_weighs_batches_by_samples() -> None:
    layers = net(4, nn.Dropout(0.9), nn.BatchNorm1d(WIDTH))
    held_out = data(7, 1, 3)
    run = pm.Trainer(layers, mse_loss, lambda n: sgd(n, 0.0), "gpipe", 3).fit(
        data(6), evaluate=held_out, metrics={"mae": lambda o, t: (o - t).abs().mean()}
    )
    x, y = (torch.cat(part) for part in zip(*held_out, strict=True))
    with torch.no_grad():
        output = nn.Sequential(*layers).eval()(x)
    assert run.metrics["loss"] == [(1, pytest.approx(float(mse_loss(output, y)), abs=1e-12))]
    assert run.metrics["mae"] == [(1, pytest.approx(float((output - y).abs().mean()), abs=1e-12))]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("method", ["sequential", "gpipe", "1f1b"])
def test_case_5_synchronous_methods_clip_by_the_global_norm(method, n) -> None:
    [batch] = data(6)
    layers = net()
    before = weights(layers)
    pm.Trainer(layers, mse_loss, lambda m: sgd(m, 1.0), method, 4, n, clip=0.05).fit([batch])
    gradient = full_gradient(batch)
    assert gradient.norm() > 0.1
    expected = gradient * (0.05 / (gradient.norm() + 1e-6))
    torch.testing.assert_close(before - weights(layers), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [pm.PipeDream(), pm.PipeMare(t2=0.1), pm.PipeMare(t3=5)])
def test_case_5_asynchronous_methods_clip_each_stage_by_its_own_norm(method) -> None:
    [batch] = data(6)
    layers = net()
    before = weights(layers)
    pm.Trainer(layers, mse_loss, lambda m: sgd(m, 1.0), method, 2, 3, clip=0.05).fit([batch])
    halves = full_gradient(batch).chunk(2)
    assert all(h.norm() > 0.06 for h in halves)
    expected = torch.cat([h * (0.05 / (h.norm() + 1e-6)) for h in halves])
    torch.testing.assert_close(before - weights(layers), expected, rtol=0, atol=1e-12)


def test_case_5_a_small_gradient_is_not_scaled() -> None:
    [batch] = data(6)
    layers = net()
    before = weights(layers)
    pm.Trainer(layers, mse_loss, lambda m: sgd(m, 1.0), "gpipe", 4, clip=1e6).fit([batch])
    torch.testing.assert_close(before - weights(layers), full_gradient(batch), rtol=0, atol=1e-14)


@each_method
def test_case_6_batch_norm_counts_one_batch_per_microbatch(method) -> None:
    norm = nn.BatchNorm1d(WIDTH)
    trainer = pm.Trainer(net(4, norm), mse_loss, sgd, method, 5, 2)
    assert int(norm.num_batches_tracked) == 0
    trainer.fit(data(6, 6, 6), evaluate=data(4), every=1)
    assert int(norm.num_batches_tracked) == 6


class Recorder(nn.Module):
    """Dropout that remembers its masks, in the order of its training forwards."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.functional.dropout(torch.ones_like(x), 0.5, self.training)
        if self.training:
            self.masks.append(mask)
        return x * mask


def test_case_7_dropout_masks_depend_on_seed_layer_and_microbatch_alone() -> None:
    seen = {}
    for (name, method), stages in itertools.product(METHODS.items(), [1, 2, [1, 1, 3]]):
        one, other = Recorder(), Recorder()
        layers = [*net(3, one), other]
        torch.manual_seed(len(seen))  # the global state does not matter
        pm.Trainer(layers, mse_loss, sgd, method, stages, 2, seed=5).fit(
            data(6, 6, 6), evaluate=data(4), every=1
        )
        seen[name, str(stages)] = torch.stack(one.masks), torch.stack(other.masks)
    first = next(iter(seen.values()))
    assert all(torch.equal(a, b) for s in seen.values() for a, b in zip(s, first, strict=True))
    every_mask = [*first[0], *first[1]]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(every_mask, 2))
    reseeded = Recorder()
    pm.Trainer([*net(3, reseeded), Recorder()], mse_loss, sgd, "gpipe", 2, 2, seed=6).fit(data(6))
    assert not torch.equal(reseeded.masks[0], first[0][0])


def test_case_8_the_stage_count_does_not_change_the_initial_weights() -> None:
    def start(stages, seed=1):
        return state(prepare("regression", "gpipe", stages, steps=2, seed=seed).trainer.layers)

    reference = start(1)
    depth = len(prepare("regression", "gpipe", 1, steps=2).trainer.layers)
    assert all(same(reference, start(stages)) for stages in (3, depth, [1, 1, depth - 2]))
    assert not same(reference, start(1, seed=2))
    kinds = [v for k, v in reference.items() if v.shape == (64, 64)]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(kinds, 2))


def tied() -> list[nn.Module]:
    layers = net()
    layers[3][0].weight = layers[0][0].weight
    return layers


@each_method
def test_case_9_a_tensor_of_two_stages_is_refused_with_the_way_out(method) -> None:
    with pytest.raises(pm.SplitError, match=r"3\.0\.weight.*0\.0\.weight.*stages=\[.*untie"):
        pm.Trainer(tied(), mse_loss, sgd, method, 2)


def test_case_9_a_buffer_of_two_stages_is_refused_too() -> None:
    norm = nn.BatchNorm1d(WIDTH, affine=False).double()
    with pytest.raises(pm.SplitError, match="running_mean"):
        pm.Trainer([*net(2), norm, *net(2), norm], mse_loss, sgd, "gpipe", 3)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_case_9_a_tie_within_a_stage_trains_as_in_plain_pytorch(optimizer) -> None:
    mine, plain = tied(), nn.Sequential(*tied())
    batches = data(6, 6, 6)
    pm.Trainer(mine, mse_loss, lambda n: optimizer(n, lr=0.01), "gpipe", [4]).fit(batches)
    reference = optimizer(plain.parameters(), lr=0.01)
    for x, y in batches:
        reference.zero_grad()
        mse_loss(plain(x), y).backward()
        reference.step()
    assert mine[3][0].weight is mine[0][0].weight
    torch.testing.assert_close(weights(mine), weights(plain), rtol=0, atol=1e-12)


class Attend(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0]


class Recur(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


def zoo() -> list[nn.Module]:
    torch.manual_seed(0)
    return [
        nn.Embedding(9, 4), nn.Linear(4, 4), nn.ReLU(inplace=True), nn.LayerNorm(4), Attend(),
        nn.Dropout(0.1), Recur(), nn.PReLU(), nn.Conv1d(6, 6, 1), nn.ReLU(inplace=True),
        nn.BatchNorm1d(6), nn.GroupNorm(2, 6), nn.Flatten(), nn.Linear(24, 3),
    ]  # fmt: skip


@each_method
def test_case_10_no_layer_type_is_modified_by_an_inplace_operation(method) -> None:
    g = torch.Generator().manual_seed(0)
    batches = [
        (torch.randint(9, (4, 6), generator=g), torch.randint(3, (4,), generator=g))
        for _ in range(10)
    ]
    layers = zoo()
    before = state(layers)
    adam = lambda named: torch.optim.Adam(named, lr=1e-3)  # noqa: E731
    run = pm.Trainer(layers, cross_entropy, adam, method, len(layers), 2).fit(batches)
    assert run.status == "done"
    # (biases before a norm of the same channels move by rounding alone; weights all move)
    moved = {k for k, v in state(layers).items() if not torch.equal(v, before[k])}
    assert {k for k in before if k.endswith("weight")} <= moved


class Marked(nn.Module):
    """Carries the sample's number beside its features."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, value):
        x, number = value
        return self.body(x), number


@each_method
@pytest.mark.parametrize("n", [1, 3])
def test_case_11_outputs_meet_the_targets_of_their_own_samples(method, n) -> None:
    batches = [
        ((x, torch.arange(7 * k, 7 * k + 7)), (y, torch.arange(7 * k, 7 * k + 7)))
        for k, (x, y) in enumerate(data(7, 7, 7, 7, 7))
    ]
    met = []

    def loss(output, target):
        met.append(output[1])
        assert torch.equal(output[1], target[1])
        return mse_loss(output[0], target[0])

    pm.Trainer([Marked(m) for m in net()], loss, sgd, method, 4, n).fit(batches)
    assert torch.cat(met).tolist() == list(range(35))


def test_case_11_a_message_out_of_turn_is_not_taken() -> None:
    class Swapped(pm.Method):
        def operations(self, stage, stages, microbatches, steps):
            ops = list(super().operations(stage, stages, microbatches, steps))
            if stage == 0 and ops:
                ops[0], ops[1] = ops[1], ops[0]
            return iter(ops)

    trainer = pm.Trainer(net(), mse_loss, sgd, Swapped("gpipe"), 2, 2)
    with pytest.raises(pm.ScheduleError, match=r"deadlock[\s\S]*\[F0\]"):
        trainer.fit(data(6))


class Split(nn.Module):
    def forward(self, ids: Tensor):
        return ids, None, nn.functional.one_hot(ids, WIDTH).double()


class Mix(nn.Module):
    """(integers, None, floats): a frozen weight, a buffer, a trainable weight."""

    def __init__(self, frozen: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(WIDTH, WIDTH).double()
        self.scale = nn.Linear(WIDTH, WIDTH).double().requires_grad_(not frozen)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, value):
        ids, nothing, x = value
        assert nothing is None and ids.dtype == torch.int64
        if self.training:
            self.seen += len(ids)
        return ids, None, self.scale(x) + self.table(ids)


class Take(nn.Module):
    def forward(self, value):
        return value[2].transpose(0, 1)  # a non-contiguous view goes on


class Back(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)[:, 1:]


def mixed() -> list[nn.Module]:
    torch.manual_seed(2)
    return [Split(), Mix(False), Mix(True), Take(), Back(), nn.Linear(WIDTH - 1, WIDTH).double()]


@pytest.mark.parametrize("stages", [1, 3, 6])
@pytest.mark.parametrize("method", ["sequential", "gpipe", "1f1b"])
def test_case_12_integers_tuples_frozen_weights_and_buffers_cross_stages(method, stages) -> None:
    g = torch.Generator().manual_seed(4)
    batches = [(torch.randint(WIDTH, (6,), generator=g), y) for _, y in data(6, 6, 6)]
    mine, plain = mixed(), nn.Sequential(*mixed())
    pm.Trainer(mine, mse_loss, sgd, method, stages).fit(batches)
    trainable = [p for p in plain.parameters() if p.requires_grad]
    reference = torch.optim.SGD(trainable, lr=0.1)
    for x, y in batches:
        reference.zero_grad()
        mse_loss(plain(x), y).backward()
        reference.step()
    got, expected = state(mine), state(plain)
    assert int(got["1.seen"]) == 18
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=0, atol=1e-12)


@each_method
def test_case_12_the_same_model_runs_in_every_method(method) -> None:
    g = torch.Generator().manual_seed(4)
    batches = [(torch.randint(WIDTH, (6,), generator=g), y) for _, y in data(*[6] * 12)]
    mine = mixed()
    before = state(mine)
    run = pm.Trainer(mine, mse_loss, sgd, method, 6, 2).fit(batches)
    assert run.status == "done"
    after = state(mine)
    assert torch.equal(before["2.scale.weight"], after["2.scale.weight"])
    assert not torch.equal(before["1.scale.weight"], after["1.scale.weight"])


class Watched(nn.Module):
    """Remembers (weakly) every output it has made in training."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.made = body, []

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        self.made.append(weakref.ref(out))
        return out

    @property
    def alive(self) -> int:
        return sum(r() is not None for r in self.made)


@each_method
@pytest.mark.parametrize("n", [1, 2])
def test_case_21_live_activations_never_exceed_the_schedule(method, n) -> None:
    layers = [Watched(m) for m in net()]
    steps = 12 // n
    trainer = pm.Trainer(layers, mse_loss, sgd, method, 4, n)
    peaks = [0] * 4
    gc.disable()  # nothing may wait for the collector of reference cycles
    try:
        for run in trainer.chunks(data(*[4] * steps), seconds=0.0):  # noqa: B007
            peaks = [max(p, layer.alive) for p, layer in zip(peaks, layers, strict=True)]
        left = [layer.alive for layer in layers]
    finally:
        gc.enable()
    lists = pm.schedule(method.depth, 4, n, steps, method.t3)
    allowed = pm.simulate(lists).in_flight
    assert all(p <= a for p, a in zip(peaks, allowed, strict=True)), (peaks, allowed)
    assert [s.peak.graphs for s in trainer.stages] == list(allowed)
    assert run.status == "done"
    assert left == [0] * 4


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_case_23_the_split_is_contiguous_complete_and_optimal(stages) -> None:
    g = torch.Generator().manual_seed(0)
    for _ in range(10):
        widths = torch.randint(1, 9, (8,), generator=g).tolist()
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
        trainer = pm.Trainer(layers, mse_loss, sgd, "gpipe", stages)
        held = [[*s.layers] for s in trainer.stages]
        assert [m for part in held for m in part] == layers and all(held)
        costs = [1 + sum(p.numel() for p in m.parameters()) for m in layers]
        cuts = itertools.combinations(range(1, len(layers)), stages - 1)
        best = min(
            max(sum(costs[a:b]) for a, b in itertools.pairwise([0, *cut, len(layers)]))
            for cut in cuts
        )
        mine = list(itertools.accumulate([0, *trainer.blueprint.counts]))
        assert max(sum(costs[a:b]) for a, b in itertools.pairwise(mine)) == best


@pytest.mark.parametrize("stages", [5, [2, 3], [4, 0], [], 0, -1, [2.0, 2], 2.5, "2", None])
def test_case_23_stages_that_do_not_fit_are_refused(stages) -> None:
    with pytest.raises(ValueError, match="stage|layer"):
        pm.Trainer(net(), mse_loss, sgd, "gpipe", stages)


class Poison(torch.optim.SGD):
    """Writes `value` into its weights at its fourth step."""

    value = float("inf")

    def step(self, closure=None):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 4:
            with torch.no_grad():
                self.param_groups[0]["params"][0].fill_(self.value)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("method", ["sequential", "gpipe", "1f1b"])
def test_case_24_a_diverged_run_names_step_and_stage_and_keeps_the_history(method, value) -> None:
    def optimizer(named):
        chosen = Poison(named, lr=0.1) if named[0][0].startswith("1.") else sgd(named)
        chosen.value = value
        return chosen

    calls = []
    layers = net()
    layers[0].register_forward_hook(lambda *_: calls.append(1))
    layers[2] = nn.Identity()  # tanh would hide an infinite input
    layers[1], layers[3] = layers[1][0], layers[3][0]
    trainer = pm.Trainer(layers, mse_loss, optimizer, method, 4)
    run = trainer.fit(data(*[6] * 50))
    step, stage, what = run.diverged
    assert run.status == "diverged" and (step, stage) == (4, 1) and "loss" in what
    assert len(run.losses) == 5 and run.losses[3] < 10 and not run.losses[4] < 1e4
    assert len(calls) == 5, "it stops at once"
    assert all(p.grad is None for m in layers for p in m.parameters())


@each_method
def test_case_24_a_loss_above_the_limit_counts_as_diverged(method) -> None:
    batches = data(*[6] * 20)
    batches[7] = (batches[7][0], batches[7][1] + 1e3)
    run = pm.Trainer(net(), mse_loss, sgd, method, 4, 2, limit=100.0).fit(batches)
    assert run.status == "diverged" and run.diverged[0] == 7 and run.steps == 8
    assert run.losses[-1] > 100 > max(run.losses[:-1])
    assert str(8) in run.note or str(7) in run.note


@each_method
@pytest.mark.parametrize("n", [1, 3])
def test_case_25_the_trace_equals_the_plan(method, n) -> None:
    trainer = pm.Trainer(net(), mse_loss, sgd, method, 4, n)
    *_, run = trainer.chunks(
        data(*[6] * 8), evaluate=data(3), every=3, full_trace=True, seconds=0.001
    )
    plain = pm.schedule(method.depth, 4, n, 8, method.t3)
    for i, ops in enumerate(plain):
        ran = run.trace.operations(i)
        assert [op for op in ran if op.kind != "E"] == list(ops)
        evaluated = [ran[j - 1] for j, op in enumerate(ran) if op.kind == "E"]
        assert [str(op) for op in evaluated] == ["U2", "U5", "U7"]
        at = [str(op) for op in ran if op.kind == "E"]
        assert at == ["E2", "E5", "E7"]
    assert run.trace.count == len(run.trace.events) == sum(len(ops) + 3 for ops in plain)
