"""German number words: the grammar, the ids, the masks, and training that equals plain PyTorch."""

import copy
from itertools import islice

import pytest
import torch
from torch import nn

import pipemare_edu as pm
from pipemare_edu import tasks
from pipemare_edu.models.search import through
from pipemare_edu.tasks import words
from pipemare_edu.tasks.task import Shuffled, take
from pipemare_edu.tasks.text import END, PAD, START
from pipemare_edu.training import prepare

KNOWN = {
    0: "null", 1: "eins", 7: "sieben", 12: "zwölf", 16: "sechzehn", 17: "siebzehn", 20: "zwanzig",
    21: "einundzwanzig", 30: "dreißig", 77: "siebenundsiebzig", 100: "einhundert",
    101: "einhunderteins", 1000: "eintausend", 1001: "eintausendeins",
    1111: "eintausendeinhundertelf",
    4321: "viertausenddreihunderteinundzwanzig", 9999: "neuntausendneunhundertneunundneunzig",
}  # fmt: skip


@pytest.mark.parametrize("n, word", KNOWN.items())
def test_known_number_words(n, word):
    assert words.german(n) == word


def test_all_words_are_num2words_s():
    num2words = pytest.importorskip("num2words").num2words
    assert all(words.german(n) == num2words(n, lang="de") for n in range(10000))


def test_words_and_digits_come_back_from_their_ids():
    source, target, longest = (
        words.LANGUAGES.source, words.LANGUAGES.target, words.LANGUAGES.longest,
    )  # fmt: skip
    for n in range(10000):
        word = words.german(n)
        assert source.decode(source.encode(word)) == word
        assert target.decode(target.encode(str(n))) == str(n)
        assert len(target.encode(str(n))) < longest


def test_pieces_are_the_ones_a_reader_sees():
    codec = words.LANGUAGES.source
    pieces = [codec.symbols[i] for i in codec.encode(words.german(4321))]
    assert pieces == "vier tausend drei hundert ein und zwanzig".split()


def test_data_are_deterministic_and_disjoint():
    train, test = words.load()
    assert words.load() == (train, test)
    assert (len(train), len(test)) == (8500, 500)
    assert len({*train, *test}) == 9000


def test_the_decoder_is_given_the_target_one_token_late():
    (source, given), wanted = take(tasks.get("words").train, torch.arange(6))
    assert given[:, 0].eq(START).all()
    for a, b in zip(given.tolist(), wanted.tolist(), strict=True):
        assert [i for i in a if i != PAD][1:] == [i for i in b if i != PAD][:-1]
        assert [i for i in b if i != PAD][-1] == END
    assert source.shape[0] == 6 and source.ne(PAD).any(1).all()


def test_a_later_digit_cannot_be_seen():
    torch.manual_seed(0)
    net = tasks.get("words").setting().layers()
    (source, given), _ = take(tasks.get("words").train, torch.arange(8))
    out = through(net, (source, given))
    changed = given.clone()
    changed[:, 3] = (given[:, 3] + 1) % 13
    other = through(net, (source, changed))
    torch.testing.assert_close(other[:, :3], out[:, :3], rtol=0, atol=0)
    assert not torch.isclose(other[:, 3], out[:, 3]).all(-1).any()


def test_synchronous_training_is_plain_pytorch_s_over_words_that_are_not_padding():
    """Three steps with two unequal microbatches, in float64 (in float32 Adam makes rounding errors
    of gradients that should be zero as large as the rate)."""
    task, setting = tasks.get("words"), tasks.get("words").setting()
    torch.manual_seed(0)
    layers = [layer.double() for layer in setting.layers()]
    net = nn.Sequential(*copy.deepcopy(layers))
    batches = list(islice(Shuffled(task.train, 7, seed=0), 3))
    optimizer, schedule = setting.optimizer(net.parameters(), setting.rate, 3)
    losses = []
    for inputs, target in batches:
        optimizer.zero_grad()
        loss = task.loss(net(inputs), target)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
        schedule.step()
    trainer = pm.Trainer(
        layers, task.loss, lambda pairs: setting.optimizer(pairs, setting.rate, 3),
        method="gpipe", stages=12, microbatches=2,
    )  # fmt: skip
    assert trainer.fit(batches).losses == pytest.approx(losses, rel=1e-9)
    ours = [p.detach() for layer in trainer.layers for p in layer.parameters()]
    torch.testing.assert_close(ours, [p.detach() for p in net.parameters()], rtol=1e-6, atol=1e-8)


def test_a_short_run_ends_with_generated_exact_match_equal_to_the_teacher_forced_one():
    """The claim in `exact`: greedy search writes what teacher forcing gets right."""
    run = pm.train("words", method="gpipe", steps=150, seed=3, eval_every=150)
    assert run.status == "done"
    [(step, forced)], [(at, greedy)] = run.metrics["exact"], run.metrics["exact_greedy"]
    assert step == at == 150
    assert 0 < greedy == pytest.approx(forced, abs=0.2)
    assert run.metrics["exact_beam"][0][1] >= 0


def test_a_trained_network_translates_words_as_they_are_typed():
    job = prepare("words", "gpipe", steps=2)
    job.fit()
    out = words.LANGUAGES.translate(job.trainer.layers, ["eins", "viertausendzwölf"], beam=2)
    assert len(out) == 2 and all(set(text) <= set("0123456789") for text in out)
    with pytest.raises(ValueError, match="'fourty' from 'fourty' on"):
        words.LANGUAGES.translate(job.trainer.layers, ["fourty"])


def test_a_run_that_is_stopped_generates_nothing():
    job = prepare("words", "gpipe", steps=50)
    for run in job.chunks(seconds=0.01):
        run.cancel()
    assert run.status == "cancelled" and "exact_greedy" not in run.metrics
