"""The exercises of lesson 09: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import re

import pytest
from judging import refused
from torch.distributed.run import get_args_parser

from pipemare_edu.cli import parser
from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find
from pipemare_edu.lessons.exercises.lesson09 import balance, cheapest, dearest, layers, speed_up
from pipemare_edu.lessons.exercises.lesson09_trace import bottleneck, gained
from pipemare_edu.lessons.modelled import SHOWN, Events, machines, modelled
from pipemare_edu.lessons.source import SOURCES
from pipemare_edu.plan.split import split

SPEED, BALANCE, BOTTLENECK = (find(f"9.{n}") for n in range(1, 4))


# 9.1


def over(time):
    """One process's time over another's."""
    return lambda f, b, N: N * (sum(f) + sum(b)) / time(f, b, N)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda f, b, N: 2 * N / (N + 1), "(true of equal stages)"),
        (lambda f, b, N: 2, "one microbatch alone gains nothing"),
        (over(lambda f, b, N: sum(f) + sum(b) + N * (max(f) + max(b))), "only N - 1 follow"),
        (over(lambda f, b, N: N * max(f[0] + b[0], f[1] + b[1])), "a pipe that never empties"),
        (lambda f, b, N: 1 / speed_up(f, b, N), "how many times as fast, not as long"),
        (
            over(lambda f, b, N: sum(f) + sum(b) + (N - 1) * max(f[0] + b[0], f[1] + b[1])),
            "no turn between them",
        ),
        (over(lambda f, b, N: sum(f) + sum(b) + (N - 1) * (min(f) + min(b))), "the clock's"),
        (lambda f, b, N: 100 * speed_up(f, b, N), "in per cent"),
        (lambda f, b, N: speed_up(f, b, N) / N, "one process takes N times that"),
        (lambda f, b, N: N * (sum(f) + sum(b)) / speed_up(f, b, N), "a time, and not how many"),
        (lambda f, b, N: 0, "it returns 0"),
        (lambda f, b, N: "2", "it returns '2'"),
        (lambda f: 2, "raised TypeError"),
        (2, "An answer is a function of (forward, backward, N)"),
    ],
)
def test_the_speed_up_is_wrong(answer, says) -> None:
    refused(SPEED, answer, says)


# 9.2


def evenly(costs, stages):
    ends = [i * len(costs) // stages for i in range(stages + 1)]
    return [b - a for a, b in zip(ends, ends[1:], strict=False)]


def to_the_mean(costs, stages):
    """Fill each stage until it has its share; the last takes what is left."""
    counts, mean, done = [], sum(costs) / stages, 0
    for left in range(stages - 1, 0, -1):
        n = 1
        while done + n < len(costs) - left and sum(costs[done : done + n]) < mean:
            n += 1
        counts.append(n)
        done += n
    return [*counts, len(costs) - done]


def two_only(costs, stages):
    """Right for two stages only."""
    return balance(costs, stages) if stages < 3 else evenly(costs, stages)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (evenly, "as many layers each, whatever they cost"),
        (to_the_mean, "can be reached"),
        (two_only, "can be reached"),
        (lambda c, s: balance(c[::-1], s), "can be reached"),  # from the other end
        (lambda c, s: [n + 1 for n in balance(c, s)], "and there are"),
        (lambda c, s: [0] * (s - 1) + [len(c)], "every stage needs a layer"),
        (lambda c, s: [len(c)], "not a count of layers for each stage"),
        (
            lambda c, s: list(range(1, s)),
            "not a count of layers for each stage",
        ),  # where to cut, not how many
        (lambda c, s: sum(c) / s, "it returns"),
        (lambda c: [3, 3], "raised TypeError"),
        ([5, 1], "An answer is a function of (costs, stages)"),
    ],
)
def test_the_balance_is_wrong(answer, says) -> None:
    refused(BALANCE, answer, says)


def test_brute_force_agrees_with_the_planner_which_is_a_right_answer() -> None:
    for costs, stages in layers():
        assert dearest(costs, split(costs, stages)) == cheapest(costs, stages)
    assert judge(BALANCE, split).outcome == "right"


# 9.3


def work(events):
    """What each stage computes."""
    return [sum(e.end - e.start for e in events if e.stage == i) for i in range(4)]


def off_by_one(events):
    kind, i = bottleneck(events)
    return kind, max(1, i - 1)


def longest_way(events):
    """Lag in place of the way: the longest time from an end to the next start."""
    ends = {(e.stage, e.kind, e.index): e.end for e in events}
    forwards = [e for e in events if e.kind == "F" and e.stage]
    late = max(forwards, key=lambda e: e.start - ends[e.stage - 1, "F", e.index])
    return "link", late.stage


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda e: ("stage", 1 + work(e).index(max(work(e)))), "none of the stages computes"),
        (lambda e: ("stage", 1 + max(e, key=lambda x: x.end - x.start).stage), "needs only 9"),
        (lambda e: ("stage", 1 + work(e).index(min(work(e)))), "where a stage is the bottleneck"),
        (off_by_one, "twice as fast a microbatch still takes"),
        (longest_way, "where a stage is the bottleneck"),
        (lambda e: ("link", 2), "where a stage is the bottleneck"),  # right for the shown trace
        (lambda e: ("stage", 0), "stages are 1 to 4"),
        (lambda e: ("link", 4), "links 1 to 3"),
        (lambda e: 3, "it returns 3"),
        (lambda e: e[0].nothing, "(a trace of"),  # and not two hundred events
        (("link", 2), "An answer is a function of (events)"),
    ],
)
def test_the_bottleneck_is_wrong(answer, says) -> None:
    refused(BOTTLENECK, answer, says)


def test_one_thing_alone_makes_a_modelled_pipe_faster() -> None:
    found = [SHOWN, *machines(22)]
    for devices in found:
        assert [t for t in devices.needs if gained(devices, t)] == [devices.slowest]
        assert bottleneck(Events.of(devices.timeline)) == devices.slowest
        assert devices.interval == devices.needs[devices.slowest]
    assert len({devices.slowest for devices in found}) == 7


def test_the_shown_trace_is_held_up_by_a_link_while_a_stage_computes_more() -> None:
    events = Events.of(modelled())
    assert bottleneck(events) == ("link", 2)
    assert work(events).index(max(work(events))) == 2 and modelled().deadlock is None


# The commands on the page


def commands() -> list[list[str]]:
    """Every command line that the lesson shows, in words."""
    text = (SOURCES / "09_real_devices.py").read_text(encoding="utf-8")
    text = re.sub(r" *\\\n# +", " ", text)
    return [line.split() for line in re.findall(r"^#     ((?:python|torchrun) .+)$", text, re.M)]


def test_the_commands_on_the_page_are_understood() -> None:
    starts = [words[0] for words in commands()]
    assert starts == ["python", "torchrun", "torchrun"]
    for program, *words in commands():
        if program == "torchrun":
            launch = get_args_parser().parse_args(words)
            assert launch.module and launch.training_script == "pipemare_edu"
            words = ["-m", launch.training_script, *launch.training_script_args]
        assert words[:2] == ["-m", "pipemare_edu"]
        assert parser().parse_args(words[2:]).task == "digits"
