"""Values on a pipe between two processes of ours: the length of a pickle, then the pickle."""

from __future__ import annotations

import pickle
import struct
from typing import IO

LENGTH = struct.Struct("<Q")
BEGIN = b"\0bubbleproof serves\0"  # what was written before was not for us


def packed(value: object) -> bytes:
    """A value as it goes over a pipe. Raises what ``pickle`` raises where it cannot."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def write_all(pipe: IO[bytes], data: bytes) -> None:
    """Write to a pipe without a buffer. Raises ``OSError`` where nobody reads any more."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) :]


def read_begin(pipe: IO[bytes]) -> None:
    """Pass over what others wrote, as a ``sitecustomize`` may. Raises ``EOFError`` at the end."""
    seen = b""
    while seen != BEGIN:
        seen = (seen + _exactly(pipe, 1))[-len(BEGIN) :]


def read_frame(pipe: IO[bytes]) -> object:
    """Wait for one value. Raises ``EOFError`` where the other end has gone."""
    (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
    value: object = pickle.loads(_exactly(pipe, length))
    return value


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    parts, missing = [], size
    while missing:
        part = pipe.read(missing)
        if not part:
            raise EOFError
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
