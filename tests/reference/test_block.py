"""The block and its parts against PyTorch's layers and against BERT's in `transformers`: values, gradients, counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from autograder.reference.block import (
    AddNorm,
    EncoderBlock,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    block_cost,
)

BATCH, LENGTH, D_MODEL, HEADS, D_FF = 2, 5, 12, 3, 20
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 8e-2}
"""Norms put out numbers below 4, where a bfloat16 unit is 1/64; both sides round after every step."""
dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
orders = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


def _draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def _randomised(module: nn.Module, seed: int = 3) -> None:
    """Parameters that leave nothing to chance: norms scale and shift, biases are not zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if parameter.dim() == 2:
                values /= parameter.shape[1] ** 0.5
            elif "norm" in name and name.endswith("weight"):
                values = 0.6 + 0.5 * values.abs()
            parameter.copy_(values)


def _masks() -> dict[str, Tensor | None]:
    real = torch.tensor([LENGTH, LENGTH - 2])
    padding = (torch.arange(LENGTH) < real[:, None])[:, None, None, :]
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    return {"none": None, "causal": causal, "padding": padding, "both": causal & padding}


def _torch_layer(block: EncoderBlock, activation: str) -> nn.TransformerEncoderLayer:
    """PyTorch's layer with the block's weights."""
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, dropout=0.0, activation=activation, batch_first=True, norm_first=block.norm_first
    )
    attention = block.attention
    layer.to(attention.query.weight.dtype)
    projections = (attention.query, attention.key, attention.value)
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
            "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
            "self_attn.out_proj.weight": attention.output.weight,
            "self_attn.out_proj.bias": attention.output.bias,
            "linear1.weight": block.feed_forward.expand.weight,
            "linear1.bias": block.feed_forward.expand.bias,
            "linear2.weight": block.feed_forward.contract.weight,
            "linear2.bias": block.feed_forward.contract.bias,
            "norm1.weight": block.attention_norm.weight,
            "norm1.bias": block.attention_norm.bias,
            "norm2.weight": block.feed_forward_norm.weight,
            "norm2.bias": block.feed_forward_norm.bias,
        }
    )
    return layer


def _torch_masks(mask: Tensor | None) -> dict[str, Tensor | None]:
    """PyTorch's layer says True for what may *not* be attended to, and takes padding apart or a mask for each head."""
    if mask is None:
        return {}
    if mask.dim() == 2:
        return {"src_mask": ~mask}
    if mask.shape[2] == 1:
        return {"src_key_padding_mask": ~mask[:, 0, 0]}
    return {"src_mask": ~mask.expand(-1, HEADS, -1, -1).reshape(-1, LENGTH, LENGTH)}


@dtypes
@activations
@orders
@pytest.mark.parametrize("mask", _masks().values(), ids=_masks().keys())
def test_the_block_is_pytorchs_encoder_layer(
    mask: Tensor | None, norm_first: bool, activation: str, dtype: torch.dtype
) -> None:
    block = EncoderBlock(D_MODEL, HEADS, D_FF, activation=activation, norm_first=norm_first)
    _randomised(block)
    block.to(dtype)
    layer = _torch_layer(block, activation)
    x = _draw(BATCH, LENGTH, D_MODEL, dtype=dtype)
    expected = layer(x, **_torch_masks(mask))
    found = block(x, mask)
    assert found.dtype == dtype
    scale = max(1.0, float(expected.detach().abs().max()) / 4)
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@activations
@orders
@pytest.mark.parametrize("mask", _masks().values(), ids=_masks().keys())
def test_gradients_of_the_block_are_those_of_pytorchs_encoder_layer(
    mask: Tensor | None, norm_first: bool, activation: str
) -> None:
    block = EncoderBlock(D_MODEL, HEADS, D_FF, activation=activation, norm_first=norm_first).double()
    _randomised(block)
    layer = _torch_layer(block, activation)
    inputs = [_draw(BATCH, LENGTH, D_MODEL).requires_grad_() for _ in range(2)]
    weights = _draw(BATCH, LENGTH, D_MODEL, seed=1)
    (block(inputs[0], mask) * weights).sum().backward()
    (layer(inputs[1], **_torch_masks(mask)) * weights).sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=0, atol=1e-11)
    attention = block.attention
    in_projection = torch.cat([p.weight.grad for p in (attention.query, attention.key, attention.value)])  # type: ignore[misc]
    pairs = {
        "in_projection": (in_projection, layer.self_attn.in_proj_weight.grad),
        "output": (attention.output.weight.grad, layer.self_attn.out_proj.weight.grad),
        "expand": (block.feed_forward.expand.weight.grad, layer.linear1.weight.grad),
        "contract": (block.feed_forward.contract.bias.grad, layer.linear2.bias.grad),
        "attention_norm": (block.attention_norm.weight.grad, layer.norm1.weight.grad),
        "feed_forward_norm": (block.feed_forward_norm.bias.grad, layer.norm2.bias.grad),
    }
    for name, (found, expected) in pairs.items():
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11, msg=name)


