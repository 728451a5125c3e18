"""A message as one tensor of bytes: a fixed-size header that says what it is, then the payload.

header  MAGIC, kind, index, payload bytes, is a tuple?, tensors, then per tensor
        dtype, requires_grad, dimensions, sizes              (int64, HEADER bytes in all)
payload the tensors' own bytes, each from a multiple of 64
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import PipelineError
from .value import Value, as_tuple

MAGIC = 0x70697065
HEADER = 1024
_NUMBERS = HEADER // 8
_DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
_NONE = -1
_FORM = struct.Struct(f"={_NUMBERS}q")


class Header(NamedTuple):
    """What a header says; `tensors` holds (dtype number, requires_grad, sizes)."""

    kind: str
    index: int  # type: ignore[assignment]  # as in Op
    payload: int
    is_tuple: bool
    tensors: tuple[tuple[int, bool, tuple[int, ...]], ...]


def pack(kind: str, index: int, value: Value) -> tuple[Tensor, list[Tensor], int]:
    """(header, pieces of bytes, payload bytes) of a message."""
    tensors = as_tuple(value)
    numbers = [MAGIC, ord(kind), index, 0, isinstance(value, tuple), len(tensors)]
    pieces, size = [], 0
    for t in tensors:
        if t is None:
            numbers += [_NONE, 0, 0]
            continue
        numbers += [_DTYPES.index(t.dtype), t.requires_grad, t.ndim, *t.shape]
        flat = t.detach().contiguous().reshape(-1).view(torch.uint8)
        gap = -len(flat) % 64
        pieces += [flat, flat.new_zeros(gap)] if gap else [flat]
        size += len(flat) + gap
    if len(numbers) > _NUMBERS:
        raise PipelineError(
            f"a message of {len(tensors)} tensors does not fit a header: send fewer tensors "
            "between these stages"
        )
    numbers[3] = size
    head = bytearray(HEADER)
    struct.pack_into(f"={len(numbers)}q", head, 0, *numbers)
    return torch.frombuffer(head, dtype=torch.uint8), pieces, size


def read_header(buffer: Tensor) -> Header:
    """The header at the start of `buffer`; PipelineError if there is none."""
    numbers = _FORM.unpack(buffer[:HEADER].cpu().numpy().data)
    if numbers[0] != MAGIC:
        raise PipelineError("a message without a header arrived: the two ends disagree")
    kind, index, payload, is_tuple, count = numbers[1:6]
    tensors, at = [], 6
    for _ in range(count):
        dtype, grad, dims = numbers[at : at + 3]
        tensors.append((dtype, bool(grad), tuple(numbers[at + 3 : at + 3 + dims])))
        at += 3 + dims
    return Header(chr(kind), index, payload, bool(is_tuple), tuple(tensors))


def unpack(header: Header, payload: Tensor) -> Value:
    """The value; its tensors are views of `payload`."""
    out: list[Tensor | None] = []
    at = 0
    for number, grad, shape in header.tensors:
        if number == _NONE:
            out.append(None)
            continue
        dtype = _DTYPES[number]
        count = 1
        for n in shape:
            count *= n
        size = count * dtype.itemsize
        flat = payload[at : at + size].view(dtype)
        out.append(flat.view(shape).requires_grad_(grad))
        at += size + -size % 64
    return tuple(out) if header.is_tuple else out[0]  # type: ignore[return-value]


def to_bytes(kind: str, index: int, value: Value) -> bytes:
    """A message for a pipe between processes."""
    head, pieces, _ = pack(kind, index, value)
    return torch.cat([head, *(p.cpu() for p in pieces)]).numpy().tobytes()


def from_bytes(data: bytes) -> tuple[Header, Value]:
    """The message that `to_bytes` made."""
    buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8).clone()  # aligned
    header = read_header(buffer)
    return header, unpack(header, buffer[HEADER:])
