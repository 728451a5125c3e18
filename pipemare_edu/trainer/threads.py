"""Who gets the core: the threads that compute before the threads that carry messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def giving_way() -> Iterator[None]:
    """Threads started inside never push a computing thread off its core (Linux; elsewhere nothing
    changes).

    gloo's event loop tries again and again while a sender holds its connection's lock.  Woken on
    the sender's own core in the middle of a send, it would take the core and spin there for a whole
    slice, 2 to 3 ms, while the sender waits for that very core.  Linux starts a thread with its
    parent's policy, and one of SCHED_BATCH waits for a free core or the end of a slice.
    """
    usual = getattr(os, "SCHED_OTHER", None)
    if usual is None or _policy() != usual:
        yield
        return
    with suppress(OSError):  # some containers forbid it; it is only slower then
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, usual, os.sched_param(0))


def _policy() -> int | None:
    """This thread's; None where the system has none to tell."""
    try:
        return os.sched_getscheduler(0)
    except OSError:
        return None
