"""The input layer against nn.Embedding, the formula written out, and the recipe of "Attention Is All You Need"."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.embedding import SinusoidalPosition, TokenEmbedding, TransformerInput, padding_mask
from autograder.reference.sinusoidal import sinusoidal_encoding

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
BATCH, LENGTH, D_MODEL, VOCAB_SIZE = 3, 5, 8, 13
PADDING_ID = 4


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tokens_with_padding() -> Tensor:
    tokens = torch.randint(VOCAB_SIZE, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1))
    tokens[0, 1] = tokens[-1, -1] = PADDING_ID
    return tokens


def encoding_by_formula(positions: range, d_model: int, base: float = 10000.0) -> Tensor:
    """Section 3.5 of the paper, one number at a time, in Python's floats."""
    rows = []
    for position in positions:
        angles = [position / base ** (2 * i / d_model) for i in range(d_model // 2)]
        rows.append([wave(angle) for angle in angles for wave in (math.sin, math.cos)])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("padding_id", [None, 0, PADDING_ID])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_token_embedding_is_torchs_table_times_the_root_of_the_width(
    dtype: torch.dtype, padding_id: int | None
) -> None:
    """Values and gradients are those of nn.Embedding with padding_idx, followed by a product."""
    weights = drawn(VOCAB_SIZE, D_MODEL, dtype=dtype)
    ours, theirs = (
        module.to(dtype)
        for module in (
            TokenEmbedding(VOCAB_SIZE, D_MODEL, padding_id),
            nn.Embedding(VOCAB_SIZE, D_MODEL, padding_idx=padding_id),
        )
    )
    ours.load_state_dict({"table.weight": weights})
    theirs.load_state_dict({"weight": weights})
    tokens, along = tokens_with_padding(), drawn(BATCH, LENGTH, D_MODEL, seed=2, dtype=dtype)
    found, wanted = ours(tokens), theirs(tokens) * math.sqrt(D_MODEL)
    assert found.dtype == dtype
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    found.backward(along)
    wanted.backward(along)
    gradient = ours.get_parameter("table.weight").grad
    assert gradient is not None
    torch.testing.assert_close(gradient, theirs.weight.grad, rtol=0, atol=0)
    if padding_id is not None:
        assert not gradient[padding_id].any()


def test_token_embedding_is_a_product_with_one_hot_rows() -> None:
    """The look-up, its scale and the gradient of the table, by matrix products."""
    module = TokenEmbedding(VOCAB_SIZE, D_MODEL).double()
    weights, tokens = drawn(VOCAB_SIZE, D_MODEL), tokens_with_padding()
    module.load_state_dict({"table.weight": weights})
    one_hot = F.one_hot(tokens, VOCAB_SIZE).double()  # (batch, length, vocab_size)
    found, along = module(tokens), drawn(BATCH, LENGTH, D_MODEL, seed=3)
    torch.testing.assert_close(found, one_hot @ weights * D_MODEL**0.5, rtol=0, atol=1e-14)
    found.backward(along)
    gradient = torch.einsum("blv,bld->vd", one_hot, along) * D_MODEL**0.5
    torch.testing.assert_close(module.get_parameter("table.weight").grad, gradient, rtol=0, atol=1e-13)


@pytest.mark.parametrize("padding_id", [None, 0, PADDING_ID])
def test_a_new_table_has_one_zero_row_if_there_is_padding(padding_id: int | None) -> None:
    weight = TokenEmbedding(VOCAB_SIZE, D_MODEL, padding_id).state_dict()["table.weight"]
    assert weight.shape == (VOCAB_SIZE, D_MODEL)
    zero = [row for row in range(VOCAB_SIZE) if not weight[row].any()]
    assert zero == ([] if padding_id is None else [padding_id])


def test_training_leaves_the_padding_row_at_zero() -> None:
    """Also after steps of an optimiser with momentum and weight decay."""
    torch.manual_seed(0)
    module = TokenEmbedding(VOCAB_SIZE, D_MODEL, PADDING_ID)
    before = module.state_dict()["table.weight"].clone()
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        module(tokens_with_padding()).square().sum().backward()
        optimiser.step()
    after = module.state_dict()["table.weight"]
    assert not after[PADDING_ID].any()
    assert not torch.equal(after, before)


@pytest.mark.parametrize("offset", [0, 1, 7, 4321])
@pytest.mark.parametrize("base", [10000.0, 37.5])
def test_position_adds_the_papers_formula(offset: int, base: float) -> None:
    """In float64 the sum differs only by the float32 of the stored table."""
    x = drawn(BATCH, LENGTH, D_MODEL)
    found = SinusoidalPosition(D_MODEL, base=base)(x, offset)
    wanted = x + encoding_by_formula(range(offset, offset + LENGTH), D_MODEL, base)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, wanted, rtol=0, atol=6e-8)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16], ids=str)
