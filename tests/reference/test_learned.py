"""Learned positions against the tables of BERT and ViT in `transformers`, on tiny random configurations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, ViTConfig
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.vit.modeling_vit import ViTEmbeddings

from autograder.reference.learned import LearnedPosition

BATCH, LENGTH, D_MODEL, MAX_LEN = 3, 5, 8, 14


def _module(table: Tensor) -> LearnedPosition:
    module = LearnedPosition(*table.shape).to(table.dtype)
    with torch.no_grad():
        module.table.weight.copy_(table)
    return module


def _x(dtype: torch.dtype = torch.float64, length: int = LENGTH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, length, D_MODEL, generator=generator, dtype=torch.float64).to(dtype)


@pytest.fixture
def bert() -> BertEmbeddings:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=11, hidden_size=D_MODEL, max_position_embeddings=MAX_LEN, num_attention_heads=2)
    embeddings = BertEmbeddings(config).double().eval()
    torch.nn.init.zeros_(embeddings.token_type_embeddings.weight)
    embeddings.LayerNorm = torch.nn.Identity()
    return embeddings


@pytest.mark.parametrize("offset", [0, 1, 4, MAX_LEN - LENGTH])
def test_adds_what_bert_adds(bert: BertEmbeddings, offset: int) -> None:
    module = _module(bert.position_embeddings.weight.detach())
    expected = bert(inputs_embeds=_x(), cache_length=offset)
    torch.testing.assert_close(module(_x(), offset), expected, rtol=0, atol=0)


@pytest.mark.parametrize("offset", [0, 6])
def test_gradients_are_those_of_bert_and_reach_only_the_rows_used(bert: BertEmbeddings, offset: int) -> None:
    module, direction = _module(bert.position_embeddings.weight.detach()), _x(length=LENGTH).flip(0)
    ours, theirs = _x().requires_grad_(), _x().requires_grad_()
    (module(ours, offset) * direction).sum().backward()
    (bert(inputs_embeds=theirs, cache_length=offset) * direction).sum().backward()
    found = module.table.weight.grad
    assert found is not None
    torch.testing.assert_close(found, bert.position_embeddings.weight.grad, rtol=0, atol=1e-14)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=0)
    used = (found != 0).any(dim=1)
    assert used.nonzero().flatten().tolist() == list(range(offset, offset + LENGTH))


def test_adds_what_vit_adds_to_its_patches() -> None:
    torch.manual_seed(0)
    config = ViTConfig(hidden_size=D_MODEL, image_size=6, patch_size=2, num_channels=3, hidden_dropout_prob=0.0)
    vit = ViTEmbeddings(config).double()
    pixels = torch.randn(BATCH, 3, 6, 6, dtype=torch.float64)
    patches = torch.cat([vit.cls_token.expand(BATCH, -1, -1), vit.patch_embeddings(pixels)], dim=1)
    assert patches.shape == (BATCH, 10, D_MODEL)
    module = _module(vit.position_embeddings.detach()[0])
    torch.testing.assert_close(module(patches), vit(pixels), rtol=0, atol=0)
    with pytest.raises(ValueError, match="max_len=10"):
        module(patches, offset=1)


def test_the_state_is_one_table() -> None:
    module = LearnedPosition(MAX_LEN, D_MODEL)
    assert {name: tuple(value.shape) for name, value in module.state_dict().items()} == {
        "table.weight": (MAX_LEN, D_MODEL)
    }
    assert [name for name, _ in module.named_parameters()] == ["table.weight"]
    assert list(module.buffers()) == []


def test_one_step_at_a_time_equals_the_whole_sequence() -> None:
    module, x = _module(torch.randn(MAX_LEN, D_MODEL).double()), _x()
    steps = [module(x[:, t : t + 1], offset=2 + t) for t in range(LENGTH)]
    assert torch.equal(torch.cat(steps, dim=1), module(x, offset=2))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_result_has_dtype_and_device_of_x(dtype: torch.dtype, device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    module, x = LearnedPosition(MAX_LEN, D_MODEL).to(device=device, dtype=dtype), _x(dtype)
    found = module(x.to(device), 3)
    assert (found.dtype, found.device.type, found.shape) == (dtype, device, x.shape)
    if device == "cpu":
        exact = x.double() + module.table.weight[3 : 3 + LENGTH].double()
        half_unit = torch.finfo(dtype).eps / 2 * exact.abs() + torch.finfo(dtype).smallest_normal
        assert bool(((found.double() - exact).abs() <= 1.001 * half_unit).all())
        assert torch.equal(x, _x(dtype))


@pytest.mark.parametrize(
    ("length", "offset"), [(MAX_LEN + 1, 0), (MAX_LEN, 1), (1, MAX_LEN), (2, MAX_LEN - 1), (3, 4 * MAX_LEN)]
)
def test_past_the_end_is_refused_by_name_and_value(length: int, offset: int) -> None:
    with pytest.raises(ValueError, match=f"max_len={MAX_LEN}"):
        LearnedPosition(MAX_LEN, D_MODEL)(torch.zeros(BATCH, length, D_MODEL), offset)


@pytest.mark.parametrize(("length", "offset"), [(MAX_LEN, 0), (1, MAX_LEN - 1), (4, MAX_LEN - 4)])
def test_the_last_row_can_be_used(length: int, offset: int) -> None:
    table = torch.arange(float(MAX_LEN))[:, None].expand(-1, D_MODEL)
    found = _module(table)(torch.zeros(BATCH, length, D_MODEL), offset)
    assert found[:, -1].eq(MAX_LEN - 1).all()
    assert found[:, 0].eq(offset).all()
