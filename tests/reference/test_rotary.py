"""The rotary reference against complex numbers in float64 and against the models that use it.

LLaMA, Qwen2, GPT-NeoX, GPT-J and DeepSeek come from `transformers`, as tiny random configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    DeepseekV2Config,
    DeepseekV3Config,
    GPTJConfig,
    GPTNeoXConfig,
    LlamaConfig,
    Qwen2Config,
)
from transformers.models.deepseek_v2 import modeling_deepseek_v2 as deepseek_v2
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek_v3
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen2 import modeling_qwen2 as qwen2

from autograder.reference.attention import causal_mask
from autograder.reference.rotary import (
    RotaryAttention,
    adjacent_to_halves,
    rotary_angles,
    rotate_adjacent,
    rotate_halves,
)

BATCH, HEADS, LENGTH, HEAD_DIM = 2, 3, 7, 8
D_MODEL = HEADS * HEAD_DIM
BASES = [10000.0, 500000.0, 37.5]
POSITIONS = {
    "from zero": torch.arange(LENGTH),
    "with gaps, out of order": torch.tensor([5, 0, 131, 2, 3, 90, 17]),
    "past 4096": torch.tensor([4097, 4099, 8000, 4098, 12345, 5000, 4100]),
}
FLOAT32_ANGLES = 1.5e-6
"""`transformers` computes angles in float32, off by up to this times the position: frequency and product each round."""

positions_cases = pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS.keys())
pairings = pytest.mark.parametrize("rotate", [rotate_adjacent, rotate_halves])

GPTJ_NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")
LLAMA_NAMES = ("q_proj", "k_proj", "v_proj", "o_proj")
GPTJ_SCORES = 1e-6
"""GPT-J computes scores in float32 whatever the dtype is: off by 1e-7 of their size, which is below 10."""
SOFTMAX_IN_FLOAT32 = 1e-6
"""So do LLaMA and Qwen2 with the softmax."""

Rotate = Callable[[Tensor, Tensor], Tensor]


def _normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def _hands(positions: Tensor, head_dim: int, base: float) -> Tensor:
    """e^(i · position · frequency) as complex128 `(…, length, head_dim // 2)`, straight from the formula."""
    frequency = torch.tensor([base ** (-2 * i / head_dim) for i in range(head_dim // 2)], dtype=torch.float64)
    return torch.exp(1j * positions.double()[..., None] * frequency)


def _turned_by_complex_numbers(x: Tensor, hands: Tensor, rotate: Rotate) -> Tensor:
    """A pair (a, b) as a + bi, times the hand; in complex128."""
    x = x.double()
    half = x.shape[-1] // 2
    if rotate is rotate_halves:
        turned = torch.complex(x[..., :half], x[..., half:]) * hands
        return torch.cat([turned.real, turned.imag], dim=-1)
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], half, 2)) * hands).flatten(-2)


@positions_cases
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("head_dim", [2, 6, 64])
def test_angles_are_position_times_frequency_rounded_once(positions: Tensor, base: float, head_dim: int) -> None:
    found = rotary_angles(positions, head_dim, base)
    exact = torch.tensor([[p * base ** (-2 * i / head_dim) for i in range(head_dim // 2)] for p in positions.tolist()])
    assert (found.dtype, found.shape) == (torch.float32, (LENGTH, head_dim // 2))
    torch.testing.assert_close(found, exact.float(), rtol=1.2e-7, atol=0)


def test_angles_keep_every_leading_axis() -> None:
    positions = torch.stack(list(POSITIONS.values())).reshape(3, 1, LENGTH)
    found = rotary_angles(positions, HEAD_DIM)
    assert found.shape == (3, 1, LENGTH, HEAD_DIM // 2)
    for row, one in zip(found, POSITIONS.values(), strict=True):
        assert torch.equal(row[0], rotary_angles(one, HEAD_DIM))


@pytest.mark.parametrize("head_dim", [1, 5, 63])
def test_an_odd_head_dim_is_refused_by_name_and_value(head_dim: int) -> None:
    with pytest.raises(ValueError, match=rf"head_dim={head_dim}\b"):
        rotary_angles(torch.arange(3), head_dim)


def test_angles_stay_on_the_device_of_the_positions() -> None:
    found = rotary_angles(torch.arange(5, device="meta"), 6)
    assert (found.device.type, found.dtype, found.shape) == ("meta", torch.float32, (5, 3))


@pairings
@positions_cases
def test_rotation_is_multiplication_of_complex_numbers(rotate: Rotate, positions: Tensor) -> None:
    x = _normal(BATCH, HEADS, LENGTH, HEAD_DIM)
    frequency = 10000.0 ** (-2 * torch.arange(HEAD_DIM // 2, dtype=torch.float64) / HEAD_DIM)
    expected = _turned_by_complex_numbers(x, _hands(positions, HEAD_DIM, 10000.0), rotate)
    torch.testing.assert_close(rotate(x, positions[:, None] * frequency), expected, rtol=0, atol=1e-11)
    found = rotate(x, rotary_angles(positions, HEAD_DIM))  # float32 angles: off by 6e-8 of the angle
    bound = 1e-6 + 4 * 6e-8 * positions.double()[:, None]
    assert bool(((found - expected).abs() <= bound).all())


@pairings
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_in_each_dtype_the_result_is_the_exact_one_rounded_once(rotate: Rotate, dtype: torch.dtype) -> None:
    x, angles = _normal(BATCH, HEADS, LENGTH, HEAD_DIM, dtype=dtype), rotary_angles(POSITIONS["past 4096"], HEAD_DIM)
    before = x.clone()
    found = rotate(x, angles)
    exact = _turned_by_complex_numbers(x, torch.exp(1j * angles.double()), rotate)
    assert found.dtype == dtype
    inside = max(torch.finfo(torch.float32).eps, torch.finfo(dtype).eps) if dtype == torch.float32 else 1e-6
    bound = torch.finfo(dtype).eps / 2 * exact.abs() + (8 * inside if dtype == torch.float32 else inside)
    assert bool(((found.double() - exact).abs() <= bound).all())
    assert torch.equal(x, before)


@pairings
def test_gradients_of_a_rotation_turn_back(rotate: Rotate) -> None:
    x, direction = _normal(BATCH, LENGTH, HEAD_DIM).requires_grad_(), _normal(BATCH, LENGTH, HEAD_DIM, seed=1)
    angles = _normal(LENGTH, HEAD_DIM // 2, seed=2)
    (gradient,) = torch.autograd.grad((rotate(x, angles) * direction).sum(), x)
    torch.testing.assert_close(gradient, rotate(direction, -angles), rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(rotate, (x, angles.requires_grad_()))


@pairings
def test_angles_broadcast_over_heads_batches_and_length(rotate: Rotate) -> None:
    x = _normal(BATCH, HEADS, LENGTH, HEAD_DIM)
    for shape in (
        (BATCH, 1, LENGTH, HEAD_DIM // 2),
        (1, HEAD_DIM // 2),
        (HEAD_DIM // 2,),
        (BATCH, 1, 1, HEAD_DIM // 2),
    ):
        angles = _normal(*shape, seed=3)
        whole = angles.broadcast_to(BATCH, HEADS, LENGTH, HEAD_DIM // 2)
        assert torch.equal(rotate(x, angles), rotate(x, whole))


@pairings
def test_scores_depend_on_the_distance_alone(rotate: Rotate) -> None:
    query, key = _normal(1, HEAD_DIM), _normal(1, HEAD_DIM, seed=1)
    frequency = 10000.0 ** (-2 * torch.arange(HEAD_DIM // 2, dtype=torch.float64) / HEAD_DIM)

    def score(p: int, s: int) -> float:
        return float((rotate(query, p * frequency) * rotate(key, s * frequency)).sum())

    for distance in (0, 1, -3, 40):
        scores = {round(score(start + distance, start), 9) for start in (0, 5, 300, 4711)}
        assert len(scores) == 1
    assert score(3, 0) != pytest.approx(score(0, 3), abs=1e-3)
    assert score(9, 9) == pytest.approx(float((query * key).sum()), abs=1e-12)


def _agree(found: Tensor, expected: Tensor, positions: Tensor, size: float = 4.0) -> None:
    """Within what the other side's float32 angles allow; `size` bounds the entries that are turned."""
    bound = 1e-5 + size * FLOAT32_ANGLES * float(positions.max())
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


