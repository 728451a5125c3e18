"""The bench measures what it says; how fast anything is, no test says."""

import pytest

from pipemare_edu.bench.engine import CASES, METHODS, _stash, engine, heading, line, linear


@pytest.mark.parametrize("case", [c for c in CASES if c.stages <= 16], ids=lambda c: c.name)
def test_stashed_bytes_are_the_schedules(case):
    counted, expected = _stash(case)
    assert counted == expected > 0


def test_every_contestant_is_measured_against_plain_pytorch():
    tiny = CASES[0]._replace(name="tiny", stages=2, width=4, batch=3, layer=linear)
    [row] = engine(rounds=1, cases=[tiny])
    assert row.plain > 0 and set(row.ratios) == set(METHODS)
    assert all(ratio > 0 for ratio in row.ratios.values())
    assert row.stash == row.expected_stash
    assert len(line(row)) == len(heading(1).splitlines()[1])
