"""Lesson 08: time to target with and without a bubble, and who wins on steps but loses on time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from ...checks import unknown
from ...reproduce.presets import METHODS
from ...studies.reproduction import PARTS
from ...studies.target import BASELINE, found
from ..exercise import Exercise, Property
from ..reading import numbers
from .lesson06 import by_clock

TIME = "a function of steps, t3, P, N and bubble that returns a number"
PAIR = 'a task and two methods, such as ("words", "gpipe", "pipemare")'
SHARE = 0.95  # of GPipe's quality

Time = Callable[..., Any]
Case = tuple[int, int, int, int, float]  # steps, t3, P, N, bubble


# 8.1 time to target under two bubble assumptions


def cases() -> Iterator[Case]:
    """Runs with a warm-up, the lesson's own first."""
    draw = random.Random(8)
    yield 1344, 160, 12, 2, 1.0
    for _ in range(12):
        steps = draw.randint(2, 400)
        yield steps, draw.randint(1, steps - 1), draw.randint(2, 12), draw.randint(1, 8), 1.0


def is_number(time: Time) -> str:
    """What is not a number."""
    for case in cases():
        if not numbers([got := time(*case)]):
            return f"{_call(*case)} returns {got!r}"
    return ""


def nothing_waits(time: Time) -> str:
    """The first run without a warm-up in which a step does not take 1."""
    return _first(time, ((k, 0, P, N, b) for k, _, P, N, _ in cases() for b in (1.0, 0.0)))


def all_wait(time: Time) -> str:
    """The first synchronous run whose time is not the clock's."""
    return _first(time, ((k, k, P, N, 1.0) for k, _, P, N, _ in cases()))


def some_wait(time: Time) -> str:
    return _first(time, cases())


def no_bubble(time: Time) -> str:
    """The first run without a bubble in which a step does not take 1."""
    return _first(time, ((k, t3, P, N, 0.0) for k, t3, P, N, _ in cases()))


def part_of_it(time: Time) -> str:
    """The first run with a part of the bubble in which not that part of the wait is left."""
    parts = ((k, t3, P, N, b) for k, t3, P, N, _ in cases() for b in (0.5, 0.25))
    return _first(time, parts)


def cut_short(time: Time) -> str:
    """The first run that ends within its warm-up and pays for more than it ran."""
    return _first(time, ((k, k + t3, P, N, b) for k, t3, P, N, _ in cases() for b in (1.0, 0.5)))


def _first(time: Time, some: Iterator[Case]) -> str:
    for steps, t3, P, N, bubble in some:
        got, right = time(steps, t3, P, N, bubble), true(steps, t3, P, N, bubble)
        if not math.isclose(got, right, rel_tol=1e-6):
            case = steps, t3, P, N, bubble
            said = f"{_call(*case)} is {right:.6g}, and yours gives {got:.6g}"
            return said + _guess(case, got)
    return ""


def _call(steps: int, t3: int, P: int, N: int, bubble: float) -> str:
    return f"time({steps}, {t3}, P={P}, N={N}, bubble={bubble:g})"


def _guess(case: Case, got: float) -> str:
    """What another number is."""
    k, t3, P, N, b = case
    w = min(k, t3)
    known = {
        "every step as if it were asynchronous": k,
        "in GPipe's steps: the unit is an asynchronous step": time(*case) * N / (N + P - 1),
        "every step as if it were synchronous": time(k, k, P, N, b),
        "P/N, and the bubble is P - 1 over N": k + w * b * P / N,
        "the idle share (P-1)/(N+P-1), and the step is (P-1)/N longer": k
        + w * b * (P - 1) / (N + P - 1),
        "N and P have changed places": k + w * b * (N - 1) / P,
        "all k steps after the warm-up; only k - w are left": time(*case) + w,
        "rounded": int(time(*case)),
    }
    return next((f" ({says})" for says, x in known.items() if math.isclose(got, x)), "")


def true(steps: int, t3: int, P: int, N: int, bubble: float) -> float:
    """By the clock: a run of asynchronous steps, and what waiting adds to it."""
    waiting = min(steps, t3)
    return steps + bubble * waiting * (1 / by_clock(P, N, 1.0) - 1)


