"""Writes phrases.txt, the pairs of the task "phrases": python -m pipemare_edu.tasks.phrasebook

The file ships with the package, so that a run needs neither of the libraries that this command
needs: num2words and Babel, which know numbers, weekdays and months in both languages (installed
with the test extra).  Sentences are drawn by a seeded program from six patterns, chosen for what
word-by-word translation gets wrong:

    market   the verb goes last, time before object     muss am Montag vier Bücher kaufen
    price    the article and gender                     das alte Haus kostet ...
    train    separable verbs, the German clock          fährt am Montag um halb vier ab
    date     inversion, accusative, ordinal numbers     am dritten Mai muss ich den alten ...
    move     year before place, participle last         ist neunzehnhundertelf nach Bonn gezogen
    gift     dative before accusative                   gibt dem Lehrer den neuen Stuhl

and numbers stand in the inverted order of German: einundzwanzig.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..trainer.files import write_atomically

FILE = Path(__file__).with_name("phrases.txt")
LONGEST = 58  # letters of a German sentence: so much a small Transformer learns in a minute

# I, he or she, they
MODALS = {
    "must": ("muss", "muss", "müssen"),
    "can": ("kann", "kann", "können"),
    "will": ("werde", "wird", "werden"),
    "may": ("darf", "darf", "dürfen"),
    "should": ("soll", "soll", "sollen"),
}
BE, GIVE = ("bin", "ist", "sind"), ("gebe", "gibt", "geben")
SUBJECTS = (
    ("I", "ich", 0), ("he", "er", 1), ("she", "sie", 1), ("we", "wir", 2),
    ("my brother", "mein Bruder", 1), ("our aunt", "unsere Tante", 1),
    ("the doctor", "der Arzt", 1), ("the guests", "die Gäste", 2),
)  # fmt: skip
VERBS = (
    ("buy", "kaufen"), ("sell", "verkaufen"), ("find", "finden"), ("fetch", "holen"),
    ("paint", "malen"), ("order", "bestellen"), ("pay for", "bezahlen"), ("look for", "suchen"),
)  # fmt: skip
THINGS = (  # gender and singular, plural
    ("book", "n", "Buch", "books", "Bücher"), ("chair", "m", "Stuhl", "chairs", "Stühle"),
    ("ticket", "f", "Karte", "tickets", "Karten"), ("house", "n", "Haus", "houses", "Häuser"),
    ("coat", "m", "Mantel", "coats", "Mäntel"), ("flower", "f", "Blume", "flowers", "Blumen"),
    ("picture", "n", "Bild", "pictures", "Bilder"), ("table", "m", "Tisch", "tables", "Tische"),
    ("bottle", "f", "Flasche", "bottles", "Flaschen"),
)  # fmt: skip
ADJECTIVES = (
    ("old", "alt"), ("new", "neu"), ("small", "klein"), ("big", "groß"), ("red", "rot"),
    ("cheap", "billig"), ("good", "gut"),
)  # fmt: skip
PERSONS = (
    ("teacher", "m", "Lehrer"), ("neighbour", "f", "Nachbarin"), ("child", "n", "Kind"),
    ("baker", "m", "Bäcker"), ("sister", "f", "Schwester"), ("girl", "n", "Mädchen"),
)  # fmt: skip
CITIES = (
    ("Berlin", "Berlin"), ("Munich", "München"), ("Vienna", "Wien"), ("Cologne", "Köln"),
    ("Zurich", "Zürich"), ("Geneva", "Genf"),
)  # fmt: skip
DEPARTURES = (  # English, German verb, what is separated from it
    ("the train to {} leaves", "der Zug nach {} fährt", "ab"),
    ("the train from {} arrives", "der Zug aus {} kommt", "an"),
    ("the tour of {} begins", "die Tour durch {} fängt", "an"),
)
NOMINATIVE = {"m": "der", "f": "die", "n": "das"}
ACCUSATIVE = NOMINATIVE | {"m": "den"}
DATIVE = {"m": "dem", "f": "der", "n": "dem"}


@cache
def number(n: int, language: str, form: str = "cardinal") -> str:
    """n in words: "cardinal", "ordinal" or "year"."""
    from num2words import num2words

    return num2words(n, lang=language, to=form)


@cache
def calendar(kind: str, language: str) -> tuple[str, ...]:
    """The names of the "days" or "months", the first at 0."""
    from babel import Locale

    names = getattr(Locale(language), kind)["format"]["wide"]
    return tuple(names[key] for key in sorted(names))


def clock(hour: int, minute: int) -> tuple[str, str]:
    """A time of a twelve-hour clock, minutes in fives.  German counts the half hour towards the
    hour that comes, and the minutes beside it from the half hour."""
    following = hour % 12 + 1
    (now, then), (jetzt, dann) = (
        (number(hour, language), number(following, language)) for language in ("en", "de")
    )
    english = {0: f"{now} o'clock", 15: f"a quarter past {now}", 30: f"half past {now}",
               45: f"a quarter to {then}"}  # fmt: skip
    german = {0: f"{'ein' if hour == 1 else jetzt} Uhr", 15: f"Viertel nach {jetzt}",
              25: f"fünf vor halb {dann}", 30: f"halb {dann}", 35: f"fünf nach halb {dann}",
              45: f"Viertel vor {dann}"}  # fmt: skip
    if minute < 30:
        other = f"{number(minute, 'en')} past {now}", f"{number(minute, 'de')} nach {jetzt}"
    else:
        left = 60 - minute
        other = f"{number(left, 'en')} to {then}", f"{number(left, 'de')} vor {dann}"
    return english.get(minute, other[0]), german.get(minute, other[1])


@dataclass
class Phrasebook:
    """Draws pairs (English, German)."""

    random: np.random.RandomState

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.random.randint(len(options))]

    def day(self) -> tuple[str, str]:
        k = self.random.randint(7)
        return calendar("days", "en")[k], calendar("days", "de")[k]

    def clause(self) -> tuple[str, str, str, str, str, str]:
        """Subject, modal and verb of one sentence in both languages."""
        (who, wer, form), (verb, tun) = self.pick(SUBJECTS), self.pick(VERBS)
        modal = self.pick(list(MODALS))
        return who, modal, verb, wer, MODALS[modal][form], tun

    def market(self) -> tuple[str, str]:
        who, modal, verb, wer, muss, tun = self.clause()
        day, tag = self.day()
        thing, n = self.pick(THINGS), self.random.randint(2, 100)
        return (
            f"{who} {modal} {verb} {number(n, 'en')} {thing[3]} on {day}",
            f"{wer} {muss} am {tag} {number(n, 'de')} {thing[4]} {tun}",
        )

    def price(self) -> tuple[str, str]:
        (adjective, wie), (thing, gender, ding, *_) = self.pick(ADJECTIVES), self.pick(THINGS)
        n = self.random.randint(2, 1000)
        n += n % 100 == 1  # one hundred and one euros would be "einhundertein Euro"
        return (
            f"the {adjective} {thing} costs {number(n, 'en')} euros",
            f"{NOMINATIVE[gender]} {wie}e {ding} kostet {number(n, 'de')} Euro",
        )

    def train(self) -> tuple[str, str]:
        (leaves, fährt, ab), (city, stadt) = self.pick(DEPARTURES), self.pick(CITIES)
        day, tag = self.day()
        time, zeit = clock(1 + self.random.randint(12), 5 * self.random.randint(12))
        return (
            f"{leaves.format(city)} on {day} at {time}",
            f"{fährt.format(stadt)} am {tag} um {zeit} {ab}",
        )

    def date(self) -> tuple[str, str]:
        who, modal, verb, wer, muss, tun = self.clause()
        (adjective, wie), (thing, gender, ding, *_) = self.pick(ADJECTIVES), self.pick(THINGS)
        n, month = 1 + self.random.randint(31), self.random.randint(12)
        months = calendar("months", "en")[month], calendar("months", "de")[month]
        return (
            f"on the {number(n, 'en', 'ordinal')} of {months[0]} "
            f"{who} {modal} {verb} the {adjective} {thing}",
            f"am {number(n, 'de', 'ordinal')}n {months[1]} "
            f"{muss} {wer} {accusative(gender, wie, ding)} {tun}",
        )

    def move(self) -> tuple[str, str]:
        (who, wer, form), (city, stadt) = self.pick(SUBJECTS), self.pick(CITIES)
        year = self.random.randint(1901, 2000)
        return (
            f"{who} moved to {city} in {number(year, 'en', 'year')}",
            f"{wer} {BE[form]} {number(year, 'de', 'year')} nach {stadt} gezogen",
        )

    def gift(self) -> tuple[str, str]:
        (who, wer, form), (person, kind, mensch) = self.pick(SUBJECTS), self.pick(PERSONS)
        (adjective, wie), (thing, gender, ding, *_) = self.pick(ADJECTIVES), self.pick(THINGS)
        return (
            f"{who} {'gives' if form == 1 else 'give'} the {adjective} {thing} to the {person}",
            f"{wer} {GIVE[form]} {DATIVE[kind]} {mensch} {accusative(gender, wie, ding)}",
        )


def accusative(gender: str, adjective: str, noun: str) -> str:
    """As the object of a sentence: only the masculine differs from its nominative."""
    return f"{ACCUSATIVE[gender]} {adjective}{'en' if gender == 'm' else 'e'} {noun}"


def pairs(count: int = 5600, seed: int = 0) -> list[tuple[str, str]]:
    """`count` pairs (English, German), no English sentence twice."""
    book = Phrasebook(np.random.RandomState(seed))
    patterns = [book.market, book.price, book.train, book.date, book.move, book.gift]
    found: dict[str, str] = {}
    while len(found) < count:
        english, german = book.pick(patterns)()
        if len(german) <= LONGEST:
            found.setdefault(english, german)
    return list(found.items())


if __name__ == "__main__":
    write_atomically(FILE, "".join(f"{a}\t{b}\n" for a, b in pairs()).encode())
