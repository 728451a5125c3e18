"""The character model's text, its windows, and its measure in bits."""

import math
import re

import pytest
import torch

from pipemare_edu import tasks
from pipemare_edu.models.search import through
from pipemare_edu.tasks import characters


def test_text_is_deterministic_and_its_sentences_are_true():
    lines = characters.text(400).splitlines()
    assert lines == characters.text(400).splitlines() and len(lines) == 400
    sums = [re.fullmatch(r"(\d+) and (\d+) make (\d+)\.", line) for line in lines]
    numbers = [tuple(map(int, m.groups())) for m in sums if m]
    assert len(numbers) > 50 and all(a + b == c for a, b, c in numbers)
    gifts = [re.fullmatch(r"(\w+) gave (\w+) the (\w+), and \2 took the \3\.", x) for x in lines]
    assert all(m[1] != m[2] for m in gifts if m) and sum(map(bool, gifts)) > 50
    plain = [x for x in lines if x.startswith("the ")]
    assert all(re.search(r" \w+(s \w+[^s]|\w+[^s] \w+s) the ", x) for x in plain)


def test_all_text_is_in_the_vocabulary_and_comes_back():
    text = characters.text()
    assert characters.CODEC.decode(characters.CODEC.encode(text)) == text


def test_targets_are_the_inputs_one_character_later():
    x, y = characters.load()
    assert x.shape == y.shape and x.shape[1] == characters.WINDOW
    assert torch.equal(x[:, 1:], y[:, :-1]) and torch.equal(x[1:, 0], y[:-1, -1])


def test_train_and_test_cover_the_text_in_order():
    task = tasks.get("characters")
    x, _ = characters.load()
    assert torch.equal(torch.cat([task.train[0], task.test[0]]), x)
    assert len(task.test[0]) == len(x) // 10


def test_bits_of_a_model_that_knows_nothing_are_those_of_a_guess():
    target = torch.tensor([[3, 4, 5]])
    assert characters.bits(torch.zeros(1, 3, 8), target).item() == pytest.approx(math.log2(8))


def test_a_later_character_cannot_be_seen():
    torch.manual_seed(0)
    net = tasks.get("characters").setting().layers()
    ids = characters.load()[0][:3].clone()
    out = through(net, ids)
    ids[:, 9] = ids[:, 9] % 40 + 3
    other = through(net, ids)
    torch.testing.assert_close(other[:, :9], out[:, :9], rtol=0, atol=0)
    assert not torch.isclose(other[:, 9:], out[:, 9:]).all(-1).any()