def _rope(base: float, **more: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": base, **more}


def _llama(module: Any, config: type, base: float, **more: Any) -> tuple[Any, Any]:
    """Configuration and rotary embedding of LLaMA and its like."""
    made = config(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_hidden_layers=1,
        rope_parameters=_rope(base),
        attn_implementation="eager",
        **more,
    )
    return made, getattr(module, next(name for name in dir(module) if name.endswith("RotaryEmbedding")))(made)


@positions_cases
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("module", "config"), [(llama, LlamaConfig), (qwen2, Qwen2Config)], ids=["llama", "qwen2"])
def test_halves_turn_as_llama_and_qwen2_turn(module: Any, config: type, base: float, positions: Tensor) -> None:
    _, rotary = _llama(module, config, base)
    query, key = (_normal(BATCH, HEADS, LENGTH, HEAD_DIM, dtype=torch.float32, seed=seed) for seed in (0, 1))
    angles = rotary_angles(positions, HEAD_DIM, base)
    cos, sin = rotary(query, positions[None])
    for found, expected in zip(
        (rotate_halves(query, angles), rotate_halves(key, angles)),
        module.apply_rotary_pos_emb(query, key, cos, sin),
        strict=True,
    ):
        _agree(found, expected, positions)


@positions_cases
@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_partial_rotation_is_that_of_gpt_neox(fraction: float, positions: Tensor) -> None:
    """GPT-NeoX turns the first quarter of a head by default, with frequencies of that width."""
    config = GPTNeoXConfig(
        hidden_size=D_MODEL * 2, num_attention_heads=HEADS, rope_parameters=_rope(1e4, partial_rotary_factor=fraction)
    )
    width = int(2 * HEAD_DIM * fraction)
    query, key = (_normal(BATCH, HEADS, LENGTH, 2 * HEAD_DIM, dtype=torch.float32, seed=seed) for seed in (0, 1))
    cos, sin = gpt_neox.GPTNeoXRotaryEmbedding(config)(query, positions[None])
    angles = rotary_angles(positions, width)
    for x, expected in zip((query, key), gpt_neox.apply_rotary_pos_emb(query, key, cos, sin), strict=True):
        found = torch.cat([rotate_halves(x[..., :width], angles), x[..., width:]], dim=-1)
        _agree(found, expected, positions)


