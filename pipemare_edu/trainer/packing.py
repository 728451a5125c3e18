"""A message as one tensor of bytes: a fixed-size header that says what it is, then the payload.

header  MAGIC, kind, index, payload bytes; the form: is a tuple?, tensors, then per tensor
        dtype, requires_grad, dimensions, sizes              (int64, HEADER bytes in all)
payload the tensors' own bytes, each from a multiple of 64
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import PipelineError
from .value import Value, as_tuple

MAGIC = 0x70697065
HEADER = 1024
_ALIGN = 64
_DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
_NONE = -1
_START = struct.Struct("=4q")  # MAGIC, kind, index, payload bytes
_REST = struct.Struct(f"={(HEADER - _START.size) // 8}q")


class Form(NamedTuple):
    """What a payload is made of; `tensors` holds (dtype number, requires_grad, sizes)."""

    is_tuple: bool
    tensors: tuple[tuple[int, bool, tuple[int, ...]], ...]

    @classmethod
    def of(cls, value: Value) -> Form:
        tensors = (
            (_NONE, False, ())
            if t is None
            else (_DTYPES.index(t.dtype), t.requires_grad, tuple(t.shape))
            for t in as_tuple(value)
        )
        return cls(isinstance(value, tuple), tuple(tensors))

    @property
    def size(self) -> int:
        """Payload bytes."""
        return sum(size + -size % _ALIGN for size in map(_bytes, self.tensors))


class Header(NamedTuple):
    """What a header says."""

    kind: str
    index: int  # type: ignore[assignment]  # as in Op
    payload: int
    form: Form


class Envelope:
    """A buffer for messages of one form, one after the other.

    Where a message finds the core's caches full of weights, every call of torch costs ten times as
    much as in a loop; so all that depends on the form alone is made once.

    room  payload bytes that the buffer has; a larger payload is in `overflow`
    size  payload bytes of the form
    """

    def __init__(self, form: Form, room: int, device: torch.device | str = "cpu") -> None:
        self.form, self.room = form, room
        self.size = size = form.size
        self.buffer = torch.zeros(HEADER + room, dtype=torch.uint8, device=device)
        self.overflow = self.buffer.new_empty(size) if size > room else None
        payload = self.buffer[HEADER:] if self.overflow is None else self.overflow
        self._tensors = list(_tensors(form, payload))
        self._head = self.buffer[:HEADER]
        self._written = self._head.cpu()  # the same memory on a CPU
        self._memory = self._written.numpy().data
        _REST.pack_into(self._memory, _START.size, *_numbers(form))

    def fill(self, kind: str, index: int, value: Value) -> None:
        """Write a message; `value` is of this form."""
        _START.pack_into(self._memory, 0, MAGIC, ord(kind), index, self.size)
        if self._head.is_cuda:
            self._head.copy_(self._written)
        for mine, t in zip(self._tensors, as_tuple(value), strict=True):
            if mine is not None and t is not None:
                mine.copy_(t.detach())


def _bytes(tensor: tuple[int, bool, tuple[int, ...]]) -> int:
    number, _, shape = tensor
    count = int(number != _NONE)
    for n in shape:
        count *= n
    return count * _DTYPES[number].itemsize


def _numbers(form: Form) -> list[int]:
    """A form as the header has it."""
    numbers = [form.is_tuple, len(form.tensors)]
    for number, grad, shape in form.tensors:
        numbers += [number, grad, len(shape), *shape]
    spare = _REST.size // 8 - len(numbers)
    if spare < 0:
        raise PipelineError(
            f"a message of {len(form.tensors)} tensors does not fit a header: send fewer tensors "
            "between these stages"
        )
    return numbers + [0] * spare


def _tensors(form: Form, payload: Tensor) -> Iterator[Tensor | None]:
    """The tensors of a payload, as views of its bytes."""
    at = 0
    for tensor in form.tensors:
        number, _, shape = tensor
        size = _bytes(tensor)
        flat = payload.narrow(0, at, size)
        yield None if number == _NONE else flat.view(_DTYPES[number]).view(shape)
        at += size + -size % _ALIGN


def read_header(buffer: Tensor) -> Header:
    """The header at the start of `buffer`; PipelineError if there is none."""
    here = buffer if buffer.is_cpu else buffer[:HEADER].cpu()
    data = bytes(here.numpy().data[:HEADER])
    magic, kind, index, payload = _START.unpack_from(data)
    if magic != MAGIC:
        raise PipelineError("a message without a header arrived: the two ends disagree")
    return Header(chr(kind), index, payload, _read_form(data[_START.size :]))


@lru_cache(maxsize=64)
def _read_form(data: bytes) -> Form:
    is_tuple, count, *numbers = _REST.unpack(data)
    tensors, at = [], 0
    for _ in range(count):
        dtype, grad, dims = numbers[at : at + 3]
        tensors.append((dtype, bool(grad), tuple(numbers[at + 3 : at + 3 + dims])))
        at += 3 + dims
    return Form(bool(is_tuple), tuple(tensors))


def unpack(form: Form, payload: Tensor) -> Value:
    """The value; its tensors are views of `payload`."""
    out = [
        t if t is None else t.requires_grad_(grad)
        for t, (_, grad, _) in zip(_tensors(form, payload), form.tensors, strict=True)
    ]
    return tuple(out) if form.is_tuple else out[0]  # type: ignore[return-value]


def to_bytes(kind: str, index: int, value: Value) -> bytes:
    """A message for a pipe between processes."""
    form = Form.of(value)
    envelope = Envelope(form, form.size)
    envelope.fill(kind, index, value)
    return envelope.buffer.numpy().tobytes()


def from_bytes(data: bytes) -> tuple[Header, Value]:
    """The message that `to_bytes` made."""
    buffer = torch.empty(len(data), dtype=torch.uint8)  # aligned, as what bytes hold need not be
    buffer.numpy().data[:] = data
    header = read_header(buffer)
    return header, unpack(header.form, buffer[HEADER:])
