"""Worker processes as the training process sees them: started, spoken to, ended.

They are forked from a server that has torch loaded (a tenth of a second each; a fresh interpreter
takes three).  A worker leaves by itself as soon as its pipe of orders closes, so that none outlives
the process that started it, whatever ends that one.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import types
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from ..errors import WorkerLost
from ..plan.clock import Event
from .placement import said
from .worker import main

DEATH_SECONDS = 1.0  # how long the end of a process may take to be known
FOLDER = "PIPEMARE_EDU_FOLDER"  # names the folder of temporary files to the server


def warm_up() -> None:
    """Start the server that workers are forked from: it loads torch, once, in the background."""
    _context()
    with _as_the_server_starts():
        forkserver.ensure_running()


def temporary_folder() -> str:
    """Where this process keeps what it shares with workers.  The server removes it if this process
    does not get to it: it outlives this one, and the workers."""
    return util.get_temp_dir()


def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pipemare_edu.trainer.preload"])
    return context


class Member:
    """One worker process, hosting `stages`; it waits for a job.

    folder   where the workers' rendezvous file is
    cores    that it keeps to; any if there are none
    reports  the pipe from it
    last     the last event that it reported
    """

    def __init__(self, rank: int, stages: range, folder: str, cores: Collection[int]) -> None:
        self.rank, self.stages = rank, stages
        self.last: Event | None = None
        orders, self._orders = multiprocessing.Pipe(duplex=False)
        self.reports, reports = multiprocessing.Pipe(duplex=False)
        arguments = orders, reports, folder, cores
        self._process = _context().Process(target=main, args=arguments, daemon=True)
        with _as_the_server_starts():
            self._process.start()
        orders.close()
        reports.close()
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=_post, args=(self._outbox, self._orders), daemon=True).start()

    def __str__(self) -> str:
        return f"worker {self.rank} ({said(self.stages)})"

    def send(self, data: bytes) -> None:
        """Send bytes, without waiting for the worker to take them."""
        self._outbox.put(data)

    def tell(self, kind: str, what: Any = None) -> None:
        """Give an order (see worker.Worker)."""
        self.send(pickle.dumps((kind, what)))

    def lost(self) -> WorkerLost:
        """How the process ended, whose pipe has closed."""
        self._process.join(DEATH_SECONDS)
        code = self._process.exitcode
        how = f"ended with status {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += " (by hand, or because the machine ran out of memory)"
        if self.last is not None:
            e = self.last
            how += f"; the last that it reported was stage {e.stage + 1}, {e.kind}{e.index}"
        return WorkerLost(f"{self} {how}")

    def dismiss(self) -> None:
        """Let it leave: close its orders."""
        self._outbox.put(None)

    def gone(self, seconds: float) -> None:
        """Wait so long for it to leave, then end it: it is stopped, or deep in C code."""
        self._process.join(max(0.0, seconds))
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()
        self.reports.close()


def _post(outbox: SimpleQueue[bytes | None], orders: Connection) -> None:
    """Send what the outbox gets, in a thread of its own: a stopped worker takes nothing."""
    with suppress(OSError), orders:
        while (data := outbox.get()) is not None:
            orders.send_bytes(data)


@contextmanager
def _as_the_server_starts() -> Iterator[None]:
    """Tell the server, should it start now, the temporary folder; make it deaf to Ctrl-C, which is
    the trainer's, also while it loads; and keep multiprocessing from running the caller's script
    again in a worker: what is defined there travels by value."""
    resource_tracker.ensure_running()  # it would end the deafness
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main_module = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    os.environ[FOLDER] = temporary_folder()
    try:
        yield
    finally:
        os.environ.pop(FOLDER, None)  # two threads may start workers at once
        sys.modules["__main__"] = main_module
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
