"""The engine that runs the stages in worker processes on this machine.

This process hosts no stage.  It reads the caller's batches a little ahead, sends inputs to the
first worker and targets to the last, and takes what they report.  The first error wins; then, as
at every end, all workers are dismissed.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from time import perf_counter
from typing import Any, NamedTuple

from ..errors import PipelineError, StageError, WorkerLost
from ..plan.clock import Event
from . import checkpoint
from .checkpoint import State
from .fit import Fit
from .job import job
from .members import Member, temporary_folder
from .memory import counted
from .packing import to_bytes
from .placement import START_SECONDS, Placement
from .threads import share
from .worker import STARTING

AHEAD = 32  # minibatches sent before the first stage starts them ...
AHEAD_BYTES = 1 << 24  # ... or as many as hold so many bytes, but at least two
LOOK_SECONDS = 0.05  # between two looks at whether the run is asked to stop
ECHO_SECONDS = 0.3  # how long the first error waits for its cause
ANSWER_SECONDS = 1.0  # how long a worker may take to say where it is
LEAVE_SECONDS = 0.5  # how long the workers may take to leave


class Failure(NamedTuple):
    """An error that a worker reported, or its end.  echo: only that a neighbour went away."""

    error: BaseException
    echo: bool


class Done(NamedTuple):
    """A worker's last report: the step, and per stage what was read and what was held."""

    step: int
    reads: list[Any]
    memory: list[dict[str, int]]
    state: bytes


