"""What lesson 06 says about models that others built is what their code in `transformers` does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    DebertaConfig,
    DebertaModel,
    DebertaV2Config,
    DebertaV2Model,
    MptConfig,
    T5Config,
    T5Model,
    XLNetConfig,
    XLNetModel,
)


@pytest.fixture(scope="module")
def t5() -> T5Model:
    torch.manual_seed(0)
    return T5Model(T5Config(vocab_size=20, d_model=96, d_kv=32, d_ff=40, num_layers=3, num_heads=3))


def test_only_the_first_layer_of_t5_owns_a_table_and_attention_across_has_none(t5: T5Model) -> None:
    tables = {name: tuple(value.shape) for name, value in t5.state_dict().items() if "relative_attention_bias" in name}
    assert tables == {
        f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, 3)
        for side in ("encoder", "decoder")
    }


def test_the_division_by_the_root_stands_in_the_first_weights_of_t5s_queries(t5: T5Model) -> None:
    weights = t5.state_dict()
    query, key = (float(weights[f"encoder.block.0.layer.0.SelfAttention.{part}.weight"].std()) for part in "qk")
    assert key == pytest.approx(96**-0.5, rel=0.05)
    assert query == pytest.approx(key * 32**-0.5, rel=0.05)


def test_t5s_table_starts_with_the_spread_that_the_toys_use() -> None:
    torch.manual_seed(0)
    model = T5Model(T5Config(vocab_size=20, d_model=16, d_kv=2, d_ff=4, num_layers=1, num_heads=60))
    table = model.state_dict()["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    assert float(table.std()) == pytest.approx(16**-0.5, rel=0.1)


def test_sizes_in_the_table_of_models_are_the_librarys_defaults() -> None:
    assert (T5Config().relative_attention_num_buckets, T5Config().relative_attention_max_distance) == (32, 128)
    mpt = MptConfig().to_dict()
    assert (mpt["attn_config"]["alibi"], mpt["max_seq_len"]) == (True, 2048)


def test_debertas_tables_have_twice_as_many_rows_as_the_largest_distance() -> None:
    small: dict[str, Any] = {
        "vocab_size": 20,
        "hidden_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
    }
    first = DebertaModel(DebertaConfig(**small)).state_dict()
    assert first["encoder.rel_embeddings.weight"].shape == (2 * 512, 12)  # D is the length it was trained on
    small |= {"position_buckets": 256, "share_att_key": True}
    later = DebertaV2Model(DebertaV2Config(**small)).state_dict()
    assert later["encoder.rel_embeddings.weight"].shape == (2 * 256, 12)
    assert not any("pos_key_proj" in name or "pos_query_proj" in name for name in later)  # shared with the words


def test_each_layer_of_xlnet_has_both_biases() -> None:
    weights = XLNetModel(XLNetConfig(vocab_size=20, d_model=12, n_layer=3, n_head=2, d_inner=8)).state_dict()
    for layer in range(3):
        for bias in ("r_w_bias", "r_r_bias"):
            assert weights[f"layer.{layer}.rel_attn.{bias}"].shape == (2, 6)
