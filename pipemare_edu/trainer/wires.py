"""Links that leave the process: torch.distributed messages between neighbouring workers.

One wire per direction and neighbour pair, each with a process group of its own.  A message travels
in one envelope, header and payload together, whose receive was posted before it was sent:

    the envelope of message n has room for a payload as large as that of message n - 2, which both
    ends know; a larger payload follows by itself, exactly its size, in a group for such overflows

so equal shapes cost one message, and a new shape two.  A thread per incoming wire posts receives
two ahead and hands what arrives to the interpreter; sends are never waited for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import PipelineError
from .links import Links
from .packing import HEADER, Header, pack, read_header, unpack
from .stage import Value

_OUTSTANDING = 64  # sends whose buffers are held before the oldest is waited for
_END = "X"  # the last message of a wire, once for each receive that is posted ahead


class LinkLost(PipelineError):
    """A neighbouring worker went away, or did not answer within the time-out."""


class Pair(NamedTuple):
    """The process groups of one wire."""

    envelopes: dist.ProcessGroup
    overflows: dist.ProcessGroup


class Outgoing:
    """The sending end of a wire to worker `peer`."""

    def __init__(self, peer: int, groups: Pair, device: torch.device) -> None:
        self.peer, self.groups, self.device = peer, groups, device
        self._room = deque([0, 0])
        self._held: deque[tuple[Any, Tensor]] = deque()

    def send(self, kind: str, index: int, value: Value) -> None:
        """Send without waiting; the buffers are held until they have left."""
        head, pieces, size = pack(kind, index, value)
        room = self._room.popleft()
        self._room.append(size)
        head = head.to(self.device)
        if size <= room:
            self._isend(
                torch.cat([head, *pieces, head.new_zeros(room - size)]), self.groups.envelopes
            )
        else:
            self._isend(torch.cat([head, head.new_zeros(room)]), self.groups.envelopes)
            self._isend(torch.cat(pieces), self.groups.overflows)

    def _isend(self, buffer: Tensor, group: dist.ProcessGroup) -> None:
        self._held.append((dist.isend(buffer, self.peer, group=group), buffer))
        if len(self._held) > _OUTSTANDING:
            self._held.popleft()[0].wait()

    def close(self) -> None:
        """Tell the other end that nothing follows, and wait until everything has left."""
        for _ in range(2):
            self.send(_END, 0, ())
        for work, _ in self._held:
            work.wait()
        self._held.clear()


class Incoming:
    """The receiving end of a wire from worker `peer`: a thread that calls `arrived`."""

    def __init__(
        self,
        peer: int,
        groups: Pair,
        device: torch.device,
        arrived: Callable[[Header | BaseException, Value], None],
    ) -> None:
        self.peer, self.groups, self.device, self._arrived = peer, groups, device, arrived
        self._posted: deque[tuple[Any, Tensor]] = deque()
        for _ in range(2):
            self._post(0)
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _post(self, room: int) -> None:
        buffer = torch.empty(HEADER + room, dtype=torch.uint8, device=self.device)
        self._posted.append((dist.irecv(buffer, self.peer, group=self.groups.envelopes), buffer))

    def _receive(self) -> None:
        ends = 0
        try:
            while ends < 2:
                work, buffer = self._posted.popleft()
                work.wait()
                header, payload = read_header(buffer), buffer[HEADER:]
                if header.payload > len(payload):
                    payload = self._second(header.payload)
                if header.kind == _END:
                    ends += 1
                    continue
                self._post(header.payload)
                self._arrived(header, unpack(header, payload))
        except BaseException as error:
            self._arrived(error, ())

    def _second(self, size: int) -> Tensor:
        """The payload that did not fit into its envelope."""
        buffer = torch.empty(size, dtype=torch.uint8, device=self.device)
        dist.recv(buffer, self.peer, group=self.groups.overflows)
        return buffer


class Wires(Links):
    """The links of one worker among `workers`: queues inside it, wires to its neighbours.

    homes  the worker that hosts each stage
    """

    def __init__(self, rank: int, homes: Sequence[int], device: torch.device) -> None:
        super().__init__([i for i, home in enumerate(homes) if home == rank])
        self.rank, self.homes, self.device = rank, homes, device
        self._arrivals: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._out: dict[int, Outgoing] = {}
        for left in range(max(homes)):
            ends = [left, left + 1]
            forward, backward = (Pair(dist.new_group(ends), dist.new_group(ends)) for _ in range(2))
            if rank == left:
                self._connect(left + 1, forward, backward, to_stage=homes.index(left + 1) - 1)
            elif rank == left + 1:
                self._connect(left, backward, forward, to_stage=homes.index(rank))

    def _connect(self, peer: int, out: Pair, back: Pair, to_stage: int) -> None:
        """Wires to and from a neighbour; what comes from it is for stage `to_stage`."""
        self._out[peer] = Outgoing(peer, out, self.device)

        def arrived(header: Header | BaseException, value: Value) -> None:
            self.deliver(lambda: self._take(header, value, to_stage, peer))

        Incoming(peer, back, self.device, arrived)

    def deliver(self, action: Callable[[], None]) -> None:
        """From another thread: run `action` in the interpreter's, and wake it if it waits."""
        self._arrivals.put(action)

    def _take(self, header: Header | BaseException, value: Value, stage: int, peer: int) -> None:
        if isinstance(header, BaseException):
            raise LinkLost(f"worker {self.rank} lost worker {peer}: {header}") from header
        super().put(header.kind, stage, header.index, value)

    def put(self, kind: str, stage: int, index: int, value: Any) -> None:
        home = self.homes[stage]
        if home == self.rank:
            super().put(kind, stage, index, value)
        else:
            self._out[home].send(kind, index, value)

    def wait(self) -> bool:
        self._arrivals.get()()
        while not self._arrivals.empty():
            self._arrivals.get()()
        return True

    def totals(self, values: Tensor) -> Tensor:
        dist.all_reduce(values)
        return values

    def close(self) -> None:
        """Finish every wire in order; nothing of this run stays under way."""
        for wire in self._out.values():
            wire.close()
