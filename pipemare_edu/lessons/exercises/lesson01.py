"""Lesson 01: a timetable, 1F1B's order, how many microbatches, which ratio, a schedule within
limits."""

from __future__ import annotations

from fractions import Fraction

from ...figures.bubbles import idle_fraction, overhead, percent
from .. import orders, timetables
from ..exercise import Exercise, Property
from ..lists import ascending, each_once, forward_first, one_step, update_last
from ..orders import FOUR, in_each, on_every_list
from ..reading import number

TABLE = "a function of P and N that returns a list of (slot, stage, operation)"
ORDER = "a function of stage, P and N that returns a text of operations"
COUNT = "a number of microbatches"
SHARE = "a share of the time"


def timetable(P: int, N: int) -> list[timetables.Triple]:
    rows = []
    for stage in range(1, P + 1):
        for m in range(N):
            rows.append((stage - 1 + m, stage, f"F{m}"))
            rows.append((N + P - 1 + P - stage + m, stage, f"B{m}"))
    return rows


def one_f_one_b(stage: int, P: int, N: int) -> str:
    words, forwards = [], 0
    for m in range(N):
        while forwards < min(m + P - stage + 1, N):
            words.append(f"F{forwards}")
            forwards += 1
        words.append(f"B{m}")
    return " ".join([*words, "U0"])


def is_whole(n: float) -> str:
    return "" if n >= 1 and n == int(n) else f"yours is {n:g}"


def enough(n: float) -> str:
    """How much is idle, if that is more than a tenth."""
    idle = idle_fraction(4, int(n))
    return f"with {n:g} it is {idle} = {percent(idle)}" if idle > Fraction(1, 10) else ""


def fewest(n: float) -> str:
    """A smaller number that would do."""
    idle = idle_fraction(4, int(n) - 1) if n > 1 else 1
    if idle > Fraction(1, 10):
        return ""
    ratio = f"; {n:g} is where the overhead (P-1)/N comes down to 10 %" if n == 30 else ""
    return f"{n - 1:g} would do as well{ratio}"


def smallest_n() -> int:
    P, N = 4, 1
    while (P - 1) / (N + P - 1) > 0.10:
        N += 1
    return N


def is_share(idle: float) -> str:
    if 0 <= idle <= 1:
        return ""
    return f"{idle:g} does not" + f"; {idle:g} % would be {idle / 100:g}" * (idle > 1)


def right_ratio(idle: float) -> str:
    """What another number is, or to which side it is off."""
    right = float(idle_fraction(4, 8))
    if abs(idle - right) < 0.005:
        return ""
    others = {
        overhead(right): "the overhead, idle time over working time",
        1 - right: "the share of the time in which they work",
        3 / 4: "what one microbatch at a time gives",
    }
    for other, name in others.items():
        if abs(idle - other) < 0.005:
            return f"{idle:.3g} is {name}"
    return f"{idle:.3g} is too {'much' if idle > right else 'little'}"


def idle_of_8() -> float:
    P, N = 4, 8
    return (P - 1) / (N + P - 1)


def in_order(text: str) -> str:
    """What stands in the wrong place of one list."""
    return forward_first(text) or ascending(text) or update_last(text)


def own_schedule() -> list[str]:
    return [
        "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7 U0",
        "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7 U0",
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7 U0",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 U0",
    ]


EXERCISES = (
    Exercise(
        "1.1",
        TABLE,
        (
            Property(
                'every entry is (slot, stage, operation), as in (0, 1, "F0")', timetables.triples
            ),
            Property("stages count from 1 to P", timetables.stages_from_1),
            Property("every stage runs each F and each B exactly once", timetables.each_once),
            Property("a forward waits for that of the stage before", timetables.forwards_go_down),
            Property(
                "a backward waits for its own forward and for the backward of the stage behind",
                timetables.backwards_go_up,
            ),
            Property("a stage runs one operation in a slot", timetables.one_at_a_time),
        ),
        (
            "Stage 1 runs F0 in slot 0, F1 in slot 1, and so on. When can stage 2 run F0? Then "
            "stage i and microbatch m.",
            "F of microbatch m is at stage i in slot i - 1 + m. The last forward of all, at stage "
            "P, is in slot N + P - 2; the first backward is at stage P, in the slot after it.",
            "B of microbatch m is at stage i in slot (N + P - 1) + (P - i) + m: backwards start "
            "when all forwards are done, and go up instead of down.",
        ),
        timetable,
        target=Property("2 (N + P - 1) slots for every P and N", timetables.shortest),
        function=True,
    ),
    Exercise(
        "1.2",
        ORDER,
        (
            Property(
                "each stage has every operation of the step exactly once",
                on_every_list(lambda text, n: each_once(text, one_step(n))),
            ),
            Property(
                "backwards come after their forwards and in the order of the microbatches, and U0 "
                "comes last",
                on_every_list(lambda text, _: in_order(text)),
            ),
            Property("the lists of all stages together run to their end", orders.all_run),
            Property("stage i never has more than P - i + 1 in flight", orders.few_in_flight),
            Property("the stages are idle no longer than with GPipe", orders.idle_as_gpipe),
        ),
        (
            "The last stage alternates: F0 B0 F1 B1 ... A stage further up has to send more "
            "forwards before its first gradient can come back. How many?",
            "Stage i runs P - i + 1 forwards, then B0; from then on, one F and one B in turn. When "
            "no forwards are left, the backwards that remain, and U0.",
            "For each m from 0 to N - 1: while fewer than m + P - i + 1 forwards stand there, and "
            "fewer than N, add the next one; then add B of m. At the end U0.",
        ),
        one_f_one_b,
        function=True,
    ),
    Exercise(
        "1.3",
        COUNT,
        (
            Property("N is a whole number, 1 or more", is_whole),
            Property("the idle fraction is at most 10 %", enough),
            Property("no smaller number would do", fewest),
        ),
        (
            "You want (P-1)/(N+P-1) to be at most 1/10, with P = 4.",
            "3/(N+3) is at most 1/10 when N + 3 is at least so many times 3.",
            "N + 3 must be at least 30.",
        ),
        smallest_n,
        read=number(COUNT, "12"),
    ),
    Exercise(
        "1.4",
        SHARE,
        (
            Property("a share lies between 0 and 1", is_share),
            Property("it is idle time over all time", right_ratio),
        ),
        (
            "Look at one stage of the chart: how many slots is it idle, and how many slots is the "
            "chart long?",
            "Every stage is idle for P - 1 forwards and P - 1 backwards, and busy for N of each.",
            "Idle over idle plus busy: (P-1)/(N+P-1), with P = 4 and N = 8.",
        ),
        idle_of_8,
        read=number(SHARE, "0.5"),
    ),
    Exercise(
        "1.5",
        FOUR,
        (
            Property("each list has every operation of the same step once", orders.complete),
            Property(
                "backwards come after their forwards and in the order of the microbatches, and U0 "
                "comes last",
                lambda lists: in_each(lists, in_order),
            ),
            Property("the lists run to their end", orders.stuck),
            Property("no stage ever has more than four in flight", orders.at_most_four),
            Property("the stages are idle at most 30 % of the time", orders.at_most_30_percent),
        ),
        (
            "How many microbatches does a step need, for (P-1)/(N+P-1) to be at most 30 %?",
            "Seven or more. So stage 1 has to begin with backwards before its fifth forward: F0 F1 "
            "F2 F3 B0 F4 ...",
            "1F1B does it: your function from exercise 1.2 writes the lists, for P = 4 and N = 8.",
        ),
        own_schedule,
        read=orders.as_lists,
    ),
)
