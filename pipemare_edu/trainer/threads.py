"""Who gets which core: every worker its own, and there the threads that compute before the threads
that carry messages.  All this is Linux's; elsewhere nothing changes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import torch


def share(worker: int, workers: int) -> set[int]:
    """The cores that one of so many workers keeps to: its part of those that this process may use;
    none in particular where there are not enough."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(usable) < workers:
        return set()
    return set(usable[worker * len(usable) // workers : (worker + 1) * len(usable) // workers])


def keep_to(cores: Collection[int]) -> None:
    """This thread, and those that it starts, run on these cores, if any are given.

    A message wakes a thread of the worker it goes to, and Linux likes to wake it on the sender's
    core, the more so in a virtual machine, whose idle cores look as if somebody else had them.  The
    sender computes there: the message waits a millisecond, beside a core that has nothing to do.
    """
    if cores:
        with suppress(OSError):  # some containers forbid it; it is only slower then
            os.sched_setaffinity(0, cores)


@contextmanager
def giving_way() -> Iterator[None]:
    """Threads started inside never push a computing thread off its core.

    gloo's event loop tries again and again while a sender holds its connection's lock.  Woken on
    the sender's own core in the middle of a send, it would take the core and spin there for a whole
    slice, 2 to 3 ms, while the sender waits for that very core.  Linux starts a thread with its
    parent's policy, and one of SCHED_BATCH waits for a free core or the end of a slice.
    """
    usual = getattr(os, "SCHED_OTHER", None)
    if usual is None or _policy() != usual:
        yield
        return
    with suppress(OSError):  # as above
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, usual, os.sched_param(0))


@contextmanager
def one_thread() -> Iterator[None]:
    """One intra-op thread of torch inside: the bits of a product depend on how many there are, and
    beside other work small products take three times as long on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _policy() -> int | None:
    """This thread's; None where the system has none to tell."""
    try:
        return os.sched_getscheduler(0)
    except OSError:
        return None