@orders
def test_in_eval_mode_dropout_makes_no_difference_to_pytorchs_fast_path_either(norm_first: bool) -> None:
    block = EncoderBlock(D_MODEL, HEADS, D_FF, dropout=0.4, norm_first=norm_first).eval()
    _randomised(block)
    layer = _torch_layer(block, "relu").eval()
    x = _draw(BATCH, LENGTH, D_MODEL, dtype=torch.float32)
    with torch.no_grad():
        torch.testing.assert_close(block(x), layer(x), rtol=0, atol=2e-5)


def _bert_layer(block: EncoderBlock) -> nn.Module:
    """BERT's layer with the block's weights: post-norm, gelu."""
    transformers = pytest.importorskip("transformers", reason="an oracle only the tests need")
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        intermediate_size=D_FF,
        hidden_act="gelu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    config._attn_implementation = "eager"
    layer: nn.Module = BertLayer(config).to(block.attention.query.weight.dtype)
    layer.load_state_dict({_bert_name(name): value for name, value in block.state_dict().items()})
    return layer


def _bert_name(name: str) -> str:
    places = {
        "attention.output": "attention.output.dense",
        "attention": "attention.self",
        "feed_forward.expand": "intermediate.dense",
        "feed_forward.contract": "output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "feed_forward_norm": "output.LayerNorm",
    }
    ours = next(place for place in places if name.startswith(f"{place}."))
    return places[ours] + name.removeprefix(ours)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_the_block_is_berts_layer_with_gradients(padded: bool, dtype: torch.dtype) -> None:
    block = EncoderBlock(D_MODEL, HEADS, D_FF, activation="gelu").to(dtype)
    _randomised(block)
    layer = _bert_layer(block)
    mask = _masks()["padding"] if padded else None
    added = None if mask is None else torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)
    inputs = [_draw(BATCH, LENGTH, D_MODEL, dtype=dtype).requires_grad_() for _ in range(2)]
    found, answer = block(inputs[0], mask), layer(inputs[1], attention_mask=added)
    expected: Tensor = answer[0] if isinstance(answer, tuple) else answer
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype])
    weights = _draw(BATCH, LENGTH, D_MODEL, seed=1, dtype=dtype)
    for output in (found, expected):
        (output * weights).sum().backward()
    theirs = dict(layer.named_parameters())
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=0, atol=10 * TOLERANCE[dtype])
    for name, parameter in block.named_parameters():
        torch.testing.assert_close(
            parameter.grad, theirs[_bert_name(name)].grad, rtol=0, atol=10 * TOLERANCE[dtype], msg=name
        )


