"""Text and numbers: nothing is lost, padding counts for nothing."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from pipemare_edu.tasks.bpe import BPE
from pipemare_edu.tasks.text import (
    END,
    PAD,
    Sentences,
    Symbols,
    TokenLoss,
    exact,
    token_accuracy,
)

ROWS = [[5, 6, 7], [8], [9, 10]]


def test_symbols_come_back_and_the_longest_that_fits_is_read():
    codec = Symbols(["ab", "a", "b", "abc", "\n", "."])
    assert [codec.symbols[i] for i in codec.encode("abcab\na.b")] == "abc ab \n a . b".split(" ")
    for text in ("", "abcab\na.b", "....", "bbaabc"):
        assert codec.decode(codec.encode(text)) == text
    assert len(codec) == 9 and min(codec.encode("abc.")) > END


def test_text_outside_the_symbols_is_refused_with_its_place():
    with pytest.raises(ValueError, match="'abx' from 'x' on"):
        Symbols(["a", "b"]).encode("abx")


TEXTS = ["the old house", "das alte Haus", "die Äpfel, zwei Stühle", "halb vier!"] * 3


def test_pieces_come_back_as_the_text():
    codec = BPE(TEXTS, size=60)
    assert 4 < len(codec) <= 60
    for text in [*TEXTS, "", "a house", "das  Haus", "Haus das alte?".replace("?", "!")]:
        ids = codec.encode(text)
        assert codec.decode(ids) == text and all(END < i < len(codec) for i in ids)


def test_frequent_words_become_one_piece_and_learning_is_deterministic():
    codec = BPE(TEXTS, size=100)
    assert "▁Haus" in codec.pieces("das alte Haus")
    again = BPE(TEXTS, size=100)
    assert [codec.encode(t) for t in TEXTS] == [again.encode(t) for t in TEXTS]


def test_a_character_that_was_not_learned_is_unknown_and_says_so():
    codec = BPE(TEXTS, size=60)
    assert codec.decode(codec.encode("die %")) == "die <unk>"


@pytest.mark.parametrize("part", [[0, 1, 2], [1], [2, 0]])
def test_rows_taken_are_padded_to_the_longest_of_them(part):
    taken = Sentences(ROWS)[torch.tensor(part)]
    longest = max(len(ROWS[i]) for i in part)
    assert taken.dtype == torch.int64
    assert taken.tolist() == [ROWS[i] + [PAD] * (longest - len(ROWS[i])) for i in part]


def test_a_slice_takes_the_same_rows():
    rows = Sentences(ROWS)
    assert len(rows) == 3
    assert torch.equal(rows[1:], rows[torch.tensor([1, 2])])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_is_the_mean_over_what_is_not_padding(smoothing):
    torch.manual_seed(0)
    loss, output = TokenLoss(smoothing), torch.randn(3, 4, 6)
    target = torch.tensor([[3, 4, 2, 0], [5, 2, 0, 0], [2, 0, 0, 0]])
    words = [
        cross_entropy(output[r, t], target[r, t], label_smoothing=smoothing)
        for r in range(3)
        for t in range(4)
        if target[r, t] != PAD
    ]
    assert loss.count(target) == len(words) == 6
    torch.testing.assert_close(loss(output, target), torch.stack(words).mean())


def test_loss_does_not_see_outputs_at_padding():
    target = torch.tensor([[3, 2, 0]])
    output = torch.zeros(1, 3, 5, requires_grad=True)
    TokenLoss(0.1)(output, target).backward()
    assert output.grad[0, 2].eq(0).all() and output.grad[0, :2].ne(0).all()


def test_metrics_count_words_and_rows():
    target = torch.tensor([[3, 4, 2], [4, 2, 0]])
    guess = torch.tensor([[3, 3, 2], [4, 2, 4]])  # one word of five wrong; what stands at padding
    output = torch.nn.functional.one_hot(guess, 5).float()
    assert token_accuracy(output, target).item() == pytest.approx(80.0)
    assert exact(output, target).item() == 50.0