@pytest.mark.parametrize("moved", [False, True], ids=["float32 module", "module in the same dtype"])
def test_position_answers_in_the_dtype_of_x(dtype: torch.dtype, moved: bool) -> None:
    """Within half a unit in the last place for the encoding and for the sum, whether or not the module was moved."""
    x = drawn(BATCH, LENGTH, D_MODEL, dtype=dtype)
    module = SinusoidalPosition(D_MODEL, max_len=400)
    found = (module.to(dtype) if moved else module)(x, offset=300)
    wanted = x.double() + encoding_by_formula(range(300, 300 + LENGTH), D_MODEL)
    eps = torch.finfo(dtype).eps
    assert found.dtype == dtype
    error = (found.double() - wanted).abs()
    assert bool((error <= 6e-8 + eps / 4 + 0.5 * eps * (wanted.abs() + eps)).all())


def test_position_has_nothing_to_learn_and_nothing_to_save() -> None:
    module = SinusoidalPosition(D_MODEL, max_len=11)
    assert list(module.parameters()) == []
    assert module.state_dict() == {}
    ((name, buffer),) = module.named_buffers()
    assert (name, buffer.shape, buffer.dtype) == ("encoding", (11, D_MODEL), torch.float32)
    assert torch.equal(buffer, sinusoidal_encoding(11, D_MODEL))
    assert module.to("meta").encoding.is_meta


def test_position_by_position_is_the_whole_sequence() -> None:
    """What decoding with an offset adds is what the whole sequence gets."""
    module, x = SinusoidalPosition(D_MODEL, max_len=9), drawn(BATCH, 9, D_MODEL)
    steps = [module(x[:, t : t + 1], offset=t) for t in range(9)]
    assert torch.equal(torch.cat(steps, dim=1), module(x))


def test_position_passes_gradient_and_leaves_x_alone() -> None:
    x, along = drawn(BATCH, LENGTH, D_MODEL).requires_grad_(), drawn(BATCH, LENGTH, D_MODEL, seed=5)
    before = x.detach().clone()
    SinusoidalPosition(D_MODEL)(x, offset=3).backward(along)
    assert x.grad is not None
    assert torch.equal(x.grad, along)
    assert torch.equal(x.detach(), before)


AT_THE_END = [(0, 9, True), (4, 5, True), (8, 1, True), (0, 10, False), (5, 5, False), (9, 1, False), (50, 1, False)]


@pytest.mark.parametrize(("offset", "length", "fits"), AT_THE_END)
def test_the_end_of_the_table(offset: int, length: int, fits: bool) -> None:
    """The last row can be used; one more is refused, naming max_len and its value."""
    module, x = SinusoidalPosition(4, max_len=9), torch.zeros(2, length, 4)
    if fits:
        assert module(x, offset).shape == x.shape
    else:
        with pytest.raises(ValueError, match=r"max_len=9\b"):
            module(x, offset)


def recipe(weights: Tensor, tokens: Tensor, offset: int, padding_id: int | None) -> Tensor:
    """Sections 3.4 and 3.5: multiply the embeddings by √d_model, add the encoding of the position."""
    wanted = torch.zeros(*tokens.shape, weights.shape[1], dtype=torch.float64)
    encodings = encoding_by_formula(range(offset, offset + tokens.shape[1]), weights.shape[1])
    for b, row in enumerate(tokens.tolist()):
        for t, token in enumerate(row):
            vector = torch.zeros(weights.shape[1]).double() if token == padding_id else weights[token].double()
            wanted[b, t] = math.sqrt(weights.shape[1]) * vector + encodings[t]
    return wanted


@pytest.mark.parametrize("offset", [0, 6])
@pytest.mark.parametrize("padding_id", [None, 0, PADDING_ID])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_transformer_input_is_the_papers_recipe(dtype: torch.dtype, padding_id: int | None, offset: int) -> None:
    """In eval mode; bfloat16 rounds the product, the encoding and the sum, each by half a unit in the last place."""
    weights = drawn(VOCAB_SIZE, D_MODEL, dtype=dtype)
    if padding_id is not None:
        weights[padding_id] = 0
    module = TransformerInput(VOCAB_SIZE, D_MODEL, max_len=20, padding_id=padding_id).to(dtype).eval()
    module.load_state_dict({"tokens.table.weight": weights})
    found = module(tokens_with_padding(), offset)
    wanted = recipe(weights, tokens_with_padding(), offset, padding_id)
    eps = torch.finfo(dtype).eps
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=6e-8 + 8 * eps)