class Workers:
    """Runs a fit in worker processes.  See session.Engine."""

    def __init__(self, fit: Fit, placement: Placement, timeout: float) -> None:
        self.fit, self.placement, self.timeout = fit, placement, timeout
        self._feed = fit.feed(fit.trainer.device)
        self._members: list[Member] = []
        self._folder = ""
        self._sent = self._begun = fit.plan.first  # minibatches: sent, begun by the first stage
        self._room = AHEAD
        self._ready: set[int] = set()
        self._silent = 0.0  # seconds of waiting without a word from anybody
        self._zero: float | None = None  # perf_counter() at the first event
        self._scores: list[tuple[int, dict[str, float]]] = []
        self._diverged: tuple[int, str] | None = None
        self._done: dict[int, Done] = {}
        self._parts: dict[int, dict[int, bytes]] = {}  # of checkpoints: step, worker
        self._consistent: tuple[int, State] | None = None  # the last checkpoint
        self._broken: Exception | None = None  # what the caller's batches raised
        self._places: dict[int, Any] = {}  # where workers say that they are

    def advance(self, until: float) -> bool:
        run = self.fit.run
        stopping = run.stop
        if not self._members and stopping:
            return True
        if not self._members:
            self._start()
        with self.fit.sandbox:  # one thread here as well: idle ones spin, on the workers' cores
            while not self._all_done():
                self._feed_workers()
                seconds = until - perf_counter()
                if seconds <= 0 or run.stop is not stopping:
                    return False
                self._listen(min(seconds, LOOK_SECONDS))
        if self._broken is not None:
            raise self._broken
        return True

    def _all_done(self) -> bool:
        return len(self._done) == len(self._members)

    def scores(self) -> list[tuple[int, dict[str, float]]]:
        scores, self._scores = self._scores, []
        return scores

    def diverged(self) -> tuple[int, str] | None:
        return self._diverged

    def wind_down(self) -> None:
        self._stop(None)

    def _stop(self, end: int | None) -> None:
        """Send nothing more, and end before minibatch `end`, or before the first not begun."""
        self._sent = self.fit.last
        if self._members:
            self._members[0].tell("stop", end)

    def finish(self, drained: bool) -> str:
        run, trainer = self.fit.run, self.fit.trainer
        run.memory = [
            counted(s, o) for s, o in zip(trainer.stages, trainer.optimizers, strict=True)
        ]
        if self._members and self._all_done():
            parts = [self._done[rank] for rank in range(len(self._members))]
            run.trace.reads = [reads for part in parts for reads in part.reads]
            run.memory = [counts for part in parts for counts in part.memory]
            whole = checkpoint.merge(State.decode(part.state) for part in parts)
            self._take_back(parts[0].step, whole)
            return "" if drained else self.fit.left(f"after step {parts[0].step}", dropped=False)
        if drained:
            return ""
        if self._consistent is None:
            return self.fit.left("from before the run")
        self._take_back(*self._consistent)
        return self.fit.left(f"of the checkpoint at step {self._consistent[0]}")

    def _take_back(self, step: int, state: State) -> None:
        trainer = self.fit.trainer
        checkpoint.put_back(state, trainer.stages, trainer.optimizers)
        for stage in trainer.stages:
            stage.version = step

    def close(self) -> None:
        for member in self._members:
            member.dismiss()
        deadline = perf_counter() + LEAVE_SECONDS
        for member in self._members:
            member.gone(deadline - perf_counter())
        self._members = []
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        place, count = self.placement, self.placement.workers
        jobs = [
            job(self.fit, place, rank).encode() for rank in range(count)
        ]  # or no process at all
        self._folder = tempfile.mkdtemp(prefix="pipemare_edu-", dir=temporary_folder())
        for rank, data in enumerate(jobs):
            cores = share(rank, count) if place.devices[rank] == "cpu" else ()
            member = Member(rank, place.hosted(rank), self._folder, cores)
            self._members.append(member)
            member.send(data)

    def _feed_workers(self) -> None:
        """Send minibatches ahead.  If the caller's batches raise, those before are finished."""
        try:
            self._send_ahead()
        except Exception as error:
            if self._sent == self.fit.plan.first:
                raise
            self._broken = error
            self._stop(self._sent)

    def _send_ahead(self) -> None:
        """Read and send minibatches until enough are under way.

        Many at a time, because every message wakes a worker, but for no longer than a look at
        whether the run is asked to stop may take.
        """
        feed, until = self._feed, perf_counter() + LOOK_SECONDS
        if self._sent - self._begun > self._room // 2:
            return
        while (
            self._sent < self.fit.last
            and self._sent - self._begun < self._room
            and perf_counter() < until
        ):
            n = feed.microbatches
            own = range(self._sent * n, (self._sent + 1) * n)
            feed.ready(own[-1], True, True)
            inputs = [to_bytes("F", m, feed.inputs(m)) for m in own]
            pairs = [feed.target(m) for m in own]
            targets = [
                (to_bytes("F", m, t), share) for m, (t, share) in zip(own, pairs, strict=True)
            ]
            self._members[0].tell("inputs", inputs)
            self._members[-1].tell("targets", targets)
            size = sum(map(len, inputs)) + sum(len(data) for data, _ in targets)
            self._room = max(2, min(AHEAD, AHEAD_BYTES // size))
            self._sent += 1

    def _listen(self, seconds: float) -> None:
        """Take reports for so long at most.  Raises what a worker raised, or that one is gone or
        hangs."""
        before = perf_counter()
        heard = False
        for member in self._heard(seconds):
            heard = True
            failure = self._take(member)
            if failure is not None:
                raise self._cause(failure)
        self._silent = 0.0 if heard else self._silent + perf_counter() - before
        if self._silent > self._patience():
            raise self._hung()

    def _patience(self) -> float:
        """Seconds of silence after which to ask: the time-out, less what the asking takes."""
        if len(self._ready) < len(self._members):
            return max(self.timeout, START_SECONDS)
        return self.timeout - min(ANSWER_SECONDS + LEAVE_SECONDS, self.timeout / 10)

    def _heard(self, seconds: float) -> Iterator[Member]:
        """The workers that report something within so many seconds."""
        members = {m.reports: m for m in self._members if m.rank not in self._done}
        for connection in wait(list(members), seconds):
            yield members[connection]  # type: ignore[index]

    def _take(self, member: Member) -> Failure | None:
        """Take one report of a worker."""
        try:
            kind, what = member.reports.recv()
        except (EOFError, OSError):
            return Failure(member.lost(), echo=False)
        match kind:
            case "ready":
                self._ready.add(member.rank)
            case "progress":
                self._progress(member, *what)
            case "drained":
                self._checkpoint(member.rank, *what)
            case "done":
                self._done[member.rank] = Done(*what)
            case "where":
                self._places[member.rank] = what
            case "warning":
                category, text = what
                warnings.warn(text, pickle.loads(category), stacklevel=2)
            case "error":
                return _failure(*what)
        return None

    def _progress(
        self,
        member: Member,
        began: float,
        events: list[Event],
        losses: list[float],
        scores: list[tuple[int, dict[str, float]]],
        diverged: tuple[int, str] | None,
    ) -> None:
        run, n = self.fit.run, self.fit.plan.microbatches
        run.losses += losses
        self._scores += scores
        if diverged:
            self._diverged, self._sent = diverged, self.fit.last
        if not events:
            return
        if self._zero is None:
            self._zero = began + events[0].start
        shift = began - self._zero  # processes of one machine share the clock of perf_counter
        for e in events:
            run.trace.record(e._replace(start=e.start + shift, end=e.end + shift))
            if e.stage == 0 and e.kind == "F":
                self._begun = max(self._begun, e.index // n + 1)
        member.last = events[-1]

    def _checkpoint(self, rank: int, step: int, data: bytes) -> None:
        """A worker has drained for a checkpoint; the last one's part completes it."""
        parts = self._parts.setdefault(step, {})
        parts[rank] = data
        if len(parts) == len(self._members):
            state = checkpoint.merge(State.decode(parts[r]) for r in sorted(parts))
            del self._parts[step]
            self._consistent = step, state
            self.fit.drained(step, lambda: state)

    def _cause(self, failure: Failure) -> BaseException:
        """The first error that is not only about a neighbour's end."""
        deadline = perf_counter() + ECHO_SECONDS
        spoken: set[int] = set()
        while failure.echo and (seconds := deadline - perf_counter()) > 0:
            for member in self._heard(min(seconds, LOOK_SECONDS)):
                other = None if member.rank in spoken else self._take(member)
                if other is not None and not other.echo:
                    return other.error
                if other is not None:  # an error is a worker's last word
                    spoken.add(member.rank)
        return failure.error

    def _hung(self) -> BaseException:
        """Nobody has said anything for too long: ask everybody where it is."""
        asked = [m for m in self._members if m.rank not in self._done]
        for member in asked:
            member.tell("where")
        deadline = perf_counter() + min(ANSWER_SECONDS, self.timeout / 10)
        while len(self._places) < len(asked) and (seconds := deadline - perf_counter()) > 0:
            for member in self._heard(seconds):
                failure = self._take(member)
                if failure is not None:
                    return self._cause(failure)
        late = f"nothing was heard for {self._silent:.1f} s (if it is only slow, raise timeout)"
        return _culprit(asked, self._places, late)


def _culprit(asked: Sequence[Member], places: dict[int, Any], late: str) -> PipelineError:
    """Which worker holds up the others: one that does not answer, or one at work."""
    for member in asked:
        if member.rank not in places:
            return WorkerLost(f"{member} is stopped, or stuck, and does not answer: {late}")
        if places[member.rank] == STARTING:
            return WorkerLost(f"{member} has not started: {late}")
    for place in places.values():
        if place is not None:
            stage, op = place
            return StageError(stage, op.kind, op.index, TimeoutError(f"it has not ended; {late}"))
    return WorkerLost(f"every worker waits for another: {late}")


def _failure(where: tuple[int, str, int] | None, parcel: bytes, text: str, echo: bool) -> Failure:
    """The error that a worker raised, with its traceback there as a note."""
    kind, arguments, attributes = pickle.loads(parcel)
    error: BaseException = kind.__new__(kind, *arguments)  # its __init__ may want others
    error.args = arguments
    error.__dict__.update(attributes)
    if where is not None:
        error = StageError(*where, error)
    error.add_note(f"In the worker:\n{text}")
    return Failure(error, echo)