@dtypes
@pytest.mark.parametrize("eps", [1e-5, 0.7])
@pytest.mark.parametrize("leading", [(), (3,), (2, 3, 4)], ids=str)
def test_layer_norm_is_pytorchs(leading: tuple[int, ...], eps: float, dtype: torch.dtype) -> None:
    ours, theirs = LayerNorm(7, eps), nn.LayerNorm(7, eps)
    assert {name: tuple(value.shape) for name, value in ours.state_dict().items()} == {"weight": (7,), "bias": (7,)}
    torch.testing.assert_close(ours.state_dict(), dict(theirs.state_dict()))
    with torch.no_grad():
        ours.weight.copy_(_draw(7, seed=1))
        ours.bias.copy_(_draw(7, seed=2))
    theirs.load_state_dict(ours.state_dict())
    ours.to(dtype)
    theirs.to(dtype)
    x = 3 * _draw(*leading, 7, dtype=dtype) + 2
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=TOLERANCE[dtype] / 4)


def test_layer_norm_in_half_precision_is_exact_to_the_last_place() -> None:
    norm = LayerNorm(64).to(torch.bfloat16)
    x = (300 * _draw(200, 64)).to(torch.bfloat16)
    exact = F.layer_norm(x.double(), (64,))
    spacing = torch.finfo(torch.bfloat16).eps * exact.abs() + 1e-6
    assert bool(((norm(x).double() - exact).abs() <= 0.51 * spacing).all())


def test_layer_norm_of_features_that_are_all_alike_is_its_bias_and_has_finite_gradients() -> None:
    norm = LayerNorm(5).double()
    with torch.no_grad():
        norm.bias.copy_(_draw(5))
    x = torch.full((2, 5), 0.5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(norm(x), norm.bias.expand(2, 5))
    (norm(x) * _draw(2, 5, seed=1)).sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_gradients_of_layer_norm_agree_with_finite_differences() -> None:
    norm = LayerNorm(6).double()
    _randomised(norm)
    assert torch.autograd.gradcheck(norm, (_draw(3, 6).requires_grad_(),))


@dtypes
@activations
def test_feed_forward_is_two_linear_layers_with_pytorchs_activation_between(
    activation: str, dtype: torch.dtype
) -> None:
    network = FeedForward(D_MODEL, D_FF, activation).to(dtype)
    bend = nn.ReLU() if activation == "relu" else nn.GELU()
    layers = nn.Sequential(nn.Linear(D_MODEL, D_FF), bend, nn.Linear(D_FF, D_MODEL)).to(dtype)
    layers[0].load_state_dict(network.expand.state_dict())
    layers[2].load_state_dict(network.contract.state_dict())
    x = _draw(BATCH, LENGTH, D_MODEL, dtype=dtype)
    torch.testing.assert_close(network(x), layers(x), rtol=0, atol=0)


def test_gelu_is_the_exact_form() -> None:
    network = FeedForward(1, 1, "gelu").double()
    network.load_state_dict({name: torch.zeros_like(value) for name, value in network.state_dict().items()})
    with torch.no_grad():
        network.expand.weight.fill_(1.0)
        network.contract.weight.fill_(1.0)
    x = torch.linspace(-6, 6, 1201, dtype=torch.float64)[:, None]
    exact = x / 2 * (1 + torch.erf(x / 2**0.5))
    torch.testing.assert_close(network(x), exact, rtol=0, atol=1e-15)
    assert 4.7e-4 < (F.gelu(x, approximate="tanh") - network(x)).abs().max() < 4.8e-4


@pytest.mark.parametrize("activation", ["tanh", "", "RELU", "gelu_new"])
def test_an_unknown_activation_is_refused_on_construction_by_name_and_value(activation: str) -> None:
    with pytest.raises(ValueError, match=r"activation") as caught:
        FeedForward(4, 6, activation)
    assert repr(activation) in str(caught.value)
    with pytest.raises(ValueError, match="activation"):
        EncoderBlock(4, 2, 6, activation=activation)


def test_dropout_of_the_feed_forward_network_hits_widened_features_in_train_mode_only() -> None:
    network = FeedForward(4, 6, "gelu", dropout=0.5).double()
    x = _draw(2, 3, 4)
    torch.manual_seed(7)
    found = network(x)
    torch.manual_seed(7)
    expected = network.contract(F.dropout(F.gelu(network.expand(x)), 0.5))
    torch.testing.assert_close(found, expected)
    network.eval()
    torch.testing.assert_close(network(x), network.contract(F.gelu(network.expand(x))))


def test_add_norm_is_pytorchs_norm_of_the_sum() -> None:
    frame, norm = AddNorm(6, dropout=0.5, eps=0.3).double(), nn.LayerNorm(6, eps=0.3).double()
    assert set(frame.state_dict()) == {"norm.weight", "norm.bias"}
    _randomised(frame)
    norm.load_state_dict(frame.norm.state_dict())
    x, sublayer_output = _draw(2, 3, 6), _draw(2, 3, 6, seed=1)
    torch.manual_seed(5)
    found = frame(x, sublayer_output)
    torch.manual_seed(5)
    torch.testing.assert_close(found, norm(x + F.dropout(sublayer_output, 0.5)))
    torch.testing.assert_close(frame.eval()(x, sublayer_output), norm(x + sublayer_output))


@pytest.mark.parametrize("mask", _masks().values(), ids=_masks().keys())
def test_the_given_attention_is_pytorchs_multi_head_attention(mask: Tensor | None) -> None:
    ours = MultiHeadAttention(D_MODEL, HEADS).double()
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True).double()
    _randomised(ours)
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]),
            "in_proj_bias": torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    x = _draw(BATCH, LENGTH, D_MODEL)
    given = {
        key.replace("src_mask", "attn_mask").replace("src_", ""): value for key, value in _torch_masks(mask).items()
    }
    expected, _ = theirs(x, x, x, **given)
    torch.testing.assert_close(ours(x, mask), expected, rtol=0, atol=1e-12)


