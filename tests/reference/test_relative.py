"""The relative reference against double loops, exact whole numbers, and the models that use it.

T5, BLOOM, MPT, Falcon, XLNet (which computes scores as Transformer-XL does) and DeBERTa-v2 come from `transformers`, as
tiny random configurations.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DebertaV2Config, T5Config, XLNetConfig
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta_v2
from transformers.models.falcon import modeling_falcon as falcon
from transformers.models.mpt import modeling_mpt as mpt
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

from autograder.reference.attention import causal_mask
from autograder.reference.relative import (
    T5Bias,
    alibi_bias,
    alibi_slopes,
    deberta_scores,
    relative_distance,
    relative_shift,
    t5_bucket,
    transformer_xl_scores,
)

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 4, 7, 5
LENGTHS = [(1, 1), (1, 6), (4, 4), (2, 9), (5, 7)]
BUCKETS = [(32, 128), (64, 128), (16, 64), (320, 800), (10, 100), (20, 53), (13, 61), (4, 7), (32, 1000), (256, 2048)]

lengths = pytest.mark.parametrize(("query_len", "key_len"), LENGTHS)


def _normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def _t5(*, decoder: bool = False, n_buckets: int = 32, max_distance: int = 128) -> Any:
    torch.manual_seed(1)
    config = T5Config(
        d_model=HEADS * WIDTH,
        d_kv=WIDTH,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=n_buckets,
        relative_attention_max_distance=max_distance,
        attn_implementation="eager",
    )
    return T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()


@lengths
def test_distances_pair_by_pair(query_len: int, key_len: int) -> None:
    found = relative_distance(query_len, key_len)
    assert (found.dtype, found.shape) == (torch.int64, (query_len, key_len))
    for i, j in itertools.product(range(query_len), range(key_len)):
        assert found[i, j] == j - (i + key_len - query_len)


@pytest.mark.parametrize("bidirectional", [True, False], ids=["both", "one-way"])
@pytest.mark.parametrize(("n_buckets", "max_distance"), BUCKETS)
def test_buckets_are_those_of_t5_at_every_distance(n_buckets: int, max_distance: int, bidirectional: bool) -> None:
    distance = torch.arange(-2000, 2001)
    found = t5_bucket(distance, bidirectional, n_buckets, max_distance)
    expected = T5Attention._relative_position_bucket(distance, bidirectional, n_buckets, max_distance)
    assert found.dtype == torch.int64
    assert torch.equal(found, expected)
    assert int(found.min()) == 0
    assert int(found.max()) == n_buckets - 1 if bidirectional and n_buckets % 2 == 0 else int(found.max()) < n_buckets


@pytest.mark.parametrize("bidirectional", [True, False], ids=["both", "one-way"])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (16, 64), (13, 61), (4, 7), (20, 53)])
def test_buckets_follow_the_rule_in_whole_numbers(n_buckets: int, max_distance: int, bidirectional: bool) -> None:
    """Shared bucket number s begins where (steps / exact)^shared ≥ (max_distance / exact)^s, in whole numbers."""
    half = n_buckets // 2 if bidirectional else n_buckets
    exact, shared = half // 2, half - half // 2
    for distance in range(-300, 301):
        steps = abs(distance) if bidirectional else max(-distance, 0)
        place = steps
        if steps >= exact:
            begun = [s for s in range(shared) if steps**shared * exact**s >= max_distance**s * exact**shared]
            place = exact + begun[-1]
        expected = place + half * (bidirectional and distance > 0)
        assert int(t5_bucket(torch.tensor(distance), bidirectional, n_buckets, max_distance)) == expected, distance


def test_buckets_keep_shape_device_and_input() -> None:
    distance = torch.arange(-12, 12).reshape(2, 3, 4)
    before = distance.clone()
    assert t5_bucket(distance).shape == (2, 3, 4)
    assert torch.equal(distance, before)
    found = t5_bucket(torch.arange(5, device="meta"))
    assert (found.device.type, found.dtype, found.shape) == ("meta", torch.int64, (5,))


@pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20)])
@pytest.mark.parametrize(("query_len", "key_len"), [*LENGTHS, (40, 40), (3, 150)])
def test_bias_is_that_of_t5(query_len: int, key_len: int, n_buckets: int, max_distance: int, decoder: bool) -> None:
    theirs = _t5(decoder=decoder, n_buckets=n_buckets, max_distance=max_distance)
    ours = T5Bias(HEADS, not decoder, n_buckets, max_distance)
    ours.load_state_dict({"table.weight": theirs.relative_attention_bias.weight})
    expected = theirs.compute_bias(query_len, key_len, past_seen_tokens=key_len - query_len)
    assert torch.equal(ours(query_len, key_len), expected[0])


@pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
def test_t5_adds_the_bias_to_scores_that_are_not_scaled(decoder: bool) -> None:
    """Against the whole layer: softmax(q·k + bias), without the 1/√d of the Transformer."""
    theirs = _t5(decoder=decoder)
    ours = T5Bias(HEADS, not decoder)
    ours.load_state_dict({"table.weight": theirs.relative_attention_bias.weight})
    x = _normal(BATCH, KEYS, HEADS * WIDTH, dtype=torch.float32)
    causal = torch.zeros(KEYS, KEYS).masked_fill(~causal_mask(KEYS), -1e30) if decoder else torch.zeros(KEYS, KEYS)
    expected = theirs(x, mask=causal.expand(BATCH, 1, KEYS, KEYS))[0]

    def heads(layer: Any) -> Tensor:
        split: Tensor = layer(x).view(BATCH, KEYS, HEADS, WIDTH).transpose(1, 2)
        return split

    query, key, value = heads(theirs.q), heads(theirs.k), heads(theirs.v)

    def mixed(scale: float) -> Tensor:
        weights = (query @ key.mT * scale + ours(KEYS, KEYS) + causal).softmax(-1)
        output: Tensor = theirs.o((weights @ value).transpose(1, 2).flatten(2))
        return output

    torch.testing.assert_close(mixed(1.0), expected, rtol=0, atol=2e-6)
    assert float((mixed(WIDTH**-0.5) - expected).detach().abs().max()) > 1e-3


def test_gradient_of_a_bucket_is_the_sum_over_its_pairs() -> None:
    module = T5Bias(HEADS, n_buckets=8, max_distance=20).double()
    weights = _normal(HEADS, QUERIES, 30)
    (module(QUERIES, 30) * weights).sum().backward()
    bucket = t5_bucket(relative_distance(QUERIES, 30), True, 8, 20)
    expected = torch.zeros(8, HEADS, dtype=torch.float64)
    for i, j in itertools.product(range(QUERIES), range(30)):
        expected[bucket[i, j]] += weights[:, i, j]
    assert module.table.weight.grad is not None
    torch.testing.assert_close(module.table.weight.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_bias_has_the_dtype_and_device_of_its_table(dtype: torch.dtype) -> None:
    assert T5Bias(HEADS).to(dtype)(2, 5).dtype == dtype
    assert T5Bias(HEADS).to("meta")(2, 5).device.type == "meta"
    assert dict(T5Bias(3, n_buckets=9).state_dict()).keys() == {"table.weight"}


@pytest.mark.parametrize("n_heads", range(1, 41))
def test_slopes_are_those_of_bloom_mpt_and_falcon(n_heads: int) -> None:
    found = alibi_slopes(n_heads)
    assert (found.dtype, found.shape) == (torch.float32, (n_heads,))
    torch.testing.assert_close(found, bloom._get_alibi_slopes(n_heads, torch.device("cpu")), rtol=2e-6, atol=0)
    torch.testing.assert_close(found, -mpt.build_mpt_alibi_tensor(n_heads, 2)[:, 0, 0], rtol=2e-6, atol=0)
    of_falcon = falcon.build_alibi_tensor(torch.ones(1, 2), n_heads, torch.float32)[:, 0, 1]
    # Falcon rounds the positions, and thus the bias, to bfloat16 first
    torch.testing.assert_close(found, of_falcon, rtol=2**-8, atol=0)


def test_slopes_of_published_models() -> None:
    """The paper's figure 3 (8 heads) and the 6 heads of its code: four of the geometric series, two between them."""
    assert alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(6).tolist() == [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    assert alibi_slopes(1).tolist() == [2.0**-8]


@lengths
@pytest.mark.parametrize("n_heads", [1, 6, 8])
def test_linear_bias_pair_by_pair(n_heads: int, query_len: int, key_len: int) -> None:
    found, slopes = alibi_bias(n_heads, query_len, key_len), alibi_slopes(n_heads)
    assert (found.dtype, found.shape) == (torch.float32, (n_heads, query_len, key_len))
    for h, i, j in itertools.product(range(n_heads), range(query_len), range(key_len)):
        assert found[h, i, j] == -slopes[h] * abs(i + key_len - query_len - j)


@pytest.mark.parametrize("n_heads", [4, 6])
def test_number_of_the_key_is_enough_under_a_causal_mask_and_not_without(n_heads: int) -> None:
    """BLOOM adds slope × key, MPT −slope × (last key − key): the softmax of a causal row can't tell them from ALiBi."""
    scores = _normal(n_heads, KEYS, KEYS, dtype=torch.float32)
    of_bloom = bloom.build_alibi_tensor(torch.ones(1, KEYS), n_heads, torch.float32)
    of_mpt = mpt.build_mpt_alibi_tensor(n_heads, KEYS)
    ours = alibi_bias(n_heads, KEYS, KEYS)
    for theirs in (of_bloom, of_mpt):
        masked = [(scores + b).masked_fill(~causal_mask(KEYS), -math.inf).softmax(-1) for b in (ours, theirs)]
        torch.testing.assert_close(*masked, rtol=0, atol=1e-6)
        free = [(scores + b).softmax(-1) for b in (ours, theirs)]
        assert float((free[0] - free[1]).abs().max()) > 0.05


@lengths
def test_shift_pair_by_pair(query_len: int, key_len: int) -> None:
    scores = _normal(BATCH, HEADS, query_len, key_len)
    before = scores.clone()
    found = relative_shift(scores)
    assert found.shape == scores.shape
    for i, j in itertools.product(range(query_len), range(key_len)):
        distance = i + (key_len - query_len) - j
        if distance >= 0:
            assert torch.equal(found[..., i, j], scores[..., i, key_len - 1 - distance])
    assert torch.equal(scores, before)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3)], ids=str)