@positions_cases
@pytest.mark.parametrize("fraction", [0.5, 1.0])
def test_adjacent_turns_as_gpt_j_turns(fraction: float, positions: Tensor) -> None:
    width = int(HEAD_DIM * fraction)
    config = GPTJConfig(n_embd=D_MODEL, n_head=HEADS, rotary_dim=width, n_positions=13000)
    x = _normal(BATCH, LENGTH, HEADS, HEAD_DIM, dtype=torch.float32)  # GPT-J turns before it moves the heads forward
    sin, cos = gptj.GPTJRotaryEmbedding(config)(x, positions[None])
    expected = gptj.apply_rotary_pos_emb(x[..., :width], sin, cos)
    found = rotate_adjacent(x.transpose(1, 2)[..., :width], rotary_angles(positions, width)).transpose(1, 2)
    _agree(found, expected, positions)


@positions_cases
def test_adjacent_turns_as_deepseek_v2_turns(positions: Tensor) -> None:
    config = DeepseekV2Config(qk_rope_head_dim=HEAD_DIM, rope_parameters=_rope(10000.0))
    query, key = (_normal(BATCH, HEADS, LENGTH, HEAD_DIM, dtype=torch.float32, seed=seed) for seed in (0, 1))
    hands = deepseek_v2.DeepseekV2RotaryEmbedding(config)(query, positions[None])
    angles = rotary_angles(positions, HEAD_DIM)
    for x, expected in zip((query, key), deepseek_v2.apply_rotary_emb(query, key, hands), strict=True):
        _agree(rotate_adjacent(x, angles), expected, positions)


