"""What the tests of all lessons do with an exercise."""

from __future__ import annotations

import textwrap
from typing import Any

from pipemare_edu.lessons import solution
from pipemare_edu.lessons.exercise import Exercise, judge


def refused(exercise: Exercise, answer: Any, says: str) -> None:
    """The answer is wrong, and the verdict says why."""
    verdict = judge(exercise, answer)
    assert verdict.outcome == "wrong" and says in verdict.detail, verdict


def solved(exercise: Exercise, **names: Any) -> Any:
    """The answer that the published solution gives, run among a lesson's `names`."""
    code = textwrap.dedent(solution(exercise.id).partition("\n\n")[2]).strip()
    if exercise.function:
        exec(code, names)
        return names[exercise.reference.__name__]
    *lines, last = code.splitlines()
    exec("\n".join(lines), names)
    return eval(last, names)
