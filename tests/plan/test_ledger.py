import pytest

from pipemare_edu.plan.held import Held
from pipemare_edu.plan.ledger import ledger, old_versions
from pipemare_edu.plan.schedules import depths


@pytest.mark.parametrize("stashes", [False, True])
@pytest.mark.parametrize("copies", [0, 1, 2])
def test_bytes_by_kind(stashes, copies):
    rows = ledger([100, 40], depths("lockstep", 2), 2, copies, stashes, activations=[7, 5])
    assert [r["stash"] for r in rows] == ([200, 40] if stashes else [0, 0])
    assert [r["optimizer"] for r in rows] == [100 * copies, 40 * copies]
    assert [r["activations"] for r in rows] == [4 * 7, 2 * 5]
    assert [r["working"] for r in rows] == ([100, 40] if stashes else [0, 0])


def test_correction_is_one_more_copy_of_what_has_a_delay():
    rows = ledger([100, 40], depths("async-1f1b", 2), 1, corrects=True)
    assert [r["correction"] for r in rows] == [100, 0]


def test_gpipe_keeps_all_microbatches():
    [row] = ledger([1], [0], 8, activations=[10], held=[Held(8, 0, 8)])
    assert row["activations"] == 80


@pytest.mark.parametrize(
    ("recompute", "graphs", "inputs"),
    [
        (0, [8, 6, 4, 2], [0, 0, 0, 0]),
        (1, [2, 2, 2, 2], [7, 5, 3, 0]),
        (2, [4, 2, 4, 2], [5, 0, 0, 0]),
    ],
)
def test_recompute_keeps_inputs_for_activations(recompute, graphs, inputs):
    rows = ledger(
        [1] * 4, depths("lockstep", 4), 1, activations=[100] * 4, inputs=[10, 20, 30, 40],
        recompute=recompute,
    )  # fmt: skip
    assert [r["activations"] for r in rows] == [100 * g for g in graphs]
    assert [r["inputs"] for r in rows] == [(10, 20, 30, 40)[i] * n for i, n in enumerate(inputs)]


@pytest.mark.parametrize(
    ("depth", "N", "versions"), [(0, 8, 0), (1, 8, 1), (7, 8, 1), (8, 8, 1), (9, 8, 2), (7, 1, 7)]
)
def test_old_versions_are_the_longest_staleness(depth, N, versions):
    assert old_versions(depth, N) == versions
