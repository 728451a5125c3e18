"""Workers keep to their own cores; threads that carry messages give way to those that compute."""

import os
import threading

import pytest
import torch

from pipemare_edu.trainer.threads import giving_way, keep_to, one_thread, share


def policy_of_a_new_thread() -> int:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return seen[0]


linux = pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="needs Linux")


@linux
def test_threads_started_inside_wait_for_a_free_core():
    with giving_way():
        assert policy_of_a_new_thread() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    assert policy_of_a_new_thread() == os.SCHED_OTHER


@linux
def test_who_already_gives_way_or_must_not_change_stays_as_is(monkeypatch):
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    with giving_way():
        assert policy_of_a_new_thread() == os.SCHED_OTHER


@linux
def test_an_error_inside_puts_the_policy_back():
    with pytest.raises(ZeroDivisionError), giving_way():
        raise ZeroDivisionError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_where_there_are_no_policies_nothing_happens(monkeypatch):
    monkeypatch.delattr(os, "SCHED_OTHER", raising=False)
    with giving_way():
        pass


@pytest.mark.parametrize("cores", [{0}, {0, 1}, {1, 4, 5, 7, 9}, set(range(32))])
@pytest.mark.parametrize("workers", [1, 2, 3, 32])
def test_every_worker_has_cores_of_its_own_or_any(monkeypatch, cores, workers):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores, raising=False)
    shares = [share(i, workers) for i in range(workers)]
    if workers > len(cores):
        assert shares == [set()] * workers
        return
    assert sorted(c for one in shares for c in one) == sorted(cores)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_where_nobody_can_tell_a_worker_runs_anywhere(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert share(0, 2) == set()
    keep_to(share(0, 2))


@linux
def test_threads_keep_to_the_cores_of_the_one_that_starts_them():
    before, seen = os.sched_getaffinity(0), []
    one = {max(before)}

    def starts() -> None:
        keep_to(one)
        inner = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        inner.start()
        inner.join()

    outer = threading.Thread(target=starts)
    outer.start()
    outer.join()
    assert seen == [one] and os.sched_getaffinity(0) == before


@linux
def test_a_container_that_forbids_it_changes_nothing(monkeypatch):
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    keep_to({0})


def test_the_callers_threads_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(ZeroDivisionError), one_thread():
            assert torch.get_num_threads() == 1
            raise ZeroDivisionError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