def time(steps: int, t3: int, P: int, N: int, bubble: float) -> float:
    synchronous = min(steps, t3)
    return synchronous * (1 + bubble * (P - 1) / N) + (steps - synchronous)


# 8.2 wins on steps, loses on time


def as_pair(answer: Any) -> tuple[str, str, str]:
    """(task, the winner on steps, the winner on time)."""
    words = names_in(answer)
    if not isinstance(words, tuple | list) or [type(w) for w in words] != [str] * 3:
        raise ValueError(f"An answer is {PAIR}, and this one is {answer!r}.")
    task, steps, time = words
    return task, steps, time


def names_in(answer: Any) -> Any:
    """The parts of an answer that is a text, or a row of names; a method may be called as in the
    figures."""
    if isinstance(answer, str):
        answer = answer.split("," if "," in answer else None)
    if not isinstance(answer, tuple | list):
        return answer
    labels = {label.casefold(): name for name, label in METHODS.items()}
    tidy = [w.strip() if isinstance(w, str) else w for w in answer]
    return [labels.get(w.casefold(), w) if isinstance(w, str) else w for w in tidy]


def known(answer: tuple[str, str, str]) -> str:
    """A name that there is not."""
    task, *methods = answer
    if task not in PARTS:
        return unknown("task", task, PARTS)
    return next((unknown("method", m, METHODS) for m in methods if m not in METHODS), "")


def asynchronous(answer: tuple[str, str, str]) -> str:
    return "GPipe is one of yours" if BASELINE in answer else ""


def arrive(answer: tuple[str, str, str]) -> str:
    """A method that does not reach the target."""
    task, *methods = answer
    seen = found(task, SHARE)
    return next((f"on {task}, {METHODS[m]} does not" for m in methods if seen[m] is None), "")


def fewer_steps(answer: tuple[str, str, str]) -> str:
    return _above(answer, "steps", first_is_less=True)


def more_time(answer: tuple[str, str, str]) -> str:
    return _above(answer, "time", first_is_less=False)


def _above(answer: tuple[str, str, str], what: str, first_is_less: bool) -> str:
    """How the two compare, if not as they should."""
    task, *methods = answer
    seen = found(task, SHARE)
    a, b = (getattr(seen[m], what) for m in methods)
    if a < b if first_is_less else a > b:
        return ""
    first, second = (METHODS[m] for m in methods)
    return f"on {task}, {first} needs {a:.3g} times GPipe's {what}, {second} {b:.3g}"


def pair() -> tuple[str, str, str]:
    return ("digits", "pipemare", "pipedream")


EXERCISES = (
    Exercise(
        id="8.1",
        expects=TIME,
        function=True,
        properties=(
            Property("the time is a number", is_number),
            Property("without a warm-up every step takes 1, whatever the bubble", nothing_waits),
            Property("synchronous steps alone take as long as the clock says", all_wait),
            Property("steps of both kinds take what the clock says", some_wait),
            Property("without a bubble a synchronous step takes 1, too", no_bubble),
            Property("with a part of the bubble, that part of the waiting is left", part_of_it),
            Property("a run that ends within its warm-up pays for its own steps only", cut_short),
        ),
        hints=(
            "Equation 6.1 has the two kinds of step in it. Here you want the time, not the speed.",
            "A synchronous step takes (N+P-1)/N = 1 + (P-1)/N. Which part of this is the bubble?",
            "With w = min(steps, t3) synchronous steps: w · (1 + bubble · (P-1)/N) + steps - w.",
        ),
        reference=time,
    ),
    Exercise(
        id="8.2",
        expects=PAIR,
        read=as_pair,
        properties=(
            Property("task and methods are the reproduction's", known),
            Property("both methods are asynchronous", asynchronous),
            Property("both reach the target, 95 % of GPipe's quality", arrive),
            Property("the first needs fewer steps", fewer_steps),
            Property("the first needs more time, too", more_time),
        ),
        hints=(
            "In a full pipe all asynchronous steps take equally long. Which steps do not?",
            "Look for a method with a warm-up whose bill, in the panel, is large: the fewer "
            "microbatches and the more stages, the larger.",
            "digits has N=1: compare all three fixes with anything that has no warm-up and gets "
            "there.",
        ),
        reference=pair,
    ),
)