def test_shift_takes_any_leading_axes(shape: tuple[int, ...]) -> None:
    scores = _normal(*shape, QUERIES, KEYS)
    one_by_one = torch.stack([relative_shift(part) for part in scores.reshape(-1, QUERIES, KEYS)])
    assert torch.equal(relative_shift(scores), one_by_one.reshape(scores.shape))


@lengths
def test_shift_is_that_of_xlnet(query_len: int, key_len: int) -> None:
    """XLNet's columns go on into the future and start at distance k; ours are its columns 1 … k."""
    theirs = _normal(BATCH, HEADS, query_len, key_len + query_len)
    expected = XLNetRelativeAttention.rel_shift_bnij(theirs, klen=key_len)
    found = relative_shift(theirs[..., 1 : key_len + 1])
    past = relative_distance(query_len, key_len) <= 0
    assert torch.equal(found[..., past], expected[..., past])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_shift_keeps_dtype_device_and_gradient(dtype: torch.dtype) -> None:
    assert relative_shift(_normal(QUERIES, KEYS, dtype=dtype)).dtype == dtype
    assert relative_shift(torch.empty(QUERIES, KEYS, device="meta")).device.type == "meta"
    scores, weights = _normal(QUERIES, KEYS).requires_grad_(), _normal(QUERIES, KEYS, seed=1).tril(KEYS - QUERIES)
    (gradient,) = torch.autograd.grad((relative_shift(scores) * weights).sum(), scores)
    expected = torch.zeros_like(weights)
    for i, j in itertools.product(range(QUERIES), range(KEYS)):
        if i + KEYS - QUERIES - j >= 0:
            expected[i, QUERIES - 1 - i + j] += weights[i, j]
    assert torch.equal(gradient, expected)


