"""Frames between a kernel's process and its owner: a 4-byte big-endian length, then JSON. Nothing runs when it is read.

What comes from a kernel is hostile until looked at: `Frames` bounds its size, `autograder.kernels.outputs` its content.
"""

from __future__ import annotations

import json
import struct
from typing import Any

MAX_FRAME_BYTES = 4 * 2**20
"""Far above any honest output (a figure of this course takes 0.1 MiB); reading it takes thirty times as much memory."""


class BrokenChannel(Exception):
    """The bytes are no frames; whoever sends such is not listened to any more."""


def pack(value: object) -> bytes:
    """One frame. What JSON has no form for is sent as text. Raises BrokenChannel if it is too large."""
    body = json.dumps(value, default=str).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise BrokenChannel(f"a frame of {len(body)} bytes is over the bound of {MAX_FRAME_BYTES}")
    return struct.pack(">I", len(body)) + body


class Frames:
    """Takes bytes as they arrive and hands out whole frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The frames that these bytes complete, in order. Raises BrokenChannel on anything else."""
        self._pending += data
        frames = []
        while len(self._pending) >= 4:
            (length,) = struct.unpack_from(">I", self._pending)
            if length > MAX_FRAME_BYTES:
                raise BrokenChannel(f"a frame of {length} bytes is over the bound of {MAX_FRAME_BYTES}")
            if len(self._pending) < 4 + length:
                break
            body = bytes(self._pending[4 : 4 + length])
            del self._pending[: 4 + length]
            try:
                frames.append(json.loads(body))
            except (ValueError, RecursionError) as error:
                raise BrokenChannel(f"not JSON: {error}") from error
        return frames
