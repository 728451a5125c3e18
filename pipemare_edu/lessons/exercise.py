"""An exercise as a value, and the judgement of an answer.

An answer is judged by properties: statements that any right answer must fulfil, tried on small
random cases or on the learner's own run.  Nobody's text is compared with anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from .notes import Note

ACCEPTED = ("right", "over the target")
_TONES = {"right": "good", "over the target": "nearly", "wrong": "bad", "not attempted": "plain"}


@dataclass(frozen=True)
class Property:
    """A statement about an answer.

    says   the statement, to follow "an answer is right only if"
    fault  (answer, *given) -> what contradicts the statement, or "" if nothing does
    """

    says: str
    fault: Callable[..., str]


@dataclass(frozen=True)
class Exercise:
    """An exercise, as check, hint, use and solution need it.

    id          "<lesson>.<number>"
    expects     what kind of thing an answer is, in words
    properties  an answer is right if all hold; they are tried in this order
    hints       three, each saying more
    reference   (*given) -> the reference answer; the answer itself if that is a function
    target      a right answer that misses it is right but over the target
    function    whether an answer is a function
    read        puts an answer in the one form that the properties look at; ValueError, with a
                sentence for the learner, if it cannot
    given       the name, in the lesson, of what the answer is about
    """

    id: str
    expects: str
    properties: Sequence[Property]
    hints: tuple[str, str, str]
    reference: Callable[..., Any]
    target: Property | None = None
    function: bool = False
    read: Callable[[Any], Any] = lambda answer: answer
    given: str = ""

    def answer(self, *given: Any) -> Any:
        """The reference answer."""
        return self.reference if self.function else self.reference(*given)


@dataclass(frozen=True)
class Verdict:
    """Outcome: "not attempted", "wrong", "over the target" or "right"."""

    id: str
    outcome: str
    detail: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome in ACCEPTED

    @property
    def note(self) -> Note:
        """The verdict in words."""
        text = {
            "not attempted": f'not attempted yet. Replace the ... above; hint("{self.id}") helps.',
            "wrong": f'not right yet. {self.detail}\nhint("{self.id}") helps.',
            "over the target": f"right, but over the target. {self.detail}",
            "right": "right.",
        }[self.outcome]
        return Note(f"Exercise {self.id}: {text}", _TONES[self.outcome])


class _NotAttempted(Exception):
    """A stub was called: it returned `...`."""


class _Raised(Exception):
    """The learner's function raised; the text says on which arguments."""


def judge(exercise: Exercise, answer: Any, *given: Any) -> Verdict:
    """The verdict on an answer; an error in the learner's code is a wrong answer, never raised."""
    if _blank(answer):
        return Verdict(exercise.id, "not attempted")
    if exercise.given and not given:
        call = f'check("{exercise.id}", your answer, {exercise.given})'
        return Verdict(exercise.id, "wrong", f"The check needs to see {exercise.given}: {call}.")
    try:
        answer = exercise.read(answer)
    except ValueError as error:
        return Verdict(exercise.id, "wrong", str(error))
    if exercise.function:
        if not callable(answer):
            return Verdict(exercise.id, "wrong", f"An answer is {exercise.expects}.")
        answer = _watched(answer)
    try:
        for what in exercise.properties:
            if seen := what.fault(answer, *given):
                return Verdict(exercise.id, "wrong", f"It must hold that {what.says}: {seen}.")
        if exercise.target and (seen := exercise.target.fault(answer, *given)):
            return Verdict(
                exercise.id, "over the target", f"The target: {exercise.target.says}; {seen}."
            )
    except _NotAttempted:
        return Verdict(exercise.id, "not attempted")
    except _Raised as error:
        return Verdict(exercise.id, "wrong", str(error))
    except Exception as error:
        said = f"An answer is {exercise.expects}; looking at this one raised"
        return Verdict(exercise.id, "wrong", f"{said} {type(error).__name__}: {error}.")
    return Verdict(exercise.id, "right")


def _blank(value: Any) -> bool:
    """Whether `...` still stands for the answer, or for a part of it."""
    return value is ... or (isinstance(value, list | tuple) and any(v is ... for v in value))


def _shown(value: Any) -> str:
    """A value in one line: its text, or its type where that takes more."""
    text = repr(value)
    return f"<{type(value).__name__}>" if "\n" in text else text


def _watched(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The learner's function, telling a stub and an error apart from a wrong result."""

    @wraps(answer)
    def watched(*args: Any) -> Any:
        try:
            result = answer(*args)
        except Exception as error:
            called = f"{answer.__name__}({', '.join(map(_shown, args))})"
            raise _Raised(f"{called} raised {type(error).__name__}: {error}.") from error
        if _blank(result):
            raise _NotAttempted
        return result

    return watched
