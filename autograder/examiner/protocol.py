"""Plain data between a kernel and the examiner: JSON for structure, raw bytes for tensors, nothing that runs when read.

A message is a 4-byte big-endian header length, a JSON header, then the bytes of every tensor. Sizes are bounded.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import torch

MAX_MESSAGE_BYTES = 64 * 2**20
"""Far above any honest answer (the largest case returns less than 1 MiB)."""
MAX_HEADER_BYTES = 4 * 2**20
"""The structure of a message; reading it takes thirty times as much memory."""
NONCE_BYTES = 16
"""Random bytes: those before the questions of an examination, with which its answer begins; and those by which a kernel
knows that a message answers its own request, and not one that was interrupted before."""
QUESTIONS, REFUSED, RECEIPT = b"Q", b"refused", b"received"
"""What the examiner says after those: here are questions; no; I have judged."""
MAX_ITEMS = 10_000
MAX_SHORT_WAY_BYTES = 2**20
MAX_DEPTH = 8
MAX_TEXT = 10_000
MAX_ELEMENTS = 2**48
"""Far above any tensor, also one without values ("meta"), and far below where torch's own arithmetic overflows."""

_DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
}


class MalformedMessage(ValueError):
    """The bytes are not a message of this protocol; the text says where they go wrong."""


