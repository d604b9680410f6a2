"""Lesson 03: the questions. Tables are loaded by shape if need be, so that a wrong name costs its own points only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.exercises.declaration import (
    Case,
    Draw,
    Step,
    backward,
    buffers,
    forward,
    load,
    mode,
    parameters,
    seed,
    state,
    to,
)

ROWS = 512
"""How often a sequence is repeated where chance plays a part."""


def _tokens(draw: Draw, batch: int, length: int, vocab_size: int, padding_id: int | None = None) -> Tensor:
    """Token ids with the largest id in place; with two padding tokens or more if there is a padding id, else none."""
    ids = torch.tensor([[draw.integer(0, vocab_size - 1) for _ in range(length)] for _ in range(batch)])
    if padding_id is not None:
        ids[0, 1] = ids[-1, -1] = padding_id
    ids[0, 0] = vocab_size - 1
    return ids


def _weights(draw: Draw, vocab_size: int, d_model: int, padding_id: int | None = None) -> Tensor:
    """A table of embeddings whose padding row is zero, as it must be."""
    weights = draw.normal(vocab_size, d_model)
    if padding_id is not None:
        weights[padding_id] = 0.0
    return weights


def _embedding_case(
    draw: Draw,
    *,
    tag: str = "values",
    padding: int | None = None,
    before: tuple[Step, ...] = (),
    device: str = "cpu",
    gradient: bool = False,
) -> Case:
    """Load a table, look tokens up. `padding`: None, 0, or 1 for any id that is not 0."""
    batch, length, d_model = draw.sizes(3, 2, 9)
    vocab_size = draw.integer(11, 19)
    padding_id = draw.integer(2, vocab_size - 2) if padding else padding
    weights = _weights(draw, vocab_size, d_model, padding_id)
    tokens = _tokens(draw, batch, length, vocab_size, padding_id)
    steps = [load({"table.weight": weights}, by_shape=True), *before, forward(tokens)]
    if gradient:
        steps.append(backward(draw.normal(batch, length, d_model)))
    return Case(
        "TokenEmbedding",
        (vocab_size, d_model),
        {} if padding_id is None else {"padding_id": padding_id},
        tag=tag,
        device=device,
        steps=tuple(steps),
    )


def _new_table(draw: Draw, function: str, padding: int | None, *steps: Step, tag: str = "padding") -> Case:
    """What a module is like that has loaded nothing."""
    d_model = 2 * draw.integer(2, 4)
    vocab_size = draw.integer(11, 19)
    padding_id = draw.integer(2, vocab_size - 2) if padding else padding
    kwargs = {} if padding_id is None else {"padding_id": padding_id}
    return Case(
        function,
        (vocab_size, d_model),
        kwargs,
        tag=tag,
        steps=steps or (forward(_tokens(draw, 3, 5, vocab_size, padding_id)),),
    )


def token_embedding(draw: Draw) -> list[Case]:
    return [
        _embedding_case(draw),
        _embedding_case(draw),
        _embedding_case(draw, padding=1),
        _embedding_case(draw, padding=0),
        _new_table(draw, "TokenEmbedding", None, state(), tag="names"),
        _new_table(draw, "TokenEmbedding", 1, parameters(), tag="names"),
        *(_new_table(draw, "TokenEmbedding", padding, state()) for padding in (None, 0, 1)),
        *(_new_table(draw, "TokenEmbedding", padding) for padding in (0, 1)),
        *(_embedding_case(draw, tag="gradient", padding=padding, gradient=True) for padding in (None, 0, 1)),
        _embedding_case(draw, tag="dtype", before=(to(torch.bfloat16),)),
        _embedding_case(draw, tag="dtype", before=(to(torch.float64),), padding=1),
        _embedding_case(draw, tag="device", padding=1, device=draw.other_device),
        _embedding_case(draw, tag="device", device=draw.accelerator),
    ]


def _position_case(
    draw: Draw,
    *args: Any,
    tag: str = "values",
    offset: int = 0,
    by_name: bool = True,
    length: int | None = None,
    dtype: torch.dtype = torch.float32,
    before: tuple[Step, ...] = (),
    device: str = "cpu",
    error: int | None = None,
    track: bool = False,
    **kwargs: Any,
) -> Case:
    """Add positions to normal x. `args`, `kwargs` follow d_model; `error` is the max_len that a refusal has to name."""
    length = draw.integer(5, 9) if length is None else length
    # Fewer sequences than rows in any table, so that a wrong axis is no error.
    (batch,) = draw.sample([n for n in (2, 3, 4) if n != length], 1)
    (d_model,) = draw.sample([n for n in (4, 6, 8, 10, 12) if n not in (batch, length)], 1)
    x = draw.normal(batch, length, d_model, dtype=dtype)
    if by_name:
        call = forward(x, track=track, **({"offset": offset} if offset else {}))
    else:
        call = forward(x, offset, track=track)
    return Case(
        "SinusoidalPosition",
        (d_model, *args),
        kwargs,
        tag=tag,
        device=device,
        error_names=() if error is None else ("max_len", str(error)),
        steps=(*before, call, *([backward(draw.normal(batch, length, d_model))] if track else [])),
    )


def _holding(draw: Draw, *steps: Step) -> list[Case]:
    return [
        Case(
            "SinusoidalPosition",
            (2 * draw.integer(2, 6),),
            {"max_len": 2 * draw.integer(10, 30) + 1},
            tag="names",
            steps=(step,),
        )
        for step in steps
    ]


def sinusoidal_position(draw: Draw) -> list[Case]:
    n = draw.integer(30, 60)
    start, late = draw.integer(3, 9), draw.integer(11, 19)
    earlier = forward(draw.normal(2, 3, 6))
    length = draw.integer(5, 9)
    return [
        _position_case(draw),
        _position_case(draw, n),
        _position_case(draw, max_len=n + 1),
        _position_case(draw, n, round(draw.uniform(50.0, 500.0), 1), tag="base"),
        _position_case(draw, tag="base", base=float(draw.integer(20_000, 90_000))),
        _position_case(draw, n, tag="offset", offset=start),
        _position_case(draw, n, tag="offset", offset=late, by_name=False),
        *(_position_case(draw, n, tag="offset", offset=at, length=1) for at in (1, start, late)),
        _position_case(draw, tag="offset", offset=draw.integer(4097, 4900)),
        Case("SinusoidalPosition", (6, n), tag="offset", steps=(earlier, earlier, forward(draw.normal(4, 5, 6)))),
        *_holding(draw, state(), parameters(), buffers()),
        _position_case(draw, n, tag="gradient", track=True),
        _position_case(draw, tag="gradient", track=True),
        _position_case(draw, tag="dtype", dtype=torch.bfloat16, length=draw.integer(300, 400)),
        _position_case(draw, n, tag="dtype", dtype=torch.float16),
        _position_case(draw, n, tag="dtype", dtype=torch.float64),
        _position_case(draw, n, tag="dtype", dtype=torch.bfloat16, before=(to(torch.bfloat16),)),
        _position_case(draw, n, tag="device", device=draw.other_device),
        _position_case(draw, tag="device", device=draw.accelerator),
        _position_case(draw, length, tag="errors", length=length),
        _position_case(draw, n, tag="errors", offset=n - length, length=length),
        _position_case(draw, length, tag="errors", length=length + 1, error=length),
        _position_case(draw, n, tag="errors", offset=n - length + 1, length=length, error=n),
        _position_case(draw, tag="errors", offset=4999, length=2, by_name=False, error=5000),
        _position_case(draw, n, tag="errors", offset=n + start, length=1, error=n),
    ]


def _input_case(
    draw: Draw,
    *,
    tag: str = "values",
    padding: int | None = None,
    before: tuple[Step, ...] = (),
    call: dict[str, Any] | tuple[int, ...] = (),
    device: str = "cpu",
    gradient: bool = False,
    **kwargs: Any,
) -> Case:
    """Load a table, call in eval mode. `call` is the offset as it is handed in; `kwargs` are the constructor's."""
    batch, length = draw.sizes(2, 2, 7)
    (d_model,) = draw.sample([n for n in (4, 6, 8, 10, 12) if n not in (batch, length)], 1)
    vocab_size = draw.integer(23, 29)
    padding_id = draw.integer(2, vocab_size - 2) if padding else padding
    if padding_id is not None:
        kwargs["padding_id"] = padding_id
    tokens = _tokens(draw, batch, length, vocab_size, padding_id)
    weights = _weights(draw, vocab_size, d_model, padding_id)
    called = forward(tokens, **call) if isinstance(call, dict) else forward(tokens, *call)
    steps = [load({"tokens.table.weight": weights}, by_shape=True), mode(train=False), *before, called]
    if gradient:
        steps.append(backward(draw.normal(batch, length, d_model)))
    return Case("TransformerInput", (vocab_size, d_model), kwargs, tag=tag, device=device, steps=tuple(steps))


