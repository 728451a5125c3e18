"""Shuffled minibatches, and the numbers of every setting."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from pipemare_edu import tasks
from pipemare_edu.tasks.task import Shuffled, accuracy, adam, sgd_cosine, take
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


def rates(build, steps):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer, scheduler = build([("weight", weight)], 0.4, steps)
    found = []
    for _ in range(steps + 1):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found, optimizer


def test_adam_rises_to_its_peak_and_falls_to_zero():
    found, optimizer = rates(adam(0.2), 20)
    assert found[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert found[4:] == pytest.approx([0.4 * (20 - k) / 16 for k in range(4, 21)])
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.98)


def test_adam_falls_with_the_inverse_square_root():
    found, _ = rates(adam(0.2, "inverse sqrt"), steps=20)
    assert found[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert found[15] == pytest.approx(0.4 * (4 / 16) ** 0.5)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_adam_has_a_rate_in_the_shortest_runs(steps):
    assert all(0 < rate <= 0.4 for rate in rates(adam(1 / 16), steps)[0][:steps])


def test_inputs_of_several_parts_are_taken_together():
    inputs, targets = take(((DATA[0], DATA[1] * 2), DATA[1]), torch.tensor([3, 1]))
    assert [part.flatten().tolist() for part in inputs] == [[3.0, 1.0], [6, 2]]
    assert targets.tolist() == [3, 1]


def test_tests_are_cut_into_batches_in_order():
    task = replace(tasks.get("digits"), test=DATA, at_once=10)
    assert [len(y) for _, y in task.tests()] == [10, 10, 3]
    assert torch.cat([y for _, y in task.tests()]).tolist() == list(range(23))


LAZY = """
import sys
import pipemare_edu.tasks as tasks
loaded = {m for m in sys.modules if m.startswith("pipemare_edu.tasks.")}
assert loaded == {"pipemare_edu.tasks.task"}, loaded
tasks.get("words")
heavy = {"tokenizers", "sacrebleu", "num2words", "babel", "sklearn"} & set(sys.modules)
assert not heavy, heavy
others = {f"pipemare_edu.tasks.{n}" for n in ("digits", "shapes", "phrases", "characters")}
assert not others & set(sys.modules)
"""


def test_a_task_loads_no_other_task_and_no_library_that_it_does_not_need():
    subprocess.run([sys.executable, "-c", LAZY], check=True)


SETTINGS = [
    pytest.param(task, setting, id=f"{task}-{network}")
    for task in tasks.names()
    for network, setting in tasks.get(task).settings.items()
]


@pytest.mark.parametrize("task, setting", SETTINGS)
def test_settings_are_sane(task, setting):
    layers = setting.layers()
    assert sum(stage_counts(layers, setting.stages)) == len(layers) >= setting.stages > 1
    assert 1 <= setting.microbatches <= setting.batch <= tasks.get(task).samples
    assert 0 < setting.fixes.t3 < setting.steps
    assert 0 < setting.fixes.t1 <= setting.steps - setting.fixes.t3
    assert 0 < setting.fixes.t2 < 1
    assert setting.rate > 0 and setting.about


@pytest.mark.parametrize("task, setting", SETTINGS)
def test_a_network_fits_its_data_and_its_loss(task, setting):
    chosen = tasks.get(task)
    inputs, targets = take(chosen.train, torch.arange(setting.batch))
    output = torch.nn.Sequential(*setting.layers())(inputs)
    assert chosen.loss(output, targets).isfinite()
    assert all(metric(output, targets).isfinite() for metric in chosen.metrics.values())
    if targets.is_floating_point():
        assert output.shape == targets.shape
    else:
        everything = take(chosen.train, torch.arange(chosen.samples))[1]
        assert output.shape[:-1] == targets.shape
        assert output.shape[-1] > int(everything.max())


@pytest.mark.parametrize("name", tasks.names())
def test_a_score_is_measured(name):
    """At evaluations, or once after the drain."""
    task = tasks.get(name)
    assert task.name == name
    assert task.score in task.metrics or (task.generate and task.score == "bleu_beam")


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
