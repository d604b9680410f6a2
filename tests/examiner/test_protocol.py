"""Messages between a kernel and the examiner: what goes in comes out, and hostile bytes are only malformed."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from autograder.examiner import protocol
from autograder.examiner.protocol import Layer, MalformedMessage, Unencodable, decode, encode

DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
]


def message(header: object, body: bytes = b"") -> bytes:
    """A message as its form is described, made without `encode`."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">I", len(text)) + text + body


def same_bits(first: Tensor, second: Tensor) -> bool:
    """Equal in dtype, shape and every bit, NaN included."""
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    flat = [part.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8) for part in (first, second)]
    return torch.equal(*flat)


def sample(dtype: torch.dtype, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    values = torch.randn(shape, generator=generator, dtype=torch.float64) * 50
    return (values > 0) if dtype == torch.bool else values.abs().to(dtype) if dtype == torch.uint8 else values.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 3, 5)], ids=str)
def test_every_dtype_and_shape_comes_back(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """Zero axes, empty ones and several; to the bit."""
    tensor = sample(dtype, *shape)
    assert same_bits(decode(encode(tensor)), tensor)


def test_special_values_come_back() -> None:
    """NaN, both infinities, minus zero and the smallest number keep their bits, in tensors and as Python floats."""
    values = [math.nan, math.inf, -math.inf, -0.0, 5e-324]
    tensor = torch.tensor(values, dtype=torch.float64)
    found = decode(encode({"tensor": tensor, "list": values}))
    assert same_bits(found["tensor"], tensor)
    assert [struct.pack("d", value) for value in found["list"]] == [struct.pack("d", value) for value in values]


def expanded() -> Tensor:
    return torch.arange(3.0).expand(4, 3)


VIEWS = {
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "strided": lambda: torch.arange(20)[3:17:4],
    "expanded": expanded,
    "with an offset": lambda: torch.arange(9.0)[5:],
    "flipped": lambda: torch.arange(5.0).flip(0),
    "conjugate": lambda: torch.tensor([1 + 2j, 3 - 4j]).conj(),
    "negative view": lambda: torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "with gradient": lambda: torch.arange(3.0, requires_grad=True) * 2,
    "parameter": lambda: torch.nn.Parameter(torch.arange(3.0)),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_a_view_comes_back_as_its_values(make: Any) -> None:
    """However a tensor lies in memory, its values cross; gradient and subclass stay behind."""
    tensor = make()
    found = decode(encode(tensor))
    assert type(found) is Tensor
    assert not found.requires_grad
    assert torch.equal(found, tensor.detach())
    assert found.is_contiguous()


def test_a_meta_tensor_crosses_without_values() -> None:
    """Shape and dtype of a tensor on the "meta" device, beside one that has values."""
    meta = torch.empty(100_000, 4096, dtype=torch.float16, device="meta")
    data = encode([meta, torch.tensor([7])])
    assert len(data) < 300
    found, after = decode(data)
    assert (found.device.type, found.dtype, found.shape) == ("meta", torch.float16, meta.shape)
    assert after.tolist() == [7]


def test_nested_data_comes_back_with_its_types() -> None:
    """Lists stay lists, tuples tuples, True is not 1, and several tensors keep their order."""
    value = {
        "a": [1, True, None, 2.5, "text 文字", ()],
        "b": (torch.tensor(1.0), {"c": [torch.tensor([2]), torch.float32]}),
        "": {},
    }
    found = decode(encode(value))
    assert list(found) == ["a", "b", ""]
    assert found["a"] == value["a"]
    assert [type(part) for part in found["a"]] == [int, bool, type(None), float, str, tuple]
    assert found["b"][0].item() == 1.0
    assert found["b"][1]["c"][0].tolist() == [2]
    assert found["b"][1]["c"][1] is torch.float32


def test_a_layer_comes_back_as_a_layer() -> None:
    """The one thing that is more than plain data is named, not pickled."""
    found = decode(encode(Layer(torch.eye(3))))
    assert isinstance(found, Layer)
    assert torch.equal(found.weights, torch.eye(3))


def test_the_largest_whole_numbers() -> None:
    """64 bits cross; more is no plain data, whether Python or a forged message says so."""
    assert decode(encode([2**63 - 1, -(2**63)])) == [2**63 - 1, -(2**63)]
    assert decode(encode(2**63)).type_name == "int beyond 64 bits"
    with pytest.raises(MalformedMessage, match="64 bits"):
        decode(message(2**63))
    with pytest.raises(MalformedMessage):
        decode(message(b"9" * 5000))


def test_texts_are_bounded_and_can_be_written() -> None:
    """A long text is cut, and half a surrogate pair, which no UTF-8 file can hold, becomes a question mark."""
    found = decode(encode({"long": "x" * 20_000, "half \ud800": "\udfff"}))
    assert len(found["long"]) == protocol.MAX_TEXT
    assert found["half ?"] == "?"
    assert decode(message(rb'"\ud800"')) == "?"
    with pytest.raises(MalformedMessage, match="characters"):
        decode(message("x" * 20_000))
    with pytest.raises(MalformedMessage, match="characters"):
        decode(message({"other": "x" * 20_000}))


class RunsWhenUnpickled:
    """Would run code if anything pickled it."""

    ran: ClassVar[list[str]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return RunsWhenUnpickled.ran.append, ("unpickled",)


class AlwaysEqual:
    """Agrees with everything, and is a number, a string and true."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 1.0

    def __bool__(self) -> bool:
        return True


class Bomb:
    """Every attribute raises."""

    @property
    def dtype(self) -> torch.dtype:
        raise RuntimeError("dtype")

    @property
    def shape(self) -> tuple[int, ...]:
        raise RuntimeError("shape")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class LyingFloat(float):
    """A float that compares and prints as it likes."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return '{"other": "smuggled"}'


class LyingText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class LyingTensor(Tensor):
    """A tensor that equals everything."""

    def __eq__(self, other: object) -> Any:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "value",
    [RunsWhenUnpickled(), AlwaysEqual(), Bomb(), len, torch, Tensor],
    ids=["reduce", "equal", "bomb", "function", "module", "class"],
)
def test_an_object_crosses_as_its_type_only(value: object) -> None:
    """Nothing of it runs on either side; the name of its type is all that arrives."""
    found = decode(encode([value]))[0]
    assert type(found) is Unencodable
    assert found.type_name.endswith(type(value).__qualname__)
    assert RunsWhenUnpickled.ran == []


def test_subclasses_arrive_as_plain_values() -> None:
    """A float, str or tensor that overrides comparison loses it on the way."""
    number, text, tensor = decode(encode([LyingFloat(2.5), LyingText("b"), torch.arange(3.0).as_subclass(LyingTensor)]))
    assert (type(number), type(text), type(tensor)) == (float, str, Tensor)
    assert number == 2.5
    assert number != 3.0
    assert text != "a"
    assert not torch.equal(tensor, torch.zeros(3))


@pytest.mark.parametrize(
    "value",
    [torch.eye(3).to_sparse(), {1: "a"}, [0] * (protocol.MAX_ITEMS + 1), torch.ones(2).numpy(), {1, 2}, 1j, b"bytes"],
    ids=["sparse", "dict with int keys", "long list", "numpy", "set", "complex", "bytes"],
)
def test_what_is_not_plain_data_crosses_as_its_type(value: object) -> None:
    """A well-formed message arrives, with a name instead of a value."""
    assert type(decode(encode(value))) is Unencodable


def test_a_nest_that_contains_itself_ends() -> None:
    """Depth is bounded when encoding."""
    loop: list[Any] = []
    loop.append(loop)
    found = decode(encode(loop))
    while isinstance(found, list):
        (found,) = found
    assert found.type_name == "too deeply nested value"


def test_too_large_crosses_as_its_size_and_is_never_copied() -> None:
    """The expanded tensor would take 4 TiB; of three that fit one by one, those that fit together arrive."""
    found = decode(encode(torch.zeros(1).expand(2**40)))
    assert found.type_name == f"torch.Tensor of {2**42} bytes, too large"
    third = torch.zeros(protocol.MAX_MESSAGE_BYTES // 6, dtype=torch.uint8)
    kinds = [type(item) for item in decode(encode([third, third, third, third]))]
    assert kinds == [Tensor, Tensor, Tensor, Unencodable]


def test_too_large_a_message_is_refused() -> None:
    """Bytes over the bound are not looked into."""
    with pytest.raises(MalformedMessage, match="over the bound"):
        decode(bytes(protocol.MAX_MESSAGE_BYTES + 1))


def test_long_lists_in_long_lists_end() -> None:
    """Parts are counted over the whole message, so 81 million of them do not take minutes."""
    found = decode(encode([[0] * 9000] * 9000))
    assert sum(len(part) for part in found if isinstance(part, list)) <= protocol.MAX_ITEMS


class RaisingInt(int):
    def __int__(self) -> int:
        raise RuntimeError("no")


class RaisingList(list[int]):
    def __iter__(self) -> Any:
        yield torch.zeros(3)  # a part that was read before the error must not leave bytes behind
        raise RuntimeError("no")

    def __len__(self) -> int:
        return 2


class RaisingTensor(Tensor):
    def detach(self) -> Any:
        raise RuntimeError("no")


class NoClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "make",
    [lambda: RaisingInt(3), RaisingList, lambda: torch.zeros(2).as_subclass(RaisingTensor), NoClass],
    ids=["int", "list", "tensor", "class"],
)
def test_what_raises_when_read_crosses_as_its_type(make: Callable[[], object]) -> None:
    """One value that cannot be read costs itself, not the message: its neighbours arrive."""
    before, found, after = decode(encode([torch.ones(2), make(), torch.arange(3)]))
    assert type(found) is Unencodable
    assert torch.equal(before, torch.ones(2))
    assert torch.equal(after, torch.arange(3))


def tensor_node(**changes: object) -> dict[str, object]:
    return {"tensor": "float32", "shape": [2], "device": "cpu", **changes}


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "three bytes": b"\0\0\0",
    "no header": b"\0\0\0\0",
    "header longer than the message": struct.pack(">I", 100) + b"null",
    "largest header length": b"\xff\xff\xff\xff" + b"null",
    "header not UTF-8": message(b"\xff\xfe"),
    "header not JSON": message(b"{'a': 1}"),
    "header with something behind it": message(b"null null"),
    "a bare list": message([1, 2]),
    "an empty object": message({}),
    "an unknown node": message({"pickle": "gASVAAAA"}),
    "two kinds in one node": message({"list": [], "tuple": []}),
    "list is no list": message({"list": 3}),
    "dict is no list of pairs": message({"dict": [["a"]]}),
    "dict key is no text": message({"dict": [[1, 2]]}),
    "unknown dtype": message(tensor_node(tensor="qint8"), bytes(8)),
    "dtype is a list": message(tensor_node(tensor=["float32"]), bytes(8)),
    "dtype node unknown": message({"dtype": "object"}),
    "no shape": message({"tensor": "float32", "device": "cpu"}, bytes(8)),
    "shape is a number": message(tensor_node(shape=2), bytes(8)),
    "negative size": message(tensor_node(shape=[-2]), bytes(8)),
    "fractional size": message(tensor_node(shape=[2.0]), bytes(8)),
    "size is true": message(tensor_node(shape=[True]), bytes(4)),
    "size beyond 31 bits": message(tensor_node(shape=[2**31]), bytes(8)),
    "huge size": message(tensor_node(shape=[2**31 - 1]), bytes(8)),
    "product overflows to zero": message(tensor_node(shape=[2**30, 2**30, 2**4]), b""),
    "product overflows to the bytes sent": message(tensor_node(shape=[2**30] * 2 + [2**2 + 1]), bytes(8)),
    "empty, with an overflowing product": message(tensor_node(shape=[2**31 - 1] * 4 + [0])),
    "meta, with an overflowing product": message(tensor_node(shape=[2**31 - 1] * 4, device="meta")),
    "too many axes": message(tensor_node(shape=[1] * 17), bytes(4)),
    "too few bytes": message(tensor_node(), bytes(7)),
    "trailing bytes": message(tensor_node(), bytes(9)),
    "bytes behind no tensor": message(None, b"x"),
    "bool byte above 1": message(tensor_node(tensor="bool"), b"\x01\x02"),
    "unknown device": message(tensor_node(device="disk"), bytes(8)),
    "device is a list": message(tensor_node(device=["cpu"]), bytes(8)),
    "no device": message({"tensor": "float32", "shape": [2]}, bytes(8)),
    "layer of no tensor": message({"layer": {}}),
    "layer is a list": message({"layer": []}),
    "other is no text": message({"other": {"a": 1}}),
    "nested beyond the bound": message(json.loads('{"list": [' * 12 + "]}" * 12)),
    "nested beyond Python's stack": message(b'{"list": [' * 100_000 + b"]}" * 100_000),
    "brackets without end": message(b"[" * 1_000_000),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_malformed(data: bytes) -> None:
    """Whatever is wrong, the one error says so: no crash, no memory taken, no code run."""
    with pytest.raises(MalformedMessage):
        decode(data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the device exists")
def test_a_device_that_is_not_here_is_malformed() -> None:
    """A message cannot make the examiner fail by naming a GPU."""
    with pytest.raises(MalformedMessage, match="no device"):
        decode(message(tensor_node(device="cuda"), bytes(8)))


def test_every_truncation_is_malformed() -> None:
    """Cut anywhere, a message with header and bytes is refused."""
    whole = encode({"returned": torch.arange(5.0), "args_after": (torch.tensor([True, False]), "text")})
    for length in range(len(whole)):
        with pytest.raises(MalformedMessage):
            decode(whole[:length])


def test_mutated_bytes_are_read_or_malformed() -> None:
    """2000 messages with changed, cut, doubled and inserted bytes: a value or MalformedMessage, nothing else."""
    chance = random.Random(20_240_501)
    whole = encode([{"returned": (torch.arange(6.0).reshape(2, 3), True), "args_after": ({"k": 1.5}, None, "s")}])
    outcomes = {"read": 0, "malformed": 0}
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            operation = chance.randrange(4)
            if operation == 0:
                data[at] = chance.randrange(256)
            elif operation == 1:
                del data[at : at + chance.randint(1, 9)]
            elif operation == 2:
                data[at:at] = chance.randbytes(chance.randint(1, 9))
            else:
                data[at:at] = data[at : at + chance.randint(1, 30)]
            if not data:
                break
        try:
            decode(bytes(data))
        except MalformedMessage:
            outcomes["malformed"] += 1
        else:
            outcomes["read"] += 1
    assert outcomes["malformed"] > 1000
    assert outcomes["read"] > 5  # a changed number in a tensor is a message too


def random_node(chance: random.Random, depth: int = 0) -> object:
    """JSON that looks like a header and often is none."""
    kinds = ["list", "tuple", "dict", "tensor", "layer", "dtype", "other", "shape", "device"]
    pick = chance.randrange(10 if depth < 5 else 5)
    if pick < 5:
        return chance.choice([None, True, 0, -1, 2**70, 1.5, "", "float32", "cpu", "meta", [], {}, [1, 2], ["a", 1]])
    if pick < 7:
        return [random_node(chance, depth + 1) for _ in range(chance.randrange(4))]
    if pick < 8:
        return {
            "tensor": chance.choice(["float32", "bool", "complex64", 3, None]),
            "shape": chance.choice([[2], [0, 3], [], [2**30] * 3, "2", [random_node(chance, depth + 1)]]),
            "device": chance.choice(["cpu", "meta", "mps", {}, random_node(chance, depth + 1)]),
        }
    return {chance.choice(kinds): random_node(chance, depth + 1) for _ in range(chance.randint(1, 2))}


def test_random_headers_are_read_or_malformed() -> None:
    """3000 random JSON headers with random bytes behind them: a value or MalformedMessage, nothing else."""
    chance = random.Random(7)
    malformed = 0
    for _ in range(3000):
        try:
            decode(message(random_node(chance), chance.randbytes(chance.choice([0, 0, 8, 24]))))
        except MalformedMessage:
            malformed += 1
    assert 1000 < malformed < 3000


SHORT_WAYS = {
    "a tensor": torch.arange(6.0).reshape(2, 3),
    "a view, transposed": torch.arange(6.0).reshape(2, 3).T[1:],
    "a tensor that wants a gradient": torch.ones(3, requires_grad=True),
    "a parameter": torch.nn.Parameter(torch.ones(2, 3)),
    "a conjugate": torch.tensor([1 + 2j, 3 - 1j]).conj(),
    "half precision": torch.ones(3, dtype=torch.bfloat16) / 3,
    "no elements": torch.empty(0, 3),
    "an expanded tensor": torch.ones(1, 3).expand(4, 3),
    "values that are no numbers": torch.tensor([float("nan"), float("inf")]),
    "without values": torch.empty(2, 3, device="meta"),
    "a sparse tensor": torch.eye(3).to_sparse(),
    "an observation": {"returned": torch.ones(2), "args_after": (torch.zeros(3), None), "operators": ("aten::x",)},
    "plain values": (None, True, 1.5, 7, 2**70, "text", "文字", "half \ud83d", [1, 2]),
    "keys that are no texts": {1: 2},
    "an object": object(),
}


@pytest.mark.parametrize("value", SHORT_WAYS.values(), ids=SHORT_WAYS)
def test_the_short_way_comes_to_the_same(value: object) -> None:
    """What a judge observes of its own is what would have arrived over the wire, down to the bytes of a tensor."""
    short, long = protocol.passed_on(value), decode(encode(value))
    assert encode(short) == encode(long)
    if isinstance(value, torch.Tensor) and isinstance(short, torch.Tensor) and not short.is_meta:
        assert (short.requires_grad, short.is_contiguous(), type(short)) == (False, True, torch.Tensor)
        assert short.numel() == 0 or short.data_ptr() != value.detach().data_ptr()
