"""Which weights an operation reads: the part in which the methods differ.

A stage keeps its trainable weights in one flat tensor that its parameters view.  Autograd saves
parameters by reference, so a backward reads whatever the flat tensor holds at that moment:

    Newest     nothing to do: the newest weights are what is there             (PipeMare)
    Stashed    the version that the microbatch's forward read is written there (PipeDream)
    Corrected  newest - tau * delta is written there                           (PipeMare, T2)

A recompute (R) runs a forward again on the way to its backward, so it reads as a backward does; a
correction then bridges the part of the delay that lies behind it.
The newest weights are put back by copy after the operation (trainer.stage).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

InUse = Callable[[], bool]


class Newest:
    """Forward and backward read the newest weights.  Also the protocol of the others."""

    kind = "none"

    def __init__(self, newest: Tensor) -> None:
        self.newest = newest
        self.peak = 0  # the most bytes of extra weights held at any time

    def alters(self, operation: str, read: int, version: int, asynchronous: bool) -> bool:
        """Must other weights than the newest (`version`) be written for this operation, of a
        microbatch whose forward read version `read`?  `asynchronous` is False during T3."""
        return False

    def put_aside(self, room: Tensor, version: int, in_use: InUse) -> Tensor:
        """A copy of the newest weights, `version`, in `room` or where it is to stay anyway; in_use
        as in `before_update`."""
        return room.copy_(self.newest)

    def write(self, newest: Tensor, read: int) -> None:
        """Write the weights to read into `self.newest`, which still holds the newest ones, as its
        copy `newest` does."""

    def write_again(self, newest: Tensor, read: int, part: float) -> None:
        """`write` for a re-run, which comes after `part` of the delay from forward to backward."""
        self.write(newest, read)

    def version_read(self, read: int, version: int) -> int:
        """The version stamp of what a backward or a re-run reads (a correction keeps the
        newest's)."""
        return version

    def before_update(self, version: int, in_use: InUse) -> None:
        """The newest weights, `version`, are about to change; in_use() tells whether a
        microbatch in flight has read them."""

    def after_backward(self, oldest: int) -> None:
        """No microbatch in flight has read a version below `oldest`."""

    def held(self) -> dict[str, Tensor]:
        """The extra weight-sized tensors that live now, by name (checkpoints keep them)."""
        return {}


class Stashed(Newest):
    """The backward reads the version its forward read: one copy per old version still needed."""

    kind = "stash"

    def __init__(self, newest: Tensor) -> None:
        super().__init__(newest)
        self.stash: dict[int, Tensor] = {}
        self._spare: Tensor | None = None  # the last copy dropped: the next one takes its memory

    def alters(self, operation: str, read: int, version: int, asynchronous: bool) -> bool:
        return operation != "F" and read != version

    def write(self, newest: Tensor, read: int) -> None:
        self.newest.copy_(self.stash[read])

    def version_read(self, read: int, version: int) -> int:
        return read

    def put_aside(self, room: Tensor, version: int, in_use: InUse) -> Tensor:
        return self._kept(version) if in_use() else super().put_aside(room, version, in_use)

    def before_update(self, version: int, in_use: InUse) -> None:
        if in_use():
            self._kept(version)
            self.peak = max(self.peak, len(self.stash) * self.newest.nbytes)
        else:  # put aside for one who has finished since
            self._spare = self.stash.pop(version, self._spare)

    def _kept(self, version: int) -> Tensor:
        """The stash's copy of the newest weights, made if it is not there."""
        if version not in self.stash:
            spare, self._spare = self._spare, None
            self.stash[version] = self.newest.clone() if spare is None else spare.copy_(self.newest)
        return self.stash[version]

    def after_backward(self, oldest: int) -> None:
        for version in [v for v in self.stash if v < oldest]:
            self._spare = self.stash.pop(version)

    def held(self) -> dict[str, Tensor]:
        return {str(version): w for version, w in self.stash.items()}


class Corrected(Newest):
    """T2: the backward reads  w - tau delta,  delta <- gamma delta + (1 - gamma)(w' - w).

    With m an average of past weights, m <- gamma m + (1 - gamma) w before each update, delta is
    (1 - gamma)(w - m): the correction steps back towards, and past, where the weights have been,
    and one lerp does it (PAPER.md section 2).
    """

    kind = "correction"

    def __init__(self, newest: Tensor, tau: float, gamma: float) -> None:
        super().__init__(newest)
        self.tau, self.gamma = tau, gamma
        self._back = tau * (1.0 - gamma)  # how far a read steps back towards the average
        self.average = newest.clone()
        self._averaged = -1  # the last version that went into the average
        self.peak = self.average.nbytes

    def alters(self, operation: str, read: int, version: int, asynchronous: bool) -> bool:
        return operation != "F" and asynchronous

    def write(self, newest: Tensor, read: int) -> None:
        self.newest.lerp_(self.average, self._back)  # in place: half the time of out=

    def write_again(self, newest: Tensor, read: int, part: float) -> None:
        """u_recomp = w - (tau_fwd - tau_recomp) delta, with the one gamma of both reads."""
        self.newest.lerp_(self.average, part * self._back)

    def before_update(self, version: int, in_use: InUse) -> None:
        if version != self._averaged:  # a run that was stopped may have prepared it already
            self.average.lerp_(self.newest, 1.0 - self.gamma)
            self._averaged = version

    @property
    def delta(self) -> Tensor:
        """The paper's delta: the averaged update of this stage's weights, one per step."""
        return (self.newest - self.average).mul_(1.0 - self.gamma)

    def held(self) -> dict[str, Tensor]:
        return {"average": self.average}
