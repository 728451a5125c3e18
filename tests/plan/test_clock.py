"""The virtual clock: bubbles, memory, costs, deadlocks."""

import pytest

import pipemare_edu as pm
from pipemare_edu.plan.clock import Event

SIZES = [(1, 1), (4, 1), (4, 8), (8, 4), (5, 3), (4, 27)]


@pytest.mark.parametrize(("P", "N"), SIZES)
@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
def test_synchronous_bubbles_are_the_formulas(kind, P, N):
    one = pm.simulate(pm.schedule(kind, P, N, 1))
    assert one.idle == pytest.approx((P - 1) / (N + P - 1))
    many = pm.simulate(pm.schedule(kind, P, N, 60))
    assert many.steady_utilization == pytest.approx(N / (N + P - 1))
    slow = pm.simulate(pm.schedule(kind, P, N, 1), forward=1, backward=2)
    assert slow.idle == pytest.approx((P - 1) / (N + P - 1))


@pytest.mark.parametrize(("P", "N"), SIZES)
@pytest.mark.parametrize("kind", ["lockstep", "async-1f1b"])
def test_asynchronous_schedules_have_no_bubbles_once_full(kind, P, N):
    timeline = pm.simulate(pm.schedule(kind, P, N, 60))
    assert timeline.steady_utilization == pytest.approx(1.0)
    assert timeline.utilization < 1.0 or P == 1


def test_depths_below_the_stages_behind_cost_utilization():
    full = pm.simulate(pm.schedule([3, 2, 1, 0], 4, 1, 60)).steady_utilization
    short = pm.simulate(pm.schedule([1, 1, 1, 0], 4, 1, 60)).steady_utilization
    assert full == pytest.approx(1.0) and short < 0.8


def test_memory_of_gpipe_and_1f1b():
    assert pm.simulate(pm.schedule("gpipe", 4, 8)).in_flight == (8, 8, 8, 8)
    assert pm.simulate(pm.schedule("1f1b", 4, 8)).in_flight == (4, 3, 2, 1)


def test_a_run_too_short_has_no_steady_state():
    timeline = pm.simulate(pm.schedule("lockstep", 4, 1, 3))
    assert timeline.interval is None and timeline.steady_utilization is None


def test_lockstep_hides_a_messages_latency_and_1f1b_does_not():
    """Twice the depth is what hides half a slot of latency (PAPER.md section 1)."""
    late = {
        kind: pm.simulate(pm.schedule(kind, 4, 1, 60), message=0.5).steady_utilization
        for kind in ("lockstep", "async-1f1b")
    }
    assert late["lockstep"] == pytest.approx(1.0)
    assert late["async-1f1b"] < 0.95


def test_costs_per_stage_and_by_function():
    lists = pm.schedule("gpipe", 2, 1)
    by_stage = pm.simulate(lists, forward=[1, 2], backward=[3, 4], update=0.5, message=0.25)
    assert by_stage.events[1] == (
        Event(1, "F", 0, 1.25, 3.25, 0),
        Event(1, "B", 0, 3.25, 7.25, 0),
        Event(1, "U", 0, 7.25, 7.75, 0),
    )
    assert by_stage.events[0][1] == Event(0, "B", 0, 7.5, 10.5, 0)
    same = pm.simulate(
        lists,
        forward=lambda stage, op: 1 + stage,
        backward=lambda stage, op: 3 + stage,
        update=0.5,
        message=0.25,
    )
    assert same.events == by_stage.events
    assert by_stage.makespan == 11.0


@pytest.mark.parametrize(
    "bad",
    [
        {"forward": [1, 2, 3]}, {"backward": -1}, {"message": -1}, {"forward": float("nan")},
        {"forward": float("inf")}, {"message": [float("inf")]},
    ],
)  # fmt: skip
def test_impossible_costs_are_refused(bad):
    with pytest.raises(ValueError, match="cost|message"):
        pm.simulate(pm.schedule("gpipe", 2), **bad)


def test_evaluation_costs_an_asynchronous_pipe_its_fill():
    """E<k> meets the same weights everywhere, so a full pipe waits about 2 (P - 1) slots."""
    P, slot = 4, 2.0
    bare = [list(x) for x in pm.schedule("async-1f1b", P, 1, 40)]
    with_e = [[*x[: x.index(("U", 20)) + 1], ("E", 20), *x[x.index(("U", 20)) + 1 :]] for x in bare]
    lists = [[pm.Op(*op) for op in row] for row in with_e]
    lost = pm.simulate(lists).makespan - pm.simulate(bare).makespan
    assert (P - 1) * slot / 2 <= lost <= 2 * (P - 1) * slot


def test_deadlock_prints_the_grid_with_the_stuck_cells():
    timeline = pm.simulate(["F0 B0 U0 F1 B1 U1", "F0 F1 B0 U0 B1 U1"])
    assert timeline.deadlock == (
        "deadlock: no stage can go on\n"
        "  stage 1: F0 [B0] (U0) (F1) (B1) (U1)\n"
        "  stage 2: F0 [F1] (B0) (U0) (B1) (U1)\n"
        "  stage 1 waits to run B0: stage 2 has not sent it next\n"
        "  stage 2 waits to run F1: stage 1 has not sent it next"
    )


@pytest.mark.parametrize(
    "lists",
    [
        ["B0 F0 U0"],  # a backward before its forward
        ["F0 B0 B0 U0"],  # a backward twice
        ["F0 F1 B0 B1", "F1 B1 F0 B0"],  # out of order in a first-in, first-out link
        ["F0 B0", "F0"],  # a stage that never answers
        ["R0 F0 B0"],  # a recompute before its forward
    ],
)
def test_lists_that_cannot_run_deadlock(lists):
    assert "[" in (pm.simulate(lists).deadlock or "")


def test_thousands_of_operations_take_a_moment():
    timeline = pm.simulate(pm.schedule("lockstep", 107, 8, 30))
    assert sum(map(len, timeline.events)) == 107 * 30 * 17


@pytest.mark.parametrize("lists", ["gpipe", "F0 B0 U0", None, 3, [3], [[1, 2]]])
def test_what_is_no_list_of_operations_is_refused(lists):
    with pytest.raises(ValueError, match="lists is .*: give a list|a stage's list"):
        pm.simulate(lists)


@pytest.mark.parametrize("cost", ["x", None, ["x"]])
def test_costs_that_are_no_numbers_are_refused_by_name(cost):
    with pytest.raises(ValueError, match="the backward cost is"):
        pm.simulate(["F0 B0 U0"], backward=cost)
