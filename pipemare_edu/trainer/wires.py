"""Links that leave the process: torch.distributed messages between neighbouring workers.

One wire per direction and neighbour pair, each with process groups of its own.  A message travels
in one envelope, header and payload together, whose receive was posted before it was sent:

    the envelope of message n has room for a payload as large as that of message n - 2, which both
    ends know; a larger payload follows by itself, exactly its size, in a group for such overflows

so equal shapes cost one message, and a new shape two.  A thread per incoming wire posts receives
two ahead and hands what arrives to the interpreter; a send is waited for only where many before it
are still on their way.

A run that is to end early says so along the wires, in order with everything else: each worker
passes on the minibatch at which it ends.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import LinkLost, PipelineError
from .links import Links
from .packing import HEADER, Envelope, Form, Header, read_header, unpack
from .placement import said
from .threads import giving_way
from .value import Value

NEVER = timedelta(days=365)
_OUTSTANDING = 16  # sends whose buffers are held before the oldest is waited for, and used again
_STOP = "S"  # the run ends before minibatch `index`
_FAIL = "!"  # this worker fails, with the text of its error
_SHARE = "A"  # what `everybody` passes on
_ALIVE = "L"  # nothing but a sign of life: who waits for another must not be taken for lost
_END = "X"  # the last message of a wire, once for each receive that is posted ahead
_LAST_WORDS = timedelta(seconds=1)  # how long a worker that fails waits for them to leave
_PATIENCE = 0.05  # seconds between two looks at what else there is to do while waiting


Arrivals = SimpleQueue[Callable[[], None]]


class Pair(NamedTuple):
    """The process groups of one wire."""

    envelopes: dist.ProcessGroup
    overflows: dist.ProcessGroup


def _pair(sender: int, receiver: int, device: torch.device, timeout: timedelta) -> Pair:
    """New groups for one wire; every worker of the default group calls this alike.

    The first message of a group is where NCCL connects its two ends, which takes both of them; so
    it is sent here, before any receive is posted ahead.
    """
    ends = sorted((sender, receiver))
    with giving_way():
        groups = Pair(*(dist.new_group(ends, timeout=timeout) for _ in range(2)))
    hello = torch.zeros(1, dtype=torch.uint8, device=device)
    for group in groups:
        if dist.get_rank() == sender:
            dist.send(hello, receiver, group=group)
        elif dist.get_rank() == receiver:
            dist.recv(hello, sender, group=group)
    return groups


# torch.distributed.isend and irecv are these calls, and look up ranks before.


def _isend(buffer: Tensor, group: dist.ProcessGroup) -> dist.Work:
    """To the other one of a group of two."""
    return group.send([buffer], 1 - group.rank(), 0)


def _irecv(buffer: Tensor, group: dist.ProcessGroup) -> dist.Work:
    """From the other one of a group of two."""
    return group.recv([buffer], 1 - group.rank(), 0)


class Outgoing:
    """The sending end of a wire."""

    def __init__(self, groups: Pair, device: torch.device) -> None:
        self.groups, self.device = groups, device
        self._room = deque([0, 0])
        self._held: deque[tuple[list[dist.Work], Envelope]] = deque()

    def send(self, kind: str, index: int, value: Value) -> None:
        """Send without waiting; the buffers are held until they have left."""
        form, room = Form.of(value), self._room.popleft()
        envelope = self._envelope(form, room)
        envelope.fill(kind, index, value)
        self._room.append(envelope.size)
        works = [_isend(envelope.buffer, self.groups.envelopes)]
        if envelope.overflow is not None:
            works.append(_isend(envelope.overflow, self.groups.overflows))
        self._held.append((works, envelope))

    def _envelope(self, form: Form, room: int) -> Envelope:
        """One that has left, if it fits; else a new one."""
        if len(self._held) >= _OUTSTANDING:
            used = self._wait()
            if (used.form, used.room) == (form, room):
                return used
        return Envelope(form, room, self.device)

    def _wait(self, *timeout: timedelta) -> Envelope:
        """Until the oldest message has left."""
        works, envelope = self._held.popleft()
        for work in works:
            work.wait(*timeout)
        return envelope

    def close(self) -> None:
        """Tell the other end that nothing follows, and wait until everything has left."""
        for _ in range(2):
            self.send(_END, 0, ())
        self.flush()

    def flush(self, *timeout: timedelta) -> None:
        """Wait until everything has left."""
        while self._held:
            self._wait(*timeout)


class Incoming:
    """The receiving end of a wire: a thread that calls `arrived`."""

    def __init__(
        self,
        groups: Pair,
        device: torch.device,
        arrived: Callable[[Header | BaseException, Value], None],
    ) -> None:
        self.groups, self.device, self._arrived = groups, device, arrived
        # On a GPU a wait holds up the stream that it is called on, and must not hold up the layers.
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._posted: deque[tuple[Any, Tensor]] = deque()
        with self._beside():
            for _ in range(2):
                self._post(0)
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _beside(self) -> Any:
        return torch.cuda.stream(self._stream) if self._stream is not None else nullcontext()

    def _empty(self, size: int) -> Tensor:
        buffer = torch.empty(size, dtype=torch.uint8, device=self.device)
        if self._stream is not None:
            buffer.record_stream(torch.cuda.default_stream(self.device))
        return buffer

    def _post(self, room: int) -> None:
        buffer = self._empty(HEADER + room)
        self._posted.append((_irecv(buffer, self.groups.envelopes), buffer))

    def _receive(self) -> None:
        try:
            with self._beside():
                self._receive_all()
        except BaseException as error:
            self._arrived(error, ())

    def _receive_all(self) -> None:
        ends = 0
        while ends < 2:
            work, buffer = self._posted.popleft()
            work.wait()
            header, payload = read_header(buffer), buffer[HEADER:]
            if header.payload > len(payload):
                payload = self._empty(header.payload)
                _irecv(payload, self.groups.overflows).wait()
            if self._stream is not None:
                self._stream.synchronize()
            if header.kind == _END:
                ends += 1
                continue
            self._post(header.payload)
            self._arrived(header, unpack(header.form, payload))


class Wires(Links):
    """The links of one worker among len(set(homes)): queues inside it, wires to its neighbours.

    homes     the worker that hosts each stage
    timeout   how long a neighbour may be silent
    arrivals  what other threads put there is called in the interpreter's, between two operations
    breathing called inside long operations
    idle      called while the interpreter waits, about every 50 ms, and before it waits
    """

    def __init__(
        self,
        rank: int,
        homes: Sequence[int],
        device: torch.device,
        timeout: timedelta = NEVER,
        arrivals: Arrivals | None = None,
        idle: Callable[[], None] = lambda: None,
        breathing: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__([i for i, home in enumerate(homes) if home == rank])
        self.rank, self.homes, self.device = rank, homes, device
        self.idle, self.breathing = idle, breathing
        self._pulse = timeout.total_seconds() / 4
        self._pulsed = perf_counter()
        self._arrivals = SimpleQueue() if arrivals is None else arrivals
        self._out: dict[int, Outgoing] = {}
        self._in: list[Incoming] = []
        for left in range(max(homes)):
            forward = _pair(left, left + 1, device, timeout)
            backward = _pair(left + 1, left, device, timeout)
            if rank == left:
                self._connect(left + 1, forward, backward, to_stage=homes.index(left + 1) - 1)
            elif rank == left + 1:
                self._connect(left, backward, forward, to_stage=homes.index(rank))

    def _connect(self, peer: int, out: Pair, back: Pair, to_stage: int) -> None:
        """Wires to and from a neighbour; what comes from it is for stage `to_stage`."""
        self._out[peer] = Outgoing(out, self.device)
        self._queues[_SHARE, peer] = deque()

        def arrived(header: Header | BaseException, value: Value) -> None:
            self._arrivals.put(lambda: self._take(header, value, to_stage, peer))

        self._in.append(Incoming(back, self.device, arrived))

    def _take(self, header: Header | BaseException, value: Value, stage: int, peer: int) -> None:
        if isinstance(header, BaseException):
            raise self._lost(peer, header) from header
        if header.kind == _STOP:
            self.on_end(header.index)
        elif header.kind == _FAIL:
            assert isinstance(value, Tensor)
            raise LinkLost(bytes(value.tolist()).decode())
        elif header.kind != _ALIVE:
            to = peer if header.kind == _SHARE else stage
            super().put(header.kind, to, header.index, value)

    def _lost(self, peer: int, error: BaseException) -> LinkLost:
        first = self.homes.index(peer)
        stages = said(range(first, first + self.homes.count(peer)))
        return LinkLost(
            f"worker {self.rank} lost worker {peer} ({stages}): it went "
            f"away, or was silent for longer than the time-out: if it is only slow, raise timeout "
            f"({error})"
        )

    def _send(self, peer: int, kind: str, index: int, value: Value) -> None:
        try:
            self._out[peer].send(kind, index, value)
        except RuntimeError as error:
            if isinstance(error, PipelineError):
                raise
            raise self._lost(peer, error) from error

    def put(self, kind: str, stage: int, index: int, value: Any) -> None:
        home = self.homes[stage]
        if home == self.rank:
            super().put(kind, stage, index, value)
        else:
            self._send(home, kind, index, value)

    def end_at(self, end: int) -> None:
        for peer in self._out:
            self._send(peer, _STOP, end, ())

    def fail(self, text: str) -> None:
        """Tell the neighbours why this worker fails, as far as they can still be told."""
        for wire in self._out.values():
            with suppress(RuntimeError):
                wire.send(_FAIL, 0, self._bytes(text.encode()))
                wire.flush(_LAST_WORDS)

    def _bytes(self, data: bytes) -> Tensor:
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(self.device)

    def breathe(self) -> None:
        self.breathing()
        self._show_life()

    def _show_life(self) -> None:
        if perf_counter() - self._pulsed > self._pulse:
            self._pulsed = perf_counter()
            for peer in self._out:
                self._send(peer, _ALIVE, 0, ())

    def poll(self) -> None:
        self._show_life()
        while not self._arrivals.empty():
            self._arrivals.get()()

    def wait(self) -> bool:
        self.waiting = True
        try:
            while True:
                try:
                    action = self._arrivals.get_nowait()
                except Empty:
                    self.idle()
                    try:
                        action = self._arrivals.get(timeout=_PATIENCE)
                    except Empty:
                        self._show_life()
                        continue
                break
        finally:
            self.waiting = False
        action()
        self.poll()
        return True

    def everybody(self, mine: Any) -> list[Any]:
        """Along the wires, so that whoever goes away meanwhile is named by a neighbour: what the
        workers have travels down to worker 0, and all of it back up."""
        last = max(self.homes)
        above = [] if self.rank == last else self._await(self.rank + 1)
        everything = [mine, *above]
        if self.rank > 0:
            self._pass(self.rank - 1, everything)
            everything = self._await(self.rank - 1)
        if self.rank < last:
            self._pass(self.rank + 1, everything)
        return everything

    def _pass(self, peer: int, what: Any) -> None:
        self._send(peer, _SHARE, 0, self._bytes(pickle.dumps(what)))

    def _await(self, peer: int) -> Any:
        while not self.ready(_SHARE, peer, 0):
            self.wait()
        return pickle.loads(self.get(_SHARE, peer).cpu().numpy())

    def close(self) -> None:
        """Finish every wire in order; nothing of this run stays under way."""
        for peer, wire in self._out.items():
            try:
                wire.close()
            except RuntimeError as error:
                raise self._lost(peer, error) from error
        for incoming in self._in:
            incoming.thread.join()
        self._out.clear()