def _xl_inputs(q: int, k: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    shapes = (BATCH, HEADS, q, WIDTH), (BATCH, HEADS, k, WIDTH), (HEADS, k, WIDTH), (HEADS, WIDTH), (HEADS, WIDTH)
    return [_normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]


@lengths
def test_transformer_xl_is_the_four_terms_of_the_paper(query_len: int, key_len: int) -> None:
    """Terms (a) to (d) of section 3.3, each pair by itself."""
    query, key, relative, u, v = _xl_inputs(query_len, key_len)
    found = transformer_xl_scores(query, key, relative, u, v)
    for b, h, i, j in itertools.product(range(BATCH), range(HEADS), range(query_len), range(key_len)):
        distance = i + (key_len - query_len) - j
        if distance < 0:
            assert found[b, h, i, j] == -math.inf
            continue
        row = relative[h, key_len - 1 - distance]
        terms = query[b, h, i] @ key[b, h, j], query[b, h, i] @ row, u[h] @ key[b, h, j], v[h] @ row
        assert float(found[b, h, i, j]) == pytest.approx(float(sum(terms)) / math.sqrt(WIDTH), abs=1e-12)


@pytest.mark.parametrize(("query_len", "key_len"), [(4, 4), (3, 7)])
def test_transformer_xl_attends_as_xlnet_does(query_len: int, key_len: int) -> None:
    """Against XLNet's own core with a causal mask; there, batch comes second and u and v are parameters."""
    layer = XLNetRelativeAttention(XLNetConfig(d_model=HEADS * WIDTH, n_head=HEADS, d_inner=8)).double().eval()
    query, key, _, u, v = _xl_inputs(query_len, key_len)
    rows = _normal(key_len + query_len, HEADS, WIDTH, seed=9)  # distances k, k − 1 … −q + 1
    with torch.no_grad():
        layer.r_w_bias.copy_(u)
        layer.r_r_bias.copy_(v)
    future = (relative_distance(query_len, key_len) > 0).double()
    _, weights = layer.rel_attn_core(
        query.permute(2, 0, 1, 3),
        key.permute(2, 0, 1, 3),
        key.permute(2, 0, 1, 3),
        rows[:, None].expand(-1, BATCH, -1, -1),
        attn_mask=future[..., None, None],
        output_attentions=True,
    )
    ours = transformer_xl_scores(query, key, rows[1 : key_len + 1].transpose(0, 1), u, v)
    torch.testing.assert_close(ours.softmax(-1), weights.permute(2, 3, 0, 1), rtol=0, atol=1e-12)


def test_a_memory_gives_the_scores_of_the_whole_text() -> None:
    query, key, relative, u, v = _xl_inputs(KEYS, KEYS)
    whole = transformer_xl_scores(query, key, relative, u, v)
    part = transformer_xl_scores(query[:, :, -QUERIES:], key, relative, u, v)
    torch.testing.assert_close(part, whole[:, :, -QUERIES:], rtol=0, atol=1e-13)


def test_gradients_of_transformer_xl_reach_all_five_arguments() -> None:
    given = [tensor.requires_grad_() for tensor in _xl_inputs(3, 5)]

    def past(*arguments: Tensor) -> Tensor:
        return transformer_xl_scores(*arguments)[..., relative_distance(3, 5) <= 0]

    assert torch.autograd.gradcheck(past, given)


def _deberta_inputs(n: int, max_distance: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    shapes = (BATCH, HEADS, n, WIDTH), (BATCH, HEADS, n, WIDTH), *[(HEADS, 2 * max_distance, WIDTH)] * 2
    return [_normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize(("n", "max_distance"), [(1, 1), (4, 6), (6, 6), (7, 2), (9, 4)])
def test_deberta_is_equation_4_pair_by_pair(n: int, max_distance: int) -> None:
    query, key, relative_query, relative_key = _deberta_inputs(n, max_distance)
    found = deberta_scores(query, key, relative_query, relative_key, max_distance)

    def delta(i: int, j: int) -> int:
        """Equation 3."""
        if i - j <= -max_distance:
            return 0
        return 2 * max_distance - 1 if i - j >= max_distance else i - j + max_distance

    for b, h, i, j in itertools.product(range(BATCH), range(HEADS), range(n), range(n)):
        q, k = query[b, h, i], key[b, h, j]
        score = q @ k + q @ relative_key[h, delta(i, j)] + k @ relative_query[h, delta(j, i)]
        assert float(found[b, h, i, j]) == pytest.approx(float(score) / math.sqrt(3 * WIDTH), abs=1e-12)


def _library(max_distance: int) -> Any:
    """DeBERTa-v2's attention without buckets, whose rows of distances are handed in as the tables' own projections."""
    torch.manual_seed(2)
    config = DebertaV2Config(
        hidden_size=HEADS * WIDTH,
        num_attention_heads=HEADS,
        relative_attention=True,
        position_buckets=-1,
        max_relative_positions=max_distance,
        pos_att_type=["c2p", "p2c"],
        share_att_key=False,
    )
    return deberta_v2.DisentangledSelfAttention(config).double().eval()


def _by_the_library(n: int, max_distance: int) -> tuple[Tensor, list[Tensor]]:
    """Attention weights of the library's whole layer, and the arguments that `deberta_scores` takes."""
    layer = _library(max_distance)
    x, distances = _normal(BATCH, n, HEADS * WIDTH, seed=3), _normal(2 * max_distance, HEADS * WIDTH, seed=4)
    with torch.no_grad():
        mask = torch.ones(BATCH, 1, n, n)
        _, weights = layer(x, mask, output_attentions=True, rel_embeddings=distances)

        def heads(projected: Tensor) -> Tensor:
            return projected.unflatten(-1, (HEADS, WIDTH)).transpose(-2, -3)

        given = [
            heads(projected)
            for projected in (
                layer.query_proj(x),
                layer.key_proj(x),
                layer.pos_query_proj(distances),
                layer.pos_key_proj(distances),
            )
        ]
    return weights, given


@pytest.mark.parametrize(("n", "max_distance"), [(4, 6), (7, 2), (9, 4)])
def test_deberta_v2_agrees_after_the_index_order_is_changed(
    n: int, max_distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's last term takes row δ(i, j). With the other sign there, and nothing else, it is the paper's."""
    weights, given = _by_the_library(n, max_distance)
    ours = deberta_scores(*given, max_distance).softmax(-1)
    assert float((weights - ours).abs().max()) > 1e-3
    monkeypatch.setattr(deberta_v2, "build_rpos", lambda query, key, relative_pos, buckets, largest: -relative_pos)
    changed, given = _by_the_library(n, max_distance)
    torch.testing.assert_close(deberta_scores(*given, max_distance).softmax(-1), changed, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_scores_keep_dtype_and_device_and_leave_their_arguments(dtype: torch.dtype) -> None:
    for function, given in (
        (transformer_xl_scores, (*_xl_inputs(QUERIES, KEYS, dtype),)),
        (deberta_scores, (*_deberta_inputs(KEYS, QUERIES, dtype), QUERIES)),
    ):
        before = [value.clone() if isinstance(value, Tensor) else value for value in given]
        assert function(*given).dtype == dtype
        assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True) if isinstance(a, Tensor))
        found = function(*(value.to("meta") if isinstance(value, Tensor) else value for value in given))
        assert found.device.type == "meta"


def test_gradients_of_deberta_reach_all_tables() -> None:
    given = [tensor.requires_grad_() for tensor in _deberta_inputs(4, 2)]
    assert torch.autograd.gradcheck(lambda *arguments: deberta_scores(*arguments, 2), given)
