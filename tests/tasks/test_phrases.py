"""The phrasebook: its grammar, the shipped file, and what becomes of it."""

import re
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from pipemare_edu import tasks
from pipemare_edu.models.search import evaluating, through
from pipemare_edu.tasks import phrases, translation
from pipemare_edu.tasks.task import take

pytest.importorskip("num2words")
from pipemare_edu.tasks import phrasebook  # noqa: E402


def test_the_shipped_file_is_what_the_command_writes():
    shipped = [tuple(line.split("\t")) for line in phrases.FILE.read_text("utf-8").splitlines()]
    assert shipped == phrasebook.pairs()


def test_reading_it_needs_neither_of_the_command_s_libraries():
    code = (
        "import sys; from pipemare_edu.tasks import phrases; phrases.load(); "
        "assert not {'num2words', 'babel'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pairs_are_distinct_and_split_into_train_and_test():
    train, test = phrases.load()
    assert (len(train), len(test)) == (5200, 400)
    assert len({english for english, _ in (*train, *test)}) == 5600
    assert all(len(german) <= phrasebook.LONGEST for _, german in (*train, *test))


TIMES = {
    (3, 0): ("three o'clock", "drei Uhr"), (1, 0): ("one o'clock", "ein Uhr"),
    (3, 5): ("five past three", "fünf nach drei"),
    (3, 15): ("a quarter past three", "Viertel nach drei"),
    (3, 25): ("twenty-five past three", "fünf vor halb vier"),
    (3, 30): ("half past three", "halb vier"), (12, 30): ("half past twelve", "halb eins"),
    (3, 35): ("twenty-five to four", "fünf nach halb vier"),
    (3, 45): ("a quarter to four", "Viertel vor vier"),
    (12, 50): ("ten to one", "zehn vor eins"),
}  # fmt: skip


@pytest.mark.parametrize("time, said", TIMES.items())
def test_the_clock(time, said):
    assert phrasebook.clock(*time) == said


SENTENCES = [  # one of each pattern, in the file
    r"(?m)^(I|he|she|we|my|our|the)\b.* on \w+day\t.* am \w+ \w+ \w+ \w+en$",  # the verb goes last
    r"\tder \w+ Stuhl kostet \w+ Euro",
    r" leaves on \w+ at half past three\tder Zug nach \w+ fährt am \w+ um halb vier ab",
    r"\tam \w+en Mai (muss|kann|werde|wird|darf|soll) \w+( \w+)? den \w+en Stuhl \w+en",
    r" moved to \w+ in nineteen .*\t.* neunzehnhundert\w+ nach \w+ gezogen",
    r"\t.* gibt dem Lehrer (den \w+en|die \w+e|das \w+e) \w+",
    r"\t.*einundzwanzig",
]


@pytest.mark.parametrize("pattern", SENTENCES)
def test_every_pattern_is_there(pattern):
    assert re.search(pattern, phrases.FILE.read_text("utf-8"))


@pytest.mark.parametrize(
    "gender, noun, wanted",
    [("m", "Stuhl", "den alten Stuhl"), ("f", "Karte", "die alte Karte"),
     ("n", "Buch", "das alte Buch")],
)  # fmt: skip
def test_only_the_masculine_changes_in_the_accusative(gender, noun, wanted):
    assert phrasebook.accusative(gender, "alt", noun) == wanted


def test_weekdays_and_months_are_in_the_order_of_the_calendar():
    assert phrasebook.calendar("days", "de")[0] == "Montag"
    assert phrasebook.calendar("days", "en")[6] == "Sunday"
    assert phrasebook.calendar("months", "de")[:3] == ("Januar", "Februar", "März")
    assert phrasebook.calendar("months", "en")[11] == "December"


def test_every_pair_comes_back_from_its_ids():
    train, test = phrases.load()
    both = phrases.languages(train)
    assert len(both.source) == 512
    for text in (text for pair in (*train, *test) for text in pair):
        ids = both.source.encode(text)
        assert both.source.decode(ids) == text and len(ids) < both.longest


def test_padding_of_the_source_and_later_words_cannot_be_seen():
    task = tasks.get("phrases")
    torch.manual_seed(0)
    net = [layer.double() for layer in task.setting().layers()]
    (source, given), _ = take(task.train, torch.arange(12))
    short = int(source.ne(0).sum(1).argmin())
    length = int(source[short].ne(0).sum())
    assert length < source.shape[1]
    with torch.no_grad(), evaluating(net):
        out = through(net, (source, given))
        assert_close(through(net, (source[[short], :length], given[[short]])), out[[short]])
        given[:, 4] = given[:, 4] % 511 + 1
        assert_close(through(net, (source, given))[:, :4], out[:, :4], rtol=0, atol=0)


def test_bleu_is_sacrebleu_s_and_says_which():
    wanted = ["der alte Stuhl kostet zwei Euro", "das Haus"]
    assert translation.bleu_score(wanted, wanted) == pytest.approx(100.0)
    worse = translation.bleu_score(["der alte Tisch kostet zwei Euro", "das Haus"], wanted)
    assert 10 < worse < 90
    assert translation.matches(["der alte Tisch kostet zwei Euro", "das Haus"], wanted) == 50.0
    assert translation.signature().startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
