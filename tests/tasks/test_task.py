"""Shuffled minibatches, and the numbers of every setting."""

import pytest
import torch

from pipemare_edu import tasks
from pipemare_edu.tasks.task import Shuffled, accuracy, sgd_cosine
from pipemare_edu.trainer.trainer import stage_counts

DATA = torch.arange(23.0)[:, None], torch.arange(23)


def passes(seed, count=3, batch=5):
    """[[targets of a minibatch] of a pass]."""
    batches = Shuffled(DATA, batch, seed)
    return [[y.tolist() for _, y in batches] for _ in range(count)]


def test_a_pass_is_a_permutation_less_the_short_last_minibatch():
    for one in passes(seed=0):
        assert [len(batch) for batch in one] == [5, 5, 5, 5]
        drawn = sum(one, [])
        assert len(set(drawn)) == 20 and set(drawn) <= set(range(23))


def test_a_batch_size_that_divides_uses_every_sample_once():
    data = DATA[0][:20], DATA[1][:20]
    assert sorted(sum((y.tolist() for _, y in Shuffled(data, 5, 0)), [])) == list(range(20))


def test_inputs_stay_with_their_targets():
    for x, y in Shuffled(DATA, 5, seed=1):
        assert x[:, 0].tolist() == y.tolist()


def test_the_order_depends_on_seed_and_pass_and_on_nothing_else():
    first = passes(seed=1)
    torch.manual_seed(99)  # the global state is neither read ...
    state = torch.get_rng_state()
    assert passes(seed=1) == first
    assert torch.equal(torch.get_rng_state(), state)  # ... nor moved
    assert passes(seed=2) != first
    assert first[0] != first[1] != first[2]


def test_length_is_the_number_of_full_minibatches():
    assert len(Shuffled(DATA, 5, 0)) == 4 == len(list(Shuffled(DATA, 5, 0)))


def test_accuracy_is_the_percentage_of_right_classes():
    output = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 4.0], [1.0, 0.0]])
    assert accuracy(output, torch.tensor([0, 1, 0, 1])).item() == 50.0


def test_cosine_halves_the_rate_half_way_and_ends_at_zero():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer, scheduler = sgd_cosine([("weight", weight)], 0.4, 10)
    rates = []
    for _ in range(10):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates[0] == 0.4
    assert rates[5] == pytest.approx(0.2)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)
    assert not optimizer.param_groups[0]["momentum"]


SETTINGS = [
    pytest.param(task, setting, id=f"{task}-{network}")
    for task in tasks.names()
    for network, setting in tasks.get(task).settings.items()
]


@pytest.mark.parametrize("task, setting", SETTINGS)
def test_settings_are_sane(task, setting):
    layers = setting.layers()
    train, _ = tasks.get(task).train
    assert sum(stage_counts(layers, setting.stages)) == len(layers) >= setting.stages > 1
    assert 1 <= setting.microbatches <= setting.batch <= len(train)
    assert 0 < setting.fixes.t3 < setting.steps
    assert 0 < setting.fixes.t1 <= setting.steps - setting.fixes.t3
    assert 0 < setting.fixes.t2 < 1
    assert setting.rate > 0 and setting.about


@pytest.mark.parametrize("task, setting", SETTINGS)
def test_a_network_fits_its_data_and_its_loss(task, setting):
    chosen = tasks.get(task)
    inputs, targets = (part[: setting.batch] for part in chosen.train)
    output = torch.nn.Sequential(*setting.layers())(inputs)
    assert chosen.loss(output, targets).isfinite()
    assert chosen.metrics[chosen.score](output, targets).isfinite()
    if targets.is_floating_point():
        assert output.shape == targets.shape
    else:
        assert output.shape == (setting.batch, int(chosen.train[1].max()) + 1)


@pytest.mark.parametrize("name", ["digit", "regresion"])
def test_an_unknown_task_is_refused_with_the_close_match(name):
    close = {"digit": "digits", "regresion": "regression"}[name]
    with pytest.raises(ValueError, match=f"unknown task '{name}': did you mean '{close}'"):
        tasks.get(name)


def test_an_unknown_network_is_refused_with_the_close_match():
    with pytest.raises(ValueError, match="network of digits 'residul': did you mean 'residual'"):
        tasks.get("digits").setting("residul")


def test_no_network_named_is_the_first():
    digits = tasks.get("digits")
    assert digits.setting() is digits.settings["mlp"]