@positions_cases
def test_adjacent_turns_as_deepseek_v3_turns_though_it_stores_the_result_in_halves(positions: Tensor) -> None:
    config = DeepseekV3Config(qk_rope_head_dim=HEAD_DIM, rope_parameters=_rope(10000.0))
    query, key = (_normal(BATCH, HEADS, LENGTH, HEAD_DIM, dtype=torch.float32, seed=seed) for seed in (0, 1))
    cos, sin = deepseek_v3.DeepseekV3RotaryEmbedding(config)(query, positions[None])
    theirs = deepseek_v3.apply_rotary_pos_emb_interleave(query, key, cos, sin)
    angles = rotary_angles(positions, HEAD_DIM)
    ours = [rotate_adjacent(x, angles) for x in (query, key)]
    for found, expected in zip(ours, theirs, strict=True):
        _agree(torch.cat([found[..., 0::2], found[..., 1::2]], dim=-1), expected, positions)
    found, expected = (a @ b.mT for a, b in (ours, theirs))
    _agree(found, expected, positions, size=40.0)


def _scores(rotate: Rotate, query: Tensor, key: Tensor, positions: Tensor) -> Tensor:
    """`query`, `key`: `(batch, length, heads · head_dim)`; scores `(batch, heads, length, length)`."""
    angles = rotary_angles(positions, HEAD_DIM)
    q, k = (rotate(x.reshape(BATCH, LENGTH, HEADS, HEAD_DIM).transpose(1, 2), angles) for x in (query, key))
    return q @ k.mT


@positions_cases
@pytest.mark.parametrize("d_model", [D_MODEL, 11])
def test_converted_weights_give_the_scores_of_the_adjacent_pairing(positions: Tensor, d_model: int) -> None:
    x = _normal(BATCH, LENGTH, d_model)
    w_query, w_key = (_normal(D_MODEL, d_model, seed=seed) for seed in (1, 2))
    wanted = _scores(rotate_adjacent, x @ w_query.T, x @ w_key.T, positions)
    converted = [adjacent_to_halves(weight, HEADS) for weight in (w_query, w_key)]
    found = _scores(rotate_halves, x @ converted[0].T, x @ converted[1].T, positions)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)
    unconverted = _scores(rotate_halves, x @ w_query.T, x @ w_key.T, positions)
    assert float((unconverted - wanted).abs().max()) > 1