SIZES = [(5, 12, 3, 20), (10, 768, 12, 3072), (1, 4, 1, 7)]


@pytest.mark.parametrize(("length", "d_model", "n_heads", "d_ff"), SIZES)
def test_counted_parameters_are_those_of_real_layers(length: int, d_model: int, n_heads: int, d_ff: int) -> None:
    with torch.device("meta"):
        layers: list[nn.Module] = [
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff),
            EncoderBlock(d_model, n_heads, d_ff, norm_first=True),
        ]
    for layer in layers:
        counted = sum(parameter.numel() for parameter in layer.parameters())
        assert block_cost(length, d_model, n_heads, d_ff)["parameters"] == counted


@pytest.mark.parametrize(("length", "d_model", "n_heads", "d_ff"), SIZES)
def test_counted_scores_and_multiply_adds_are_those_that_run(
    length: int, d_model: int, n_heads: int, d_ff: int
) -> None:
    cost = block_cost(length, d_model, n_heads, d_ff)
    attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
    x = torch.zeros(1, length, d_model)
    _, weights = attention(x, x, x, average_attn_weights=False)
    assert cost["attention_scores"] == weights.numel()
    with FlopCounterMode(display=False) as counter:
        EncoderBlock(d_model, n_heads, d_ff)(x)
    assert 2 * cost["multiply_adds"] == counter.get_total_flops()  # a multiply-add is two floating-point operations
    assert all(type(value) is int for value in cost.values())


def test_berts_base_layer_has_seven_million_parameters() -> None:
    transformers = pytest.importorskip("transformers", reason="an oracle only the tests need")
    from transformers.models.bert.modeling_bert import BertLayer

    with torch.device("meta"):
        layer: Any = BertLayer(transformers.BertConfig())
    counted = sum(parameter.numel() for parameter in layer.parameters())
    assert block_cost(512, 768, 12, 3072)["parameters"] == counted == 7_087_872