class Unencodable:
    """Stands for a value that is not plain data; only the name of its type crosses."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name


class Layer:
    """A token-mixing layer as plain data; the client makes a callable of it. `weights` is `(length, length)`."""

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = weights


def encode(value: object) -> bytes:
    """A message with `value`: None, bool, int, float, str, tuple, list, dict (str keys), tensors, dtypes, or nests.

    Anything else, whatever is too large, and whatever raises while it is read, is sent as the name of its type.
    """
    blobs: list[bytes] = []
    items, room = 0, MAX_MESSAGE_BYTES // 2

    def tree(item: object, depth: int) -> Any:
        nonlocal items, room
        items += 1  # counted over the whole message: nests of long lists grow without bound otherwise
        if depth > MAX_DEPTH:
            return {"other": "too deeply nested value"}
        if items > MAX_ITEMS:
            return {"other": "value with too many parts"}
        before = len(blobs), room
        try:
            return plain(item, depth)
        except Exception:  # an object may raise wherever it is touched; then its type is all that is known of it
            del blobs[before[0] :]
            room = before[1]
            return {"other": _type_name(item)}

    def plain(item: object, depth: int) -> Any:
        if item is None or isinstance(item, bool):
            return None if item is None else bool(item)
        if isinstance(item, int):
            return int(item) if -(2**63) <= item < 2**63 else {"other": "int beyond 64 bits"}
        if isinstance(item, float):
            return float(item)
        if isinstance(item, str):
            return _text(item)
        if isinstance(item, torch.Tensor):
            return tensor(item)
        if isinstance(item, torch.dtype) and str(item).removeprefix("torch.") in _DTYPES:
            return {"dtype": str(item).removeprefix("torch.")}
        if isinstance(item, Layer):
            return {"layer": tensor(item.weights)}
        if isinstance(item, (tuple, list)) and len(item) <= MAX_ITEMS - items:
            return {"list" if isinstance(item, list) else "tuple": [tree(part, depth + 1) for part in item]}
        if isinstance(item, dict) and len(item) <= MAX_ITEMS - items and all(isinstance(key, str) for key in item):
            return {"dict": [[_text(key), tree(part, depth + 1)] for key, part in item.items()]}
        if isinstance(item, Unencodable):
            return {"other": item.type_name[:MAX_TEXT]}
        return {"other": _type_name(item)}

    def tensor(item: torch.Tensor) -> dict[str, Any]:
        nonlocal room
        name = str(item.dtype).removeprefix("torch.")
        if name not in _DTYPES or item.layout != torch.strided:
            return {"other": f"torch.Tensor of {name}, {item.layout}"}
        header = {"tensor": name, "shape": list(item.shape), "device": item.device.type}
        if not item.is_meta:
            size = item.numel() * item.element_size()
            if size > room:  # asked before it is copied: an expanded tensor takes no memory until then
                return {"other": f"torch.Tensor of {size} bytes, too large"}
            flat = item.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            blobs.append(flat.view(torch.uint8).numpy().tobytes())
            room -= size
        return header

    header = json.dumps(tree(value, 0)).encode()
    message = struct.pack(">I", len(header)) + header + b"".join(blobs)
    if len(message) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"a message of {len(message)} bytes is over the bound of {MAX_MESSAGE_BYTES}")
    return message


def passed_on(value: Any) -> Any:
    """`decode(encode(value))`, by a shorter way where that is sure to come to the same.

    Thousands of a judge's own observations are tensors in the machine's memory, alone or in a dict or tuple.
    """
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: passed_on(part) for name, part in value.items()}
    if type(value) is tuple:
        return tuple(passed_on(part) for part in value)
    if value is None or type(value) in (bool, float) or (type(value) is str and value.isascii() and len(value) < 100):
        return value
    if type(value) is torch.Tensor and value.device.type == "cpu" and value.layout == torch.strided:
        size = value.numel() * value.element_size()
        if str(value.dtype).removeprefix("torch.") in _DTYPES and size <= MAX_SHORT_WAY_BYTES:
            return value.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return decode(encode(value))


def _type_name(item: object) -> str:
    kind = type(item)
    module = str(kind.__module__)
    return (kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}")[:MAX_TEXT]


def decode(message: bytes) -> Any:
    """The value in a message from `encode`. Tensors come back on the device they were on; `meta` ones without values.

    Raises MalformedMessage on anything else; never runs code from the message.
    """
    if len(message) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"a message of {len(message)} bytes is over the bound of {MAX_MESSAGE_BYTES}")
    if len(message) < 4:
        raise MalformedMessage("shorter than its header length")
    (length,) = struct.unpack(">I", message[:4])
    if length > MAX_HEADER_BYTES:
        raise MalformedMessage(f"a header of {length} bytes is over the bound of {MAX_HEADER_BYTES}")
    if 4 + length > len(message):
        raise MalformedMessage("shorter than its header")
    body = memoryview(message)[4 + length :]
    try:
        header = json.loads(message[4 : 4 + length].decode())
    except (ValueError, RecursionError) as error:
        raise MalformedMessage(f"the header is not JSON: {error}") from None
    offset = 0

    def value(node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH + 1:
            raise MalformedMessage("nested too deeply")
        if node is None or isinstance(node, (bool, float)):
            return node
        if isinstance(node, int):
            if not -(2**63) <= node < 2**63:
                raise MalformedMessage("a whole number beyond 64 bits")
            return node
        if isinstance(node, str):
            return text(node)
        if not isinstance(node, dict) or not node:
            raise MalformedMessage(f"unknown node {type(node).__name__}")
        if "tensor" in node:
            return tensor(node)
        if set(node) == {"layer"} and isinstance(node["layer"], dict):
            return Layer(tensor(node["layer"]))
        if set(node) == {"dtype"} and isinstance(node["dtype"], str) and node["dtype"] in _DTYPES:
            return _DTYPES[node["dtype"]]
        if set(node) == {"other"} and isinstance(node["other"], str):
            return Unencodable(text(node["other"]))
        if set(node) == {"list"} and isinstance(node["list"], list):
            return [value(part, depth + 1) for part in node["list"]]
        if set(node) == {"tuple"} and isinstance(node["tuple"], list):
            return tuple(value(part, depth + 1) for part in node["tuple"])
        if set(node) == {"dict"} and isinstance(node["dict"], list):
            pairs = node["dict"]
            if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
                raise MalformedMessage("a dict is a list of [str, value] pairs")
            return {text(pair[0]): value(pair[1], depth + 1) for pair in pairs}
        raise MalformedMessage(f"unknown node with keys {sorted(map(str, node))[:5]}")

    def text(node: str) -> str:
        if len(node) > MAX_TEXT:
            raise MalformedMessage(f"a text of {len(node)} characters is over the bound of {MAX_TEXT}")
        return _text(node)

    def tensor(node: dict[str, Any]) -> torch.Tensor:
        nonlocal offset
        dtype, shape, device = _DTYPES.get(str(node.get("tensor"))), node.get("shape"), node.get("device")
        if dtype is None or not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
            raise MalformedMessage("a tensor needs a known dtype and a shape of whole numbers")
        if len(shape) > 16:
            raise MalformedMessage("a tensor has at most 16 axes")
        if math.prod(max(n, 1) for n in shape) > MAX_ELEMENTS:
            raise MalformedMessage("a tensor of this shape is too large")
        if device == "meta":
            return torch.empty(shape, dtype=dtype, device="meta")
        size = math.prod(shape) * dtype.itemsize
        if offset + size > len(body):
            raise MalformedMessage("fewer bytes than the tensors need")
        data = bytearray(body[offset : offset + size])
        offset += size
        if dtype == torch.bool and max(data, default=0) > 1:
            raise MalformedMessage("a bool tensor holds only the bytes 0 and 1")
        plain = torch.frombuffer(data, dtype=dtype) if size else torch.empty(0, dtype=dtype)
        plain = plain.reshape(shape)
        return _on(device, plain)

    result = value(header, 0)
    if offset != len(body):
        raise MalformedMessage("more bytes than the tensors need")
    return result


def _text(text: str) -> str:
    """A text that can be written to a file: bounded, and without the halves of surrogate pairs that UTF-8 lacks."""
    return str(text)[:MAX_TEXT].encode("utf-8", errors="replace").decode("utf-8")


def _on(device: object, plain: torch.Tensor) -> torch.Tensor:
    """`plain` on the device that it was on when sent, as far as this machine has one."""
    if device == "cpu":
        return plain
    if device not in ("cuda", "mps", "xpu"):
        raise MalformedMessage(f"unknown device {str(device)[:20]!r}")
    try:
        return plain.to(device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise MalformedMessage(f"no device {device!r} here: {error}") from None
