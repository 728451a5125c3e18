"""What one microbatch leaves at a stage between its operations, and what is noted about it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .value import Value


class Read(NamedTuple):
    """How old the weights were that one microbatch's forward, backward and re-run (None: not
    re-run) read: the version when its gradient is applied (the next update) less those read.
    full: its step came when every stage's pipe was full."""

    full: bool
    forward: int
    backward: int
    recompute: int | None = None


class Flight(NamedTuple):
    """What a forward leaves for its backward: leaves, results, the version it read, and that
    which its re-run read if there was one."""

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    version: int
    reread: int | None = None


class Waiting(NamedTuple):
    """What a forward leaves for its re-run: its input at a segment's first stage, its version."""

    value: Value | None
    version: int


class Saved(NamedTuple):
    """What autograd saves of one microbatch at one stage, weights and buffers left out, and the
    bytes of the stage's input."""

    tensors: int
    bytes: int
    input_bytes: int
