"""The attention reference against PyTorch's own attention and masks, and against loops written out in float64."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.reference.attention import attention, causal_mask, permutation_gap, sentence_vector

LEADING = [(), (2,), (2, 3)]
TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-6, torch.bfloat16: 3e-2}
"""Sums of 8 products of normal numbers, then averages: some units in the last place of numbers below 4."""


def _inputs(*leading: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q, k, d, d_v = 5, 7, 8, 4

    def draw(rows: int, width: int) -> Tensor:
        return torch.randn(*leading, rows, width, generator=generator, dtype=torch.float64).to(dtype)

    return draw(q, d), draw(k, d), draw(k, d_v)


def _output(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> Tensor:
    return attention(query, key, value, attn_mask)[0]


def _mask(*shape: int, seed: int = 1) -> Tensor:
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[..., 2] = True
    return mask


def _masks(*leading: int) -> dict[str, Tensor | None]:
    masks: dict[str, Tensor | None] = {"none": None, "shared": _mask(5, 7), "keys alone": _mask(1, 7)}
    if leading:
        masks["its own for each"] = _mask(*leading, 5, 7)
        masks["shared by queries"] = _mask(leading[0], *(1,) * len(leading), 7)
    return masks


def _by_loops(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Attention from its definition, one number at a time, in Python's floats."""
    *leading, q, d = query.shape
    k, d_v = value.shape[-2:]
    output, weights = torch.zeros(*leading, q, d_v).double(), torch.zeros(*leading, q, k).double()
    allowed = torch.ones(*leading, q, k, dtype=torch.bool) if mask is None else mask.expand(*leading, q, k)
    for place in itertools.product(*(range(n) for n in leading)):
        for i in range(q):
            exponentials = {}
            for j in range(k):
                if allowed[(*place, i, j)]:
                    score = sum(float(query[(*place, i, c)]) * float(key[(*place, j, c)]) for c in range(d)) / d**0.5
                    exponentials[j] = math.exp(score)
            for j, exponential in exponentials.items():
                weights[(*place, i, j)] = exponential / sum(exponentials.values())
                for c in range(d_v):
                    output[(*place, i, c)] += weights[(*place, i, j)] * value[(*place, j, c)]
    return output, weights


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_output_is_that_of_scaled_dot_product_attention(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    query, key, value = _inputs(*leading, dtype=dtype)
    for name, mask in _masks(*leading).items():
        output, weights = attention(query, key, value, mask)
        expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        torch.testing.assert_close(output, expected, rtol=0, atol=TOLERANCE[dtype], msg=name)
        assert weights.dtype == dtype
        assert weights.shape == (*leading, 5, 7)


@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_output_and_weights_are_those_of_loops_over_the_definition(leading: tuple[int, ...]) -> None:
    query, key, value = _inputs(*leading)
    for mask in _masks(*leading).values():
        for found, expected in zip(attention(query, key, value, mask), _by_loops(query, key, value, mask), strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_gradients_are_those_of_scaled_dot_product_attention(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    for mask in _masks(*leading).values():
        gradients = []
        for attend in (_output, F.scaled_dot_product_attention):
            inputs = query, key, value = _inputs(*leading, dtype=dtype)
            for tensor in inputs:
                tensor.requires_grad_()
            output = attend(query, key, value, attn_mask=mask)
            direction = _inputs(*leading, dtype=dtype, seed=3)[0][..., :4]
            gradients.append(torch.autograd.grad((output * direction).sum(), inputs))
        for found, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("with_empty_rows", [False, True])
def test_gradients_of_output_and_weights_are_finite_differences(with_empty_rows: bool) -> None:
    inputs = tuple(tensor.requires_grad_() for tensor in _inputs(2))
    mask = _mask(2, 5, 7)
    if with_empty_rows:
        mask[0, 1] = mask[1, 4] = False
    assert torch.autograd.gradcheck(lambda query, key, value: attention(query, key, value, mask), inputs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_query_that_may_attend_to_nothing_gets_zeros_and_passes_zero_gradient(dtype: torch.dtype) -> None:
    query, key, value = (tensor.requires_grad_() for tensor in _inputs(2, 3, dtype=dtype))
    mask = _mask(2, 1, 5, 7)
    mask[0, 0, 1] = mask[1, 0, 4] = False
    output, weights = attention(query, key, value, mask)
    torch.autograd.backward(output.sum() + weights.square().sum())
    for tensor in (output[0, :, 1], output[1, :, 4], weights[0, :, 1], weights[1, :, 4]):
        assert torch.equal(tensor, torch.zeros_like(tensor))
    assert query.grad is not None
    assert torch.equal(query.grad[0, :, 1], torch.zeros(3, 8, dtype=dtype))
    for tensor in (query, key, value):
        assert tensor.grad is not None
        assert bool(tensor.grad.isfinite().all())


def test_blocked_pairs_have_no_weight_and_the_rest_of_a_row_sums_to_one() -> None:
    mask = _mask(2, 5, 7)
    weights = attention(*_inputs(2), mask)[1]
    assert torch.equal(weights == 0, ~mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5).double(), rtol=0, atol=1e-14)


def test_attention_leaves_its_arguments_alone() -> None:
    query, key, value, mask = inputs = (*_inputs(2), _mask(2, 5, 7))
    copies = [tensor.clone() for tensor in inputs]
    attention(query, key, value, mask)
    assert all(torch.equal(before, after) for before, after in zip(copies, inputs, strict=True))


@pytest.mark.parametrize("length", [1, 2, 9])
def test_causal_mask_is_what_torch_adds_to_scores(length: int) -> None:
    added = nn.Transformer.generate_square_subsequent_mask(length)
    found = causal_mask(length)
    assert found.dtype == torch.bool
    assert torch.equal(found, added == 0)
    assert torch.equal(~found, added == -torch.inf)


def test_causal_mask_in_attention_is_torchs_is_causal() -> None:
    query, key, value = (tensor[..., :5, :] for tensor in _inputs(2, 3))
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(attention(query, key, value, causal_mask(5))[0], expected, rtol=0, atol=1e-13)


def test_causal_mask_is_made_on_the_device_asked_for() -> None:
    assert causal_mask(3, device="meta").device.type == "meta"


def test_permutation_gap_of_a_running_sum_worked_by_hand() -> None:
    x = torch.tensor([[[1.0], [2.0], [4.0]]])
    # Shuffled first: 4 1 2 gives 4 5 7. Layer first: 1 3 7 gives 7 1 3. Differences -3, 4, 4.
    gap = permutation_gap(lambda x: x.cumsum(dim=1), x, torch.tensor([2, 0, 1]))
    assert type(gap) is float
    assert gap == 4.0


def test_permutation_gap_is_the_largest_single_difference_found_by_loops() -> None:
    x, permutation = _inputs(3)[1], torch.tensor([2, 0, 1, 6, 3, 5, 4])
    network = nn.GRU(8, 6, batch_first=True).double().requires_grad_(False)
    mixed = torch.stack([network(x)[0][b, permutation] for b in range(3)])
    moved = torch.stack([network(x[b : b + 1, permutation])[0][0] for b in range(3)])
    largest = max(abs(a - b) for a, b in zip(mixed.flatten().tolist(), moved.flatten().tolist(), strict=True))
    assert permutation_gap(lambda x: network(x)[0], x, permutation) == pytest.approx(largest, abs=1e-12)


def test_attention_ignores_order_and_its_causal_form_does_not() -> None:
    x, permutation = _inputs(3)[1], torch.tensor([2, 0, 1, 6, 3, 5, 4])
    assert permutation_gap(lambda x: attention(x, x, x)[0], x, permutation) < 1e-13
    assert permutation_gap(lambda x: attention(x, x, x, causal_mask(7))[0], x, permutation) > 0.1


def test_torchs_encoder_ignores_order() -> None:
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2, enable_nested_tensor=False
    ).double()
    encoder.eval()
    x, permutation = _inputs(3)[1], torch.tensor([2, 0, 1, 6, 3, 5, 4])
    assert permutation_gap(encoder, x, permutation) < 1e-12


def test_sentence_vector_is_the_mean_of_torchs_attention() -> None:
    x = _inputs()[1]
    batch = x.unsqueeze(0)
    expected = F.scaled_dot_product_attention(batch, batch, batch).mean(dim=1)[0]
    torch.testing.assert_close(sentence_vector(x), expected, rtol=0, atol=1e-13)


def test_sentence_vector_is_one_and_the_same_in_every_order() -> None:
    x = _inputs()[1][:4]
    vectors = torch.stack([sentence_vector(x[list(order)]) for order in itertools.permutations(range(4))])
    torch.testing.assert_close(vectors, vectors[:1].expand_as(vectors), rtol=0, atol=1e-14)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_on_a_gpu_results_stay_there_and_equal_those_of_the_cpu(dtype: torch.dtype) -> None:
    inputs, mask = _inputs(2, 3, dtype=dtype), _mask(2, 1, 5, 7)
    mask[0, 0, 1] = False
    query, key, value = (tensor.cuda() for tensor in inputs)
    found = attention(query, key, value, mask.cuda())
    for there, here in zip(found, attention(*inputs, mask), strict=True):
        assert there.is_cuda
        torch.testing.assert_close(there.cpu(), here, rtol=0, atol=10 * TOLERANCE[dtype])
    assert causal_mask(4, device="cuda").is_cuda
    x, permutation = inputs[1][0].cuda(), torch.tensor([2, 0, 1, 6, 3, 5, 4], device="cuda")
    assert permutation_gap(lambda x: attention(x, x, x)[0], x, permutation) < 10 * TOLERANCE[dtype]
    assert sentence_vector(x[0]).is_cuda
