"""The exercises of lesson 07: every wrong answer is told what is wrong with it."""

from __future__ import annotations

import pytest
from judging import refused

from pipemare_edu.lessons.exercise import judge
from pipemare_edu.lessons.exercises import find
from pipemare_edu.lessons.exercises.lesson07 import CANDIDATES, bill, needs, tables
from pipemare_edu.lessons.exercises.lesson07_recompute import cases, slots, stamped

BILL, BEST, FITS, REREAD = (find(f"7.{n}") for n in range(1, 5))


# 7.1


def but(**changes):
    """The right bill, with some kinds computed otherwise: kind -> function of the arguments."""

    def answer(*table):
        return bill(*table) | {kind: change(*table) for kind, change in changes.items()}

    return answer


def stash(versions):
    def total(method, weights, depths, n, copies):
        kept = [w * versions(d, n) for w, d in zip(weights, depths, strict=True)]
        return sum(kept) if method == "pipedream" else 0

    return total


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (but(stash=stash(lambda d, n: d / n)), "the mean age, and no stage holds a part"),
        (but(stash=stash(lambda d, n: d // n)), "rounded down"),
        (but(stash=stash(lambda d, n: -(-d // n) + 1)), "with the newest, which stands under"),
        (but(stash=stash(lambda d, n: d)), "a version is made every N microbatches"),
        (but(stash=stash(lambda d, n: 7)), "you get"),
        (but(stash=lambda m, w, d, n, c: sum(w)), "and only pipedream keeps old versions"),
        (but(correction=lambda m, w, d, n, c: sum(w) * (m == "pipemare-t2")), "of depth 0"),
        (but(correction=lambda m, w, d, n, c: sum(w)), "and only pipemare-t2 corrects"),
        (but(correction=lambda m, w, d, n, c: 0), "you get 0 as correction"),
        (but(optimizer=lambda m, w, d, n, c: sum(w)), "as optimizer"),  # right for momentum only
        (but(gradients=lambda m, w, d, n, c: n * sum(w)), "as gradients"),
        (but(weights=lambda m, w, d, n, c: "W"), "'weights' is 'W'"),
        (lambda *table: sum(bill(*table).values()), "it returns"),
        (lambda *table: {"weights": 1}, "there is no 'gradients'"),
        (lambda method: {}, "raised TypeError"),
        (3, "An answer is a function of (method, weights, depths, microbatches, copies)"),
    ],
)
def test_the_bill_is_wrong(answer, says) -> None:
    refused(BILL, answer, says)


def test_the_tables_have_every_method_and_a_stage_without_delay() -> None:
    found = list(tables())
    assert len({t.method for t in found}) == 4
    assert any(t.method == "pipemare-t2" and 0 in t.depths for t in found)
    assert any(d % t.microbatches for t in found if t.method == "pipedream" for d in t.depths)


# 7.2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((4, 120), "with segments of 4, 120 are too few"),
        ((4, 112), "too few"),  # as the paper counts, one less a stage
        ((4, 272), "too many"),
        ((5, 128), "5 does not"),  # as good, but not a divisor
        ((2, 160), "a longer segment holds fewer than 160"),
        ((8, 160), "a shorter segment holds fewer than 160"),
        ((0, 128), "0 does not"),
        ((-4, 128), "-4 does not"),
        ((4.5, 128), "An answer is a segment length and a number"),
        (4, "this one is 4"),
        ("4, 128", "this one is"),
    ],
)
def test_the_best_segment_is_wrong(answer, says) -> None:
    refused(BEST, answer, says)


def test_the_best_segment() -> None:
    right = [(s, n) for s in range(17) for n in range(100, 300) if judge(BEST, (s, n)).accepted]
    assert right == [(4, 128)] and judge(BEST, [4, 128.0]).accepted
    assert [slots(s) for s in (1, 2, 4, 8, 16)] == [272, 160, 128, 160, 272]


# 7.3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (set(CANDIDATES), "a device of 'pipedream' needs 1.11 GB"),
        (set(CANDIDATES) - {"pipedream"}, "'pipemare-t2' needs 1.03 GB"),  # no working buffer
        ({"gpipe"}, "the largest stage of 'pipemare' needs 880 MB"),
        (set(), "the largest stage of 'gpipe' needs 592 MB"),  # all stages together
        ({"gpipe", "pipemare", "pipemare-t2, recompute"}, "'pipedream, recompute' needs 847 MB"),
        ({"gpip"}, "and 'gpip' is none of these"),
        ("gpipe", "this one is 'gpipe'"),
        ([["gpipe"]], "this one is"),
    ],
)
def test_what_fits_is_wrong(answer, says) -> None:
    refused(FITS, answer, says)


def test_what_fits_in_any_order() -> None:
    fits = [name for name in CANDIDATES if needs(name) <= 1e9]
    assert judge(FITS, fits).outcome == judge(FITS, set(fits)).outcome == "right"
    spaced = [name.replace(", ", ",").replace("pipe", "Pipe") for name in fits]
    assert judge(FITS, spaced).outcome == "right"


# 7.4


def back(updates):
    return lambda w, delta, i, P, S, N: w - updates(i, P, S, N) * delta


def end(i, P, S):
    return min(P, -(-i // S) * S)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (back(lambda i, P, S, N: (2 * (P - i) + 1) / N), "all of tau_fwd"),
        (back(lambda i, P, S, N: (2 * (end(i, P, S) - i) + 1) / N), "that is tau_recomp"),
        (back(lambda i, P, S, N: -2 * (P - end(i, P, S)) / N), "in the wrong direction"),
        (back(lambda i, P, S, N: 2 * (P - end(i, P, S))), "but delays count updates"),
        (back(lambda i, P, S, N: (2 * (P - end(i, P, S)) + 1) / N), "steps back"),  # off by one
        (back(lambda i, P, S, N: 2 * (P - S) / N), "steps back"),  # right for the first segment
        (back(lambda i, P, S, N: 2 * (P - i) // S * S / N), "steps back"),
        (lambda w, delta, *_: w - delta - 1, "w = 3 and delta = 0 give 2"),
        (lambda *_: None, "it returns None"),
        (lambda w: w, "raised TypeError"),
        (4, "An answer is a function of (w, delta, i, P, S, N)"),
    ],
)
def test_what_a_re_run_reads_is_wrong(answer, says) -> None:
    refused(REREAD, answer, says)


def test_stamps_are_the_papers_delays() -> None:
    for i, P, S, N in cases():
        forward, again = stamped(i, P, S, N)
        assert forward == pytest.approx((2 * (P - i) + 1) / N)
        assert again == pytest.approx((2 * (end(i, P, S) - i) + 1) / N)
