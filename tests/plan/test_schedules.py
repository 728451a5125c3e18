"""The schedules, for random stage counts, microbatches and depths."""

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipemare_edu as pm
from pipemare_edu.plan.ops import Op
from pipemare_edu.plan.schedules import ASYNCHRONOUS, SYNCHRONOUS, asynchronous, depths, evaluated

NAMES = SYNCHRONOUS + ASYNCHRONOUS
legal_depths = st.lists(st.integers(0, 12), min_size=1, max_size=6).map(
    lambda d: sorted(d, reverse=True)
)


def check_lists(lists, N, steps):
    """Each operation once, in order, each backward after its forward, each update after its N."""
    for ops in lists:
        assert len(ops) == len(set(ops)) == steps * (2 * N + 1)
        for kind, count in (("F", steps * N), ("B", steps * N), ("U", steps)):
            assert [op.index for op in ops if op.kind == kind] == list(range(count))
        place = {op: j for j, op in enumerate(ops)}
        for m in range(steps * N):
            assert place[Op("F", m)] < place[Op("B", m)] < place[Op("U", m // N)]
            if m >= N:
                assert place[Op("B", m)] > place[Op("U", m // N - 1)]


def check_times(timeline):
    """No overlap on a stage; a message is used after it was sent."""
    ends = {(e.stage, e.kind, e.index): e.end for row in timeline.events for e in row}
    last = len(timeline.events) - 1
    for row in timeline.events:
        for before, after in zip(row, row[1:]):  # noqa: B905
            assert after.start >= before.end
        for e in row:
            if e.kind == "F" and e.stage > 0:
                assert e.start >= ends[e.stage - 1, "F", e.index]
            if e.kind == "B":
                source = (e.stage, "F") if e.stage == last else (e.stage + 1, "B")
                assert e.start >= ends[*source, e.index]


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 6), st.integers(1, 5), st.integers(1, 6), st.data())
def test_named_schedules_run(kind, P, N, steps, data):
    lists = pm.schedule(kind, P, N, steps)
    check_lists(lists, N, steps)
    costs = {
        name: data.draw(st.lists(st.floats(0, 9), min_size=P, max_size=P))
        for name in ("forward", "backward")
    }
    timeline = pm.simulate(lists, **costs, message=data.draw(st.floats(0, 9)))
    assert timeline.deadlock is None
    check_times(timeline)


@settings(deadline=None)
@given(legal_depths, st.integers(1, 4), st.integers(1, 8))
def test_any_non_increasing_depths_run(D, N, steps):
    lists = pm.schedule(D, len(D), N, steps)
    check_lists(lists, N, steps)
    timeline = pm.simulate(lists)
    assert timeline.deadlock is None
    check_times(timeline)
    for i, d in enumerate(D):
        assert timeline.in_flight[i] == min(d + 1, steps * N)
        for delay in timeline.staleness[i]:
            k, n = divmod(delay.microbatch, N)
            assert delay.forward == k - max(0, k + math.floor((n - d) / N))
            assert delay.backward == 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.integers(1, 4))
def test_increasing_depths_are_refused_and_would_deadlock(D, N):
    if all(a >= b for a, b in zip(D, D[1:])):  # noqa: B905
        return
    with pytest.raises(ValueError, match="must not increase along the pipe") as caught:
        pm.schedule(D, len(D), N, 12)
    i = next(i for i in range(1, len(D)) if D[i] > D[i - 1])
    assert f"stage {i + 1} waits for {D[i] + 1} forwards" in str(caught.value)
    lists = [pm.schedule([d], 1, N, 12)[0] for d in D]
    assert pm.simulate(lists).deadlock is not None


@pytest.mark.parametrize(
    ("D", "message"),
    [([2, 1], "2 depths for 3 stages"), ([3, -1, 0], "stage 2 has depth -1"),
     ([3, 1.5, 0], "stage 2 has depth 1.5"), ([True, 0, 0], "stage 1 has depth True"),
     ("lockstepp", "unknown schedule 'lockstepp'")],
)  # fmt: skip
def test_illegal_depths_are_refused_with_the_reason(D, message):
    with pytest.raises(ValueError, match=message):
        depths(D, 3)


@pytest.mark.parametrize("bad", [{"stages": 0}, {"microbatches": 0}, {"steps": 0}, {"t3": 9}])
def test_counts_below_one_are_refused(bad):
    good = {"kind": "gpipe", "stages": 2, "microbatches": 2, "steps": 2}
    with pytest.raises(ValueError, match=next(iter(bad))):
        pm.schedule(**(good | bad))


def test_papers_depths():
    assert depths("lockstep", 4) == (7, 5, 3, 1)
    assert depths("async-1f1b", 4) == (3, 2, 1, 0)
    assert depths("sequential", 2) == depths("gpipe", 2) == (0, 0)


@pytest.mark.parametrize(
    ("P", "N", "stage", "mean", "most"),
    [(4, 1, 1, 7, 7), (4, 1, 4, 1, 1), (8, 4, 1, 3.75, 4), (8, 4, 4, 2.25, 3), (8, 4, 8, 0.25, 1)],
)
def test_papers_staleness(P, N, stage, mean, most):
    D = depths("lockstep", P)[0]
    row = pm.simulate(pm.schedule("lockstep", P, N, D // N + 6)).staleness[stage - 1]
    full = [d.forward for d in row if d.step >= math.ceil(D / N)]
    assert (sum(full) / len(full), max(full)) == (mean, most)


def test_all_zero_depths_are_the_sequential_lists():
    assert pm.schedule([0, 0, 0], 3, 2, 4) == pm.schedule("sequential", 3, 2, 4)


def test_t3_runs_gpipe_then_drains():
    lists = pm.schedule("lockstep", 3, 2, 6, t3=2)
    head, tail = pm.schedule("gpipe", 3, 2, 2), pm.schedule("lockstep", 3, 2, 4)
    for ops, first, rest in zip(lists, head, tail, strict=True):
        assert ops[: len(first)] == first
        assert [
            Op(o.kind, o.index - (2 if o.kind == "U" else 4)) for o in ops[len(first) :]
        ] == list(rest)


def test_evaluations_stand_right_after_their_update():
    [ops] = pm.schedule("sequential", 1, 1, 5)
    assert str(pm.parse(" ".join(map(str, evaluated(ops, every=2, last=4))))) == (
        "F0 B0 U0 F1 B1 U1 E1 F2 B2 U2 F3 B3 U3 E3 F4 B4 U4 E4"
    )


def test_plan_needs_no_torch_and_imports_quickly():
    code = (
        "import sys, time, numpy\nt = time.process_time()\nimport pipemare_edu as pm\n"
        "pm.simulate(pm.schedule('lockstep', 4)), pm.parse('F0')\n"
        "import pipemare_edu.plan.theory, pipemare_edu.plan.split, pipemare_edu.plan.ledger\n"
        "print('torch' in sys.modules, time.process_time() - t)\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    loaded = [r.stdout.split()[0] for r in runs]
    assert loaded == ["False"] * 3
    assert min(float(r.stdout.split()[1]) for r in runs) < 0.15  # numpy takes as much again


@pytest.mark.parametrize("lead", [None, 2, 10**12])
def test_depths_that_no_run_can_fill_cost_nothing(lead):
    deep, enough = (list(asynchronous(d, 2, range(3), lead)) for d in (10**13 + 2, 10**13))
    assert deep == enough and [op.kind for op in deep[:6]] == ["F"] * 6