def test_transformer_input_passes_gradient_to_its_table_alone() -> None:
    module = TransformerInput(VOCAB_SIZE, D_MODEL, padding_id=PADDING_ID).double().eval()
    tokens, along = tokens_with_padding(), drawn(BATCH, LENGTH, D_MODEL)
    module(tokens).backward(along)
    ((name, parameter),) = module.named_parameters()
    one_hot = F.one_hot(tokens, VOCAB_SIZE).double()
    one_hot[..., PADDING_ID] = 0
    gradient = torch.einsum("blv,bld->vd", one_hot, along) * D_MODEL**0.5
    assert name == "tokens.table.weight"
    torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=1e-13)
    assert list(module.state_dict()) == [name]


@pytest.mark.parametrize("share", [0.1, 0.35])
def test_dropout_falls_on_the_sum_once_in_train_mode(share: float) -> None:
    """A value is either 0 or the one of eval mode, enlarged; the share of zeros is the argument."""
    torch.manual_seed(3)
    module = TransformerInput(VOCAB_SIZE, D_MODEL, dropout=share)
    tokens = tokens_with_padding().repeat(400, 1)  # 48000 values: a standard deviation of 0.0022
    whole = module.eval()(tokens)
    dropped = module.train()(tokens)
    zero = dropped == 0
    assert torch.allclose(dropped[~zero], whole[~zero] / (1 - share), rtol=0, atol=1e-5)
    assert zero.double().mean().item() == pytest.approx(share, abs=0.012)
    torch.manual_seed(4)
    first = module(tokens)
    torch.manual_seed(4)
    assert torch.equal(first, F.dropout(whole, share))


def test_transformer_input_hands_max_len_on() -> None:
    module = TransformerInput(VOCAB_SIZE, D_MODEL, max_len=LENGTH + 1)
    assert module(tokens_with_padding(), offset=1).shape == (BATCH, LENGTH, D_MODEL)
    with pytest.raises(ValueError, match=f"max_len={LENGTH + 1}"):
        module(tokens_with_padding(), offset=2)


@pytest.mark.parametrize("padding_id", [0, PADDING_ID, 12])
def test_padding_mask_marks_each_real_token(padding_id: int) -> None:
    tokens = tokens_with_padding()
    mask = padding_mask(tokens, padding_id)
    assert (mask.shape, mask.dtype) == ((BATCH, 1, 1, LENGTH), torch.bool)
    for b in range(BATCH):
        assert mask[b, 0, 0].tolist() == [token != padding_id for token in tokens[b].tolist()]


def test_padding_mask_hides_padding_from_torchs_own_attention() -> None:
    """Attention under the mask is that of the sentence without its padding, for every head and query."""
    heads, head_dim = 2, 4
    tokens = torch.tensor([[7, 2, 5, PADDING_ID, PADDING_ID]])
    query, key, value = (drawn(1, heads, 5, head_dim, seed=seed) for seed in (6, 7, 8))
    masked = F.scaled_dot_product_attention(query, key, value, attn_mask=padding_mask(tokens, PADDING_ID))
    short = F.scaled_dot_product_attention(query, key[:, :, :3], value[:, :, :3])
    torch.testing.assert_close(masked, short, rtol=0, atol=1e-14)


def test_padding_mask_is_what_torchs_encoder_ignores() -> None:
    """nn.TransformerEncoderLayer takes the opposite: True = ignore."""
    torch.manual_seed(9)
    tokens = torch.tensor([[7, 2, 5, PADDING_ID, PADDING_ID], [1, 1, 2, 3, 6]])
    layer = nn.TransformerEncoderLayer(D_MODEL, 2, 16, dropout=0.0, batch_first=True).double()
    x = TransformerInput(VOCAB_SIZE, D_MODEL, padding_id=PADDING_ID).double().eval()(tokens)
    ignored: Any = ~padding_mask(tokens, PADDING_ID)[:, 0, 0]
    padded = layer(x, src_key_padding_mask=ignored)
    torch.testing.assert_close(padded[:1, :3], layer(x[:1, :3]), rtol=0, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_input_layer_on_the_gpu() -> None:
    """The buffer moves with the module, and the values are those of the CPU."""
    module = TransformerInput(VOCAB_SIZE, D_MODEL, padding_id=PADDING_ID).eval()
    wanted = module(tokens_with_padding(), 4500)
    found = module.to("cuda")(tokens_with_padding().cuda(), 4500)
    assert found.device.type == "cuda"
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=1e-6)
    assert padding_mask(tokens_with_padding().cuda(), PADDING_ID).is_cuda
