"""Loading torch, without losing a Ctrl-C."""

from __future__ import annotations

import signal
import threading
from importlib import import_module


def load_torch() -> None:
    """Load torch; Ctrl-C waits meanwhile, and raises KeyboardInterrupt then.

    torch loads numpy and goes on without it if that raises, so that a Ctrl-C in the middle is lost.
    """
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    here = threading.current_thread() is threading.main_thread()
    if usual and here:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        import_module("torch")
    finally:
        if usual and here:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
