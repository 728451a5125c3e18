"""What a learner calls on an exercise: check, hint, solution, use."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from typing import Any

from .exercise import judge
from .exercises import find
from .notes import Note
from .progress import PROGRESS
from .verdicts import write


class NotAccepted(AssertionError):
    """Under PIPEMARE_EDU_STRICT=1, an answer that is missing or wrong."""


def check(id: str, answer: Any, *given: Any) -> Note:
    """Say whether an answer is not attempted, wrong (with the first property that fails), right
    but over the target, or right.

    given  what the exercise is about, such as a timeline; the lesson's cell passes it

    Never raises because of an answer, except under PIPEMARE_EDU_STRICT=1 (tests): NotAccepted.
    Raises ValueError if there is no such exercise.
    """
    verdict = judge(find(id), answer, *given)
    PROGRESS.outcomes[id] = verdict.outcome
    write(verdict)
    if not verdict.accepted and os.environ.get("PIPEMARE_EDU_STRICT") == "1":
        raise NotAccepted(verdict.note)
    return verdict.note


def hint(id: str) -> Note:
    """The next of an exercise's three hints; the last one again when all were shown."""
    hints = find(id).hints
    shown = min(PROGRESS.hints.get(id, 0) + 1, len(hints))
    PROGRESS.hints[id] = shown
    return Note(f"Hint {shown} of {len(hints)} for {id}: {hints[shown - 1]}")


def solution(id: str) -> Note:
    """The reference solution's code, to be run in the lesson as it stands."""
    exercise = find(id)
    reference = exercise.reference
    code = textwrap.dedent(inspect.getsource(reference))
    names = ", ".join(inspect.signature(reference).parameters)
    # Without annotations: what they name is not imported in the lesson.
    code = re.sub(r"^def (\w+)\(.*:$", rf"def \1({names}):", code, count=1, flags=re.MULTILINE)
    if not exercise.function:
        code += f"\n{reference.__name__}({exercise.given})\n"
    return Note(f"A solution of {id} (there may be others):\n\n" + textwrap.indent(code, "    "))


def use(id: str, answer: Any, *given: Any) -> Any:
    """The answer if it is accepted, otherwise the reference solution; then it says so."""
    exercise = find(id)
    if judge(exercise, answer, *given).accepted:
        return answer
    print(Note(f"Exercise {id} is open, so what follows uses the reference solution."))
    return exercise.answer(*given)
