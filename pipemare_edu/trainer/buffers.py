"""Buffers that a second forward must not move, such as BatchNorm's running statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn


@contextmanager
def unmoved(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Put the modules' own buffers back as they were, whether written in place or replaced.

    A write through `.data` leaves the version counter alone, which autograd checks for what it has
    saved by reference.
    """
    before = [
        (module, name, buffer, buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for module, name, buffer, kept in before:
            module._buffers[name] = buffer
            buffer.data.copy_(kept)
