"""Greedy and beam search: known answers, brute force, and what a Transformer must not see."""

import itertools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from pipemare_edu.models.search import evaluating, search, through, translate
from pipemare_edu.models.transformer import language_model, transformer

PAD, START, END, A, B = range(5)


def rating(table):
    """Logits from {beginning: {word: probability}}; a beginning is the words after the start."""

    def rate(ids):
        out = torch.full((len(ids), 5), -torch.inf)
        for row, words in enumerate(ids[:, 1:].tolist()):
            for word, p in table.get(tuple(words), {END: 1.0}).items():
                out[row, word] = torch.tensor(p).log()
        return out

    return rate


TRAP = {  # the likeliest first word leads to worse sentences: 0.6 * 0.5 < 0.4 * 0.9
    (): {A: 0.6, B: 0.4},
    (A,): {A: 0.5, B: 0.5},
    (B,): {A: 0.9, B: 0.1},
}


def test_greedy_takes_the_likeliest_word_and_a_beam_the_likeliest_sentence():
    greedy = search(rating(TRAP), 1, START, END, longest=5)
    assert greedy.tolist()[0][0] == A
    assert search(rating(TRAP), 1, START, END, longest=5, beam=2).tolist() == [[B, A, END]]


def test_a_sentence_that_has_ended_waits_as_padding():
    table = {(): {A: 0.5, END: 0.5}, (A,): {B: 1.0}}
    found = search(rating(table), 1, START, END, longest=5, beam=2, penalty=0.0)
    assert found.tolist() in ([[END, PAD, PAD]], [[A, B, END]])  # equally likely
    table[()] = {A: 0.4, END: 0.6}
    assert search(rating(table), 1, START, END, 5, 2, penalty=0.0).tolist() == [[END, PAD, PAD]]


def test_the_length_penalty_favours_longer_sentences():
    table = {(): {A: 0.48, END: 0.52}, (A,): {B: 1.0}}
    assert search(rating(table), 1, START, END, 5, 2, penalty=0.0)[0, 0] == END
    assert search(rating(table), 1, START, END, 5, 2, penalty=1.0).tolist() == [[A, B, END]]


def test_a_search_stops_at_the_longest_without_an_end():
    endless = {(): {A: 1.0}, (A,): {A: 1.0}, (A, A): {B: 1.0}}
    assert search(rating(endless), 1, START, END, longest=3).tolist() == [[A, A, B]]


def test_a_wide_beam_finds_what_trying_every_sentence_finds():
    """Every sentence of up to 4 words, probabilities drawn at random, three rows at once."""
    torch.manual_seed(0)
    tables = torch.randn(3, 4, 5, 5)  # (row, place, word before, word)
    tables[..., [PAD, START]] = -torch.inf
    beam = 4**3

    def rate(ids):
        rows = torch.arange(len(ids)) // beam
        return tables[rows, ids.shape[1] - 1, ids[:, -1]]

    def probability(row, words):
        logs = tables.log_softmax(-1)
        places = zip(itertools.count(), [START, *words], words, strict=False)
        return sum(logs[row, t, before, word].item() for t, before, word in places)

    found = search(rate, 3, START, END, longest=4, beam=beam, penalty=0.0).tolist()
    for row in range(3):
        whole = [
            (*words, END)[:4] for n in range(5) for words in itertools.product((A, B), repeat=n)
        ]
        best = max((probability(row, words), words) for words in whole)[1]
        assert tuple(i for i in found[row] if i != PAD) == best


@pytest.fixture
def net():
    torch.manual_seed(0)
    return transformer(11, 7, width=8, heads=2, hidden=16, encoder=1, decoder=1, dropout=0.5)


SOURCE = torch.tensor([[3, 4, 5, 2], [6, 2, 0, 0]])


def test_greedy_translation_is_the_argmax_of_the_whole_network_word_by_word(net):
    found = translate(net, SOURCE, START, END, longest=6)
    for source, words in zip(SOURCE, found.tolist(), strict=True):
        ids = [START]
        with torch.no_grad(), evaluating(net):
            while len(ids) < 7 and ids[-1] != END:
                out = through(net, (source[None], torch.tensor([ids])))[0, -1]
                out[PAD] = -torch.inf  # padding is no word
                ids.append(int(out.argmax()))
        assert [i for i in words if i != PAD] == ids[1:]


@pytest.mark.parametrize("beam", [1, 3])
def test_rows_are_translated_as_if_alone_and_padding_changes_nothing(net, beam):
    together = translate(net, SOURCE, START, END, longest=6, beam=beam)
    alone = translate(net, SOURCE[1:, :2], START, END, longest=6, beam=beam)[0]
    assert together[1, : len(alone)].tolist() == alone.tolist()
    assert not together[1, len(alone) :].any()


def test_layers_without_a_decoder_are_refused():
    with pytest.raises(ValueError, match="no decoder"):
        translate(language_model(7, width=8, heads=2), SOURCE, START, END, longest=4)


def test_layers_are_left_in_their_modes_and_draw_nothing(net):
    net[0].eval()
    modes = [m.training for layer in net for m in layer.modules()]
    state = torch.get_rng_state()
    first = translate(net, SOURCE, START, END, longest=4, beam=2)
    assert torch.equal(first, translate(net, SOURCE, START, END, longest=4, beam=2))
    assert modes == [m.training for layer in net for m in layer.modules()]
    assert torch.equal(torch.get_rng_state(), state)


def test_modes_come_back_after_an_error():
    layer = nn.Dropout(0.5)
    with pytest.raises(ZeroDivisionError), evaluating([layer]):
        assert not layer.training
        1 / 0  # noqa: B018
    assert layer.training


def test_the_encoder_runs_once_and_its_memory_is_the_network_s(net):
    first = next(j for j, layer in enumerate(net) if type(layer).__name__ == "Target")
    calls = []
    net[0].register_forward_hook(lambda *_: calls.append(1))
    translate(net, SOURCE, START, END, longest=4)
    assert len(calls) == 1
    with torch.no_grad(), evaluating(net):
        a = through(net[:first], (SOURCE, SOURCE))[0]
        b = through(net[:first], (SOURCE, torch.ones(2, 1, dtype=torch.long)))[0]
    assert_close(a, b, rtol=0, atol=0)
