"""check, hint, solution, use and reset, as a learner calls them."""

from __future__ import annotations

import pytest

from pipemare_edu.lessons import NotAccepted, check, hint, reset, solution, use
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import every, find

RIGHT, OVER, WRONG = "F0 F1 B0 F2 B1 B2 U0", "F0 F1 F2 B0 B1 B2 U0", "F0 B0 U0"


def test_each_verdict_in_words() -> None:
    assert check("0.1", ...).startswith("Exercise 0.1: not attempted yet.")
    assert check("0.1", WRONG).startswith("Exercise 0.1: not right yet. It must hold that F0")
    assert check("0.1", OVER).startswith("Exercise 0.1: right, but over the target.")
    assert check("0.1", RIGHT) == "Exercise 0.1: right."


@pytest.mark.parametrize("answer", [..., WRONG, 3])
def test_strict_raises_what_is_missing_or_wrong(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPEMARE_EDU_STRICT", "1")
    with pytest.raises(NotAccepted, match=r"Exercise 0\.1: not"):
        check("0.1", answer)
    assert check("0.1", OVER)
    assert check("0.1", RIGHT)


def test_unknown_exercise_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown exercise '0\.9'.*0\.1"):
        check("0.9", ...)


def test_hints_come_one_by_one_and_start_again_after_reset() -> None:
    said = [hint("0.1") for _ in range(4)]
    assert [text[:11] for text in said] == ["Hint 1 of 3", "Hint 2 of 3", *["Hint 3 of 3"] * 2]
    reset("0.1")
    assert hint("0.1") == said[0]


def test_use_says_when_it_takes_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert use("0.1", OVER) == OVER
    assert capsys.readouterr().out == ""
    assert judge(find("0.1"), use("0.1", WRONG)).outcome == "right"
    assert "uses the reference solution" in capsys.readouterr().out


def test_solution_shows_code() -> None:
    assert '    return "F0 F1 B0 F2 B1 B2 U0"' in solution("0.1")


def test_notes_have_a_frame_whose_words_are_the_text() -> None:
    note = check("0.1", "F0 <b>")
    assert repr(note) == note
    assert "'&lt;b&gt;'" in note._repr_html_()
    assert max(map(len, note.splitlines())) <= 88


@pytest.mark.parametrize("exercise", every(), ids=lambda exercise: exercise.id)
def test_every_exercise_is_complete(exercise) -> None:
    assert len(exercise.hints) == 3 and all(exercise.hints)
    assert len(exercise.properties) >= 2
    assert solution(exercise.id)


def test_ids_are_unique() -> None:
    ids = [exercise.id for exercise in every()]
    assert len(set(ids)) == len(ids)
