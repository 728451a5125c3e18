"""Threads that carry messages give way to those that compute."""

import os
import threading

import pytest

from pipemare_edu.trainer.threads import giving_way


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
