"""Moments in which a Ctrl-C has to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C waits for the end of this, and raises KeyboardInterrupt then.

    At the end of a run it would leave half of that undone.  Where modules are loaded it can be
    lost: torch goes on without numpy if that raises, and Python drops what is raised where it
    forgets a module's lock.
    """
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    here = threading.current_thread() is threading.main_thread()
    if usual and here:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        if usual and here:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
