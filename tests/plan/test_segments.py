"""Recompute on paper: leads, delays, slots held; the paper's square-root rule."""

import math

import pytest

import pipemare_edu as pm
from pipemare_edu.plan.copies import instants
from pipemare_edu.plan.held import held, peaks, versions_held
from pipemare_edu.plan.ledger import old_versions
from pipemare_edu.plan.schedules import depths, pipe_reruns
from pipemare_edu.plan.segments import reruns, segment_length

SIZES = [(P, N, S) for P in (1, 2, 3, 5, 8, 13) for N in (1, 2, 5) for S in (1, 2, 3, 5) if S <= P]


def steps_to_fill(P, N):
    return 3 * math.ceil(2 * P / N) + 2


@pytest.mark.parametrize(("P", "N", "S"), SIZES)
def test_lockstep_re_runs_2j_plus_1_backwards_ahead(P, N, S):
    """By version stamps: tau_recomp = (2j + 1) / N between tau_fwd and tau_bkwd = 0."""
    steps = steps_to_fill(P, N)
    lists = pm.schedule("lockstep", P, N, steps, recompute=S)
    timeline = pm.simulate(lists)
    assert timeline.deadlock is None
    for i, (row, delays) in enumerate(zip(lists, timeline.staleness, strict=True)):
        end = min(i // S * S + S - 1, P - 1)
        full = [d for d in delays if d.step >= math.ceil(2 * P / N)]
        if end == P - 1:
            assert all(d.recompute is None for d in delays)
            continue
        lead = 2 * (end - i) + 1
        for d in full:
            n = d.microbatch % N
            assert d.recompute == max(0, math.ceil((lead - n) / N))
            assert d.forward >= d.recompute >= d.backward == 0
        assert sum(d.recompute for d in full) / len(full) == pytest.approx(lead / N)
        at = {op: k for k, op in enumerate(row)}
        for m in range(P * N, P * N + 3):  # slot order F, R, B, (U)
            forward, backward = ("F", m + 2 * (P - i) - 1), ("B", m)
            if forward in at:
                assert at[forward] + 1 == at["R", m + lead] == at[backward] - 1


@pytest.mark.parametrize(("P", "N", "S"), SIZES)
@pytest.mark.parametrize("kind", ["lockstep", "async-1f1b"])
def test_what_lists_hold_is_the_formula(P, N, S, kind):
    lists = pm.schedule(kind, P, N, steps_to_fill(P, N), recompute=S)
    D = depths(kind, P)
    assert tuple(map(held, lists)) == pm.simulate(lists).held == peaks(D, S)
    assert [versions_held(row) for row in lists] == [old_versions(d, N) for d in D]


@pytest.mark.parametrize(
    ("P", "S", "slots"), [(16, 4, 128), (36, 6, 432), (107, 10, 2196), (12, 3, 84), (9, 1, 90)]
)
def test_slots_held_by_the_clock(P, S, slots):
    """P^2 / S + P S with equal segments; P (P + 1) without, beside the paper's P^2."""
    lists = pm.schedule("lockstep", P, 1, 2 * P + 2, recompute=S)
    assert sum(h.slots for h in pm.simulate(lists).held) == slots
    assert P % S or slots == P * P // S + P * S
    plain = pm.simulate(pm.schedule("lockstep", P, 1, 2 * P + 2)).held
    assert sum(h.slots for h in plain) == P * (P + 1)
    assert sum(h.slots - 1 for h in plain) == P**2


@pytest.mark.parametrize("P", [4, 9, 16, 25, 36, 64, 100])
def test_auto_is_the_best_equal_segment(P):
    slots = {S: sum(h.slots for h in peaks(depths("lockstep", P), S)) for S in range(1, P + 1)}
    assert slots[segment_length("auto", P)] == min(slots.values()) == 2 * P * math.isqrt(P)


def test_auto_without_a_whole_root():
    assert [segment_length("auto", P) for P in (1, 2, 3, 12, 15, 93, 107)] == [
        1,
        1,
        2,
        3,
        4,
        10,
        10,
    ]


@pytest.mark.parametrize("P", [16, 36])
def test_what_a_re_run_costs_in_time(P):
    """(P - S) / P of a forward more work: 1.25 and 1.28 of it at B = 2 F; on one device a stage
    everybody waits for those that re-run."""
    S = math.isqrt(P)
    lists = pm.schedule("lockstep", P, 1, 6 * P, recompute="auto")
    timeline = pm.simulate(lists, forward=1, backward=2)
    work = sum(e.end - e.start for row in timeline.events for e in row)
    assert work / (3 * P * 6 * P) == pytest.approx(1 + (P - S) / P / 3)
    assert timeline.interval == pytest.approx(4)


def test_t3_keeps_everything_and_then_re_runs():
    lists = pm.schedule("lockstep", 4, 2, 12, t3=4, recompute=2)
    for row in lists[:2]:
        assert [op.index for op in row if op.kind == "R"] == list(range(8, 24))
    assert not any(op.kind == "R" for row in lists[2:] for op in row)
    assert pm.simulate(lists).deadlock is None


def test_short_runs_and_single_microbatches():
    for steps in (1, 2, 3):
        for S in (1, 2, 3):
            lists = pm.schedule("lockstep", 7, 1, steps, recompute=S)
            assert pm.simulate(lists).deadlock is None
            assert all(
                [op.index for op in row if op.kind == "R"] in ([], list(range(steps)))
                for row in lists
            )


def test_a_segment_re_runs_one_stage_after_the_other():
    """The clock knows where segments begin: one text, with and without a message to wait for."""
    lists = pm.schedule("lockstep", 4, 1, 1, recompute=2)
    assert [row.inside for row in lists] == [False, True, False, False]
    assert str(lists[0]) == str(lists[1]) == "F0 R0 B0 U0"
    chained = pm.simulate(lists, forward=[1, 9, 1, 1])
    ends = [{(e.kind): e for e in row} for row in chained.events]
    assert ends[1]["R"].start >= ends[0]["R"].end
    alone = pm.simulate([str(row) for row in lists])
    assert alone.deadlock is None


def test_a_re_run_that_never_comes_is_a_deadlock():
    lists = pm.schedule("lockstep", 4, 1, 3, recompute=2)
    lists[0] = pm.Operations(op for op in lists[0] if op.kind != "R")
    report = pm.simulate(lists).deadlock
    assert "stage 2 waits to run R0: stage 1 has not sent it next" in report


@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "sequential"])
def test_synchronous_schedules_refuse_it(kind):
    with pytest.raises(ValueError, match="synchronous"):
        pm.schedule(kind, 4, recompute=2)


def test_depths_without_room_refuse_it():
    with pytest.raises(ValueError, match="nothing to re-run"):
        reruns([3, 3, 3, 3], 2)
    assert reruns([3, 3, 3, 3], 4) == (None,) * 4  # one segment, the last: nothing asked for
    assert [r and r.lead for r in reruns([9, 7, 3, 3], 1)] == [3, 3, None, None]
    with pytest.raises(ValueError, match="at most the pipe's 4 stages"):
        pipe_reruns("lockstep", 4, 5)


def test_instants_need_a_full_pipe():
    with pytest.raises(ValueError, match="more steps"):
        instants(pm.simulate(pm.schedule("lockstep", 9, 2, 4)), [1] * 9)
