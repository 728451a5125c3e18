"""One worker: a process that hosts some consecutive stages of a fit.

It talks with its neighbours over torch.distributed, and with the process that trains over two
pipes, `orders` (to it) and `reports` (from it).  It leaves when `orders` closes, whatever it is
doing then: that is how a run is stopped hard, and what happens when the trainer's process dies.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist

from ..errors import LinkLost, PipelineError, StageError
from ..plan.clock import Event
from .blueprint import Built
from .checkpoint import collect
from .feed import Delivered
from .heap import keep_freed
from .interpreter import Interpreter
from .job import Job
from .memory import counted
from .packing import from_bytes
from .randomness import Sandbox
from .threads import keep_to
from .wires import NEVER, Arrivals, Wires

LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
REPORT_SECONDS, REPORT_EVENTS = 0.05, 64  # a report goes out after either
STARTING = "starting"  # where a worker is before its first operation


def main(orders: Connection, reports: Connection, folder: str, cores: Collection[int]) -> None:
    """The worker's process, from its first line to its last.

    folder  of the rendezvous file
    cores   that it keeps to
    """
    keep_to(cores)
    keep_freed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts the whole process group
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    torch.set_num_threads(1)  # the bits of a product depend on the thread count
    try:
        job = orders.recv_bytes()
    except EOFError:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    worker = Worker(orders, reports, folder)
    try:
        worker.run(Job.decode(job))
        threading.Event().wait()  # until `orders` closes
    except BaseException as error:
        with suppress(Exception):
            worker.last_report()
        _report_error(error, reports)
    os._exit(1)  # gloo's threads would hold up a normal exit


def _report_error(error: BaseException, reports: Connection) -> None:
    """Say what went wrong: the error itself if it can travel, else its text."""
    text = "".join(traceback.format_exception(error))
    cause = error.__cause__ if isinstance(error, StageError) else error
    assert cause is not None
    try:
        parcel = cloudpickle.dumps((type(cause), cause.args, vars(cause)))
        pickle.loads(parcel)
    except Exception:
        text_alone = f"{type(cause).__name__}: {cause}"
        parcel = cloudpickle.dumps((PipelineError, (text_alone,), {}))
    where = (error.stage, error.operation, error.index) if isinstance(error, StageError) else None
    with suppress(OSError):  # nobody may be left to tell
        reports.send(("error", (where, parcel, text, isinstance(error, LinkLost))))


class Worker:
    """The stages of one worker and their interpreter, with what it is told and what it tells."""

    job: Job
    links: Wires
    feed: Delivered
    interpreter: Interpreter | None = None

    def __init__(self, orders: Connection, reports: Connection, folder: str) -> None:
        self._orders, self._reports, self._folder = orders, reports, folder
        self._arrivals: Arrivals = SimpleQueue()
        self._events: list[Event] = []
        self._due = 0.0
        self._telling = threading.Lock()  # two threads send reports
        warnings.showwarning = self._pass_on  # type: ignore[assignment]
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, job: Job) -> None:
        """Everything, to the end of the fit."""
        self.job = job
        device = job.device
        if device.type == "cuda":
            torch.cuda.set_device(device)
        self.links = self._connect(device)
        self.feed = Delivered(job.blueprint.microbatches, device)
        built = stages, optimizers = job.build()
        self.interpreter = job.interpreter(built, self.feed, self.links)
        self._tell("ready", None)
        with Sandbox(device):
            drained = partial(self._drained, built)
            for event in self.interpreter.follow(job.plan, job.last, drained):
                self._events.append(event)
                if len(self._events) >= REPORT_EVENTS or event.end > self._due:
                    self._report()
        self._report()
        self.links.close()
        reads = [stage.reads for stage in stages]
        memory = [counted(s, o) for s, o in zip(stages, optimizers, strict=True)]
        self._tell("done", (stages[0].version, reads, memory, collect(*built).encode()))

    def _connect(self, device: torch.device) -> Wires:
        """Meet the other workers; the rendezvous file is not needed any more then."""
        job, world = self.job, len(self.job.devices)
        store = dist.FileStore(f"{self._folder}/rendezvous", world)
        # Nobody waits in vain here: the trainer's process watches, and knows when it pauses.
        dist.init_process_group(
            job.backend, store=store, rank=job.rank, world_size=world, timeout=NEVER
        )
        links = Wires(job.rank, job.homes, device, NEVER, self._arrivals, self._idle, self._breathe)
        dist.barrier()
        if job.rank == 0:
            shutil.rmtree(self._folder, ignore_errors=True)
        return links

    def _drained(self, built: Built, step: int) -> None:
        if self.job.plan.drains(step):
            self._report()
            self._tell("drained", (step, collect(*built).encode()))

    def _idle(self) -> None:
        """While there is nothing to do: nothing stays untold for long."""
        if self._events:
            self._breathe()

    def _breathe(self) -> None:
        """Inside a long operation: a report now and then, even with nothing in it."""
        run = self.interpreter
        if run is not None and perf_counter() - run.began > self._due:
            self._report()

    def _report(self) -> None:
        """Send the events, losses and scores since the last report."""
        run = self.interpreter
        assert run is not None
        self._due = perf_counter() - run.began + REPORT_SECONDS
        self._tell("progress", (run.began, self._events, run.losses, run.scores, run.diverged))
        self._events = []
        run.losses.clear()
        run.scores.clear()

    def last_report(self) -> None:
        """What was not told yet, before the error that ends this worker."""
        if self.interpreter is not None:
            self._report()

    def _tell(self, kind: str, what: Any) -> None:
        with self._telling:
            self._reports.send((kind, what))

    def _pass_on(self, message: Any, category: type[Warning], *_: Any) -> None:
        """A warning belongs where the caller sees it."""
        self._tell("warning", (cloudpickle.dumps(category), str(message)))

    def _listen(self) -> None:
        """Take orders, in a thread of its own; leave when nobody gives any."""
        try:
            while True:
                kind, what = self._orders.recv()
                if kind == "where":
                    run = self.interpreter
                    self._tell("where", STARTING if run is None else run.where())
                else:
                    self._arrivals.put(lambda kind=kind, what=what: self._obey(kind, what))  # type: ignore[misc]
        except (EOFError, OSError):
            shutil.rmtree(self._folder, ignore_errors=True)
            os._exit(0)

    def _obey(self, kind: str, what: Any) -> None:
        """In the interpreter's thread, between two operations."""
        match kind:
            case "inputs":
                for data in what:
                    header, value = from_bytes(data)
                    self.feed.give_inputs(header.index, value)
            case "targets":
                for data, share in what:
                    header, value = from_bytes(data)
                    self.feed.give_target(header.index, value, share)
            case "stop" if self.interpreter is not None:
                self.interpreter.end_at(self.interpreter.started if what is None else what)