def test_conversion_is_the_permutation_of_the_llama_conversion_script() -> None:
    """The script in `transformers` reorders rows by view, transpose and reshape; here the same by index arithmetic."""
    weight = _normal(D_MODEL, 5)
    found = adjacent_to_halves(weight, HEADS)
    for head in range(HEADS):
        for i in range(HEAD_DIM):
            old = head * HEAD_DIM + (2 * i if i < HEAD_DIM // 2 else 2 * (i - HEAD_DIM // 2) + 1)
            assert torch.equal(found[head * HEAD_DIM + i], weight[old])
    assert torch.equal(weight, _normal(D_MODEL, 5))


def _ours(layer: nn.Module, names: tuple[str, str, str, str], base: float = 10000.0) -> RotaryAttention:
    """Rotary attention with the weights of another model's layer; missing biases are zero."""
    module = RotaryAttention(D_MODEL, HEADS, base).to(next(layer.parameters()).dtype)
    with torch.no_grad():
        for name, theirs in zip(("query", "key", "value", "output"), names, strict=True):
            mine, other = getattr(module, name), getattr(layer, theirs)
            mine.weight.copy_(other.weight)
            mine.bias.copy_(torch.zeros_like(mine.bias) if other.bias is None else other.bias)
    return module


def _gptj_attention() -> tuple[gptj.GPTJAttention, gptj.GPTJRotaryEmbedding]:
    torch.manual_seed(3)
    config = GPTJConfig(
        n_embd=D_MODEL,
        n_head=HEADS,
        rotary_dim=HEAD_DIM,
        n_positions=13000,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        attn_implementation="eager",
    )
    return gptj.GPTJAttention(config, 0), gptj.GPTJRotaryEmbedding(config)


def _sharpened(layer: nn.Module) -> nn.Module:
    """Larger queries and keys, so that the weights of attention differ and scores matter."""
    with torch.no_grad():
        for name in ("q_proj", "k_proj"):
            getattr(layer, name).weight.mul_(4)
    return layer


def _added(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A mask as `transformers` adds it to scores."""
    return None if mask is None else torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


@positions_cases
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_gpt_j(positions: Tensor, causal: bool) -> None:
    layer, rotary = _gptj_attention()
    module = _ours(_sharpened(layer), GPTJ_NAMES)
    mask = causal_mask(LENGTH) if causal else None
    x = _normal(BATCH, LENGTH, D_MODEL, dtype=torch.float32)
    expected, weights = layer(x, rotary(x, positions[None]), _added(mask, torch.float32))
    assert float(weights.detach().std()) > 0.1
    _agree(module(x, positions, mask), expected, positions)


@positions_cases
@pytest.mark.parametrize("causal", [False, True])
def test_attention_values_and_gradients_are_those_of_gpt_j_given_the_same_angles(
    positions: Tensor, causal: bool
) -> None:
    layer, _ = _gptj_attention()
    layer = _sharpened(layer).double()
    module, mask = _ours(layer, GPTJ_NAMES), causal_mask(LENGTH) if causal else None
    angles = rotary_angles(positions, HEAD_DIM).double()[None]
    direction = _normal(BATCH, LENGTH, D_MODEL, seed=1)
    ours, theirs = (_normal(BATCH, LENGTH, D_MODEL).requires_grad_() for _ in range(2))
    found = module(ours, positions, mask)
    expected, _ = layer(theirs, (angles.sin(), angles.cos()), _added(mask, torch.float64))
    torch.testing.assert_close(found, expected, rtol=0, atol=GPTJ_SCORES)
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=100 * GPTJ_SCORES)
    for name, other in zip(("query", "key", "value", "output"), GPTJ_NAMES, strict=True):
        pair = (getattr(module, name).weight.grad, getattr(layer, other).weight.grad)
        torch.testing.assert_close(*pair, rtol=0, atol=100 * GPTJ_SCORES)


@positions_cases
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("module", "config", "attention"),
    [(llama, LlamaConfig, "LlamaAttention"), (qwen2, Qwen2Config, "Qwen2Attention")],
    ids=["llama", "qwen2"],
)
def test_attention_is_that_of_llama_and_qwen2_with_converted_weights(
    module: Any, config: type, attention: str, base: float, positions: Tensor
) -> None:
    """Those models run with halves: with our query and key weights converted they give our output."""
    torch.manual_seed(4)
    made, rotary = _llama(module, config, base)
    layer = _sharpened(getattr(module, attention)(made, 0))
    ours = _ours(layer, LLAMA_NAMES, base)
    with torch.no_grad():
        for name in ("q_proj", "k_proj"):
            projection = getattr(layer, name)
            projection.weight.copy_(adjacent_to_halves(projection.weight, HEADS))
            if projection.bias is not None:
                projection.bias.copy_(adjacent_to_halves(projection.bias[:, None], HEADS)[:, 0])
    x = _normal(BATCH, LENGTH, D_MODEL, dtype=torch.float32)
    expected, weights = layer(x, rotary(x, positions[None]), attention_mask=None)
    assert float(weights.detach().std()) > 0.1
    _agree(ours(x, positions), expected, positions)

    angles = rotary_angles(positions, HEAD_DIM, base).double()[None]
    both = torch.cat([angles, angles], dim=-1)
    expected, _ = layer.double()(x.double(), (both.cos(), both.sin()), attention_mask=None)
    torch.testing.assert_close(ours.double()(x.double(), positions), expected, rtol=0, atol=SOFTMAX_IN_FLOAT32)


def _plain(module: RotaryAttention, x: Tensor, positions: Tensor, mask: Tensor | None, base: float) -> Tensor:
    """The same layer one head and one sentence at a time, with complex numbers and torch's attention."""
    sentences = []
    for b in range(len(x)):
        numbers = positions if positions.dim() == 1 else positions[b]
        hands = _hands(numbers, HEAD_DIM, base)
        heads = []
        for h in range(HEADS):
            columns = slice(h * HEAD_DIM, (h + 1) * HEAD_DIM)
            q, k, v = (layer(x[b])[:, columns] for layer in (module.query, module.key, module.value))
            q, k = (_turned_by_complex_numbers(part, hands, rotate_adjacent) for part in (q, k))
            allowed = None if mask is None else mask.broadcast_to(len(x), HEADS, LENGTH, LENGTH)[b, h]
            heads.append(F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=allowed)[0])
        sentences.append(module.output(torch.cat(heads, dim=-1)))
    return torch.stack(sentences)


def _for_each_sentence() -> Tensor:
    return torch.stack([POSITIONS["with gaps, out of order"], POSITIONS["from zero"] + 3])


MASKS = {
    "none": None,
    "causal": causal_mask(LENGTH),
    "padding": torch.tensor([[True] * 5 + [False] * 2, [True] * LENGTH])[:, None, None, :],
    "each head its own": _normal(BATCH, HEADS, LENGTH, LENGTH, seed=9) + torch.eye(LENGTH) * 9 > 0,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize(
    "positions", [*POSITIONS.values(), _for_each_sentence()], ids=[*POSITIONS, "for each sentence"]
)
@pytest.mark.parametrize("base", [10000.0, 37.5])
def test_attention_is_complex_rotation_then_torchs_attention(
    positions: Tensor, mask: Tensor | None, base: float
) -> None:
    torch.manual_seed(5)
    module, x = RotaryAttention(D_MODEL, HEADS, base).double(), _normal(BATCH, LENGTH, D_MODEL)
    expected = _plain(module, x, positions, mask, base)
    bound = 1e-6 + 1e-6 * float(positions.max())  # our angles are rounded to float32, as the contract wants them
    torch.testing.assert_close(module(x, positions, mask), expected, rtol=0, atol=bound)


def test_positions_default_to_counting_from_zero_and_a_shift_changes_nothing() -> None:
    torch.manual_seed(5)
    module, x = RotaryAttention(D_MODEL, HEADS).double().requires_grad_(False), _normal(BATCH, LENGTH, D_MODEL)
    assert torch.equal(module(x), module(x, torch.arange(LENGTH)))
    torch.testing.assert_close(module(x, torch.arange(LENGTH) + 4096), module(x), rtol=0, atol=2e-4)
    assert float((module(x, torch.arange(LENGTH) * 2) - module(x)).abs().max()) > 1e-3
    assert float((module(x, torch.arange(LENGTH).flip(0)) - module(x)).abs().max()) > 1e-3


def test_decoding_with_turned_keys_equals_the_whole_sequence() -> None:
    torch.manual_seed(6)
    module, x = RotaryAttention(D_MODEL, HEADS).double(), _normal(1, LENGTH, D_MODEL)
    positions = torch.arange(LENGTH) + 4711
    whole = module(x, positions, causal_mask(LENGTH))
    keys, values = [], []
    for t in range(LENGTH):
        parts = (
            layer(x[:, t : t + 1]).reshape(1, 1, HEADS, HEAD_DIM) for layer in (module.query, module.key, module.value)
        )
        q, k, v = (part.transpose(1, 2) for part in parts)
        angles = rotary_angles(positions[t : t + 1], HEAD_DIM)
        keys.append(rotate_adjacent(k, angles))
        values.append(v)
        mixed = F.scaled_dot_product_attention(rotate_adjacent(q, angles), torch.cat(keys, 2), torch.cat(values, 2))
        step = module.output(mixed.transpose(1, 2).flatten(2))
        torch.testing.assert_close(step[:, 0], whole[:, t], rtol=0, atol=1e-12)


def test_attention_gradients_are_finite_differences() -> None:
    torch.manual_seed(7)
    module, x = RotaryAttention(4, 2).double(), _normal(2, 3, 4).requires_grad_()
    positions = torch.tensor([[4, 0, 9], [1, 2, 30]])
    parameters = tuple(parameter for parameter in module.parameters())

    def run(x: Tensor, *values: Tensor) -> Tensor:
        state = dict(zip((name for name, _ in module.named_parameters()), values, strict=True))
        result: Tensor = torch.func.functional_call(module, state, (x, positions, causal_mask(3)))
        return result

    assert torch.autograd.gradcheck(run, (x, *parameters))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_attention_in_each_dtype_is_near_that_in_float64(dtype: torch.dtype) -> None:
    """Far positions too: in bfloat16 nothing is rounded but the numbers that are turned."""
    torch.manual_seed(8)
    module, x = RotaryAttention(D_MODEL, HEADS), _normal(BATCH, LENGTH, D_MODEL, dtype=dtype)
    module.to(dtype)
    exact = RotaryAttention(D_MODEL, HEADS).double()
    exact.load_state_dict({name: value.double() for name, value in module.state_dict().items()})
    positions = POSITIONS["past 4096"]
    found = module(x, positions)
    assert found.dtype == dtype
    bound = {torch.float64: 0.0, torch.float32: 3e-6, torch.bfloat16: 2e-2}[dtype]
    torch.testing.assert_close(found.double(), exact(x.double(), positions), rtol=0, atol=bound)


def test_the_state_has_four_layers_and_nothing_else() -> None:
    state = RotaryAttention(12, 2).state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {
        f"{layer}.{part}": shape
        for layer in ("query", "key", "value", "output")
        for part, shape in (("weight", (12, 12)), ("bias", (12,)))
    }


def test_attention_runs_on_another_device_and_leaves_its_arguments_alone() -> None:
    module, x = RotaryAttention(D_MODEL, HEADS), _normal(BATCH, LENGTH, D_MODEL, dtype=torch.float32)
    positions, mask = POSITIONS["with gaps, out of order"].clone(), causal_mask(LENGTH)
    module(x, positions, mask)
    assert torch.equal(x, _normal(BATCH, LENGTH, D_MODEL, dtype=torch.float32))
    assert torch.equal(positions, POSITIONS["with gaps, out of order"])
    found = module.to("meta")(x.to("meta"))
    assert (found.device.type, found.shape) == ("meta", x.shape)


def test_the_worked_turn_of_a_single_pair() -> None:
    """(1, 0) at position 2 with frequency 1 points at 2 radians."""
    angles = rotary_angles(torch.tensor([2]), 2)
    for rotate in (rotate_adjacent, rotate_halves):
        found = rotate(torch.tensor([[1.0, 0.0]]), angles)
        torch.testing.assert_close(found, torch.tensor([[math.cos(2), math.sin(2)]]), rtol=0, atol=1e-7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_on_a_gpu_results_stay_there_and_equal_those_of_the_cpu(dtype: torch.dtype) -> None:
    bound = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 4e-2}[dtype]
    x, positions = _normal(BATCH, HEADS, LENGTH, HEAD_DIM, dtype=dtype), POSITIONS["past 4096"]
    angles = rotary_angles(positions, HEAD_DIM)
    there = rotary_angles(positions.cuda(), HEAD_DIM)
    assert there.is_cuda
    torch.testing.assert_close(there.cpu(), angles, rtol=1.2e-7, atol=0)
    for rotate in (rotate_adjacent, rotate_halves):
        found = rotate(x.cuda(), angles.cuda())
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), rotate(x, angles), rtol=0, atol=bound)
    assert adjacent_to_halves(_normal(D_MODEL, 5, dtype=dtype).cuda(), HEADS).is_cuda
    torch.manual_seed(9)
    module, words = RotaryAttention(D_MODEL, HEADS).to(dtype), _normal(BATCH, LENGTH, D_MODEL, dtype=dtype)
    expected = module(words, positions, causal_mask(LENGTH))
    found = module.cuda()(words.cuda(), positions.cuda(), causal_mask(LENGTH, device="cuda"))
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=bound)