def _chance_case(draw: Draw, *, tag: str, train: bool, share: float | None) -> Case:
    """One sequence, many times, with dropout; `share` None leaves the default."""
    (length,), (d_model,) = draw.sample([3, 5], 1), draw.sample([6, 8], 1)
    vocab_size = draw.integer(11, 19)
    tokens = _tokens(draw, 1, length, vocab_size).expand(ROWS, -1)
    return Case(
        "TransformerInput",
        (vocab_size, d_model),
        {"max_len": 40} if share is None else {"max_len": 40, "dropout": share},
        tag=tag,
        steps=(
            load({"tokens.table.weight": draw.normal(vocab_size, d_model)}, by_shape=True),
            mode(train=train),
            seed(draw.integer(0, 2**31)),
            forward(tokens),
        ),
    )


def transformer_input(draw: Draw) -> list[Case]:
    n = draw.integer(40, 60)
    start, late = draw.integer(3, 9), draw.integer(11, 19)
    still: dict[str, Any] = {"dropout": 0.0}  # chance plays no part where values are compared
    return [
        _input_case(draw, **still),
        _input_case(draw, max_len=n, padding=1, **still),
        _input_case(draw, max_len=n, padding=0, **still),
        _input_case(draw, tag="offset", call={"offset": start}, max_len=n, **still),
        _input_case(draw, tag="offset", call=(late,), max_len=n, padding=1, **still),
        _input_case(draw, tag="offset", call={"offset": draw.integer(5050, 5080)}, max_len=5100, **still),
        _new_table(draw, "TransformerInput", None, state(), tag="names"),
        _new_table(draw, "TransformerInput", 1, parameters(), tag="names"),
        *(_new_table(draw, "TransformerInput", padding, state()) for padding in (None, 0, 1)),
        *(
            _input_case(draw, tag="gradient", padding=padding, gradient=True, max_len=n, **still)
            for padding in (None, 0, 1)
        ),
        _chance_case(draw, tag="train", train=True, share=None),
        _chance_case(draw, tag="train", train=True, share=draw.integer(30, 40) / 100),
        _chance_case(draw, tag="eval", train=False, share=None),
        _chance_case(draw, tag="eval", train=False, share=draw.integer(30, 40) / 100),
        _input_case(draw, tag="dtype", before=(to(torch.bfloat16),), max_len=n, **still),
        _input_case(draw, tag="dtype", before=(to(torch.float64),), max_len=n, padding=1, **still),
        _input_case(draw, tag="device", device=draw.other_device, max_len=n, **still),
        _input_case(draw, tag="device", device=draw.accelerator, max_len=n, **still),
    ]


def padding_mask(draw: Draw) -> list[Case]:
    def case(padding_id: int, *, tag: str = "values", device: str = "cpu", padded: bool = True) -> Case:
        batch, length = draw.sizes(2, 3, 9)
        tokens = _tokens(draw, batch, length, 12)
        tokens[tokens == padding_id] = 12
        if padded:
            tokens[0, 1] = tokens[0, -1] = tokens[-1, -2] = padding_id
            tokens[1, 0] = padding_id
        return Case("padding_mask", (tokens, padding_id), tag=tag, device=device)

    return [
        case(0),
        case(draw.integer(3, 9)),
        case(draw.integer(1, 9), padded=False),
        case(draw.integer(3, 9), tag="device", device=draw.other_device),
        case(draw.integer(3, 9), tag="device", device=draw.accelerator),
    ]
