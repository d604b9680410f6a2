"""The stacked models add what their codes say, do not mix, see no future, and only the code differs between them."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.reference.relative import alibi_bias, relative_distance, t5_bucket
from course.toys_lengths import ALPHABET, copy_texts, drifting_texts
from course.toys_relative import (
    BUCKETS,
    RELATIVE_CODES,
    RelativeCrowd,
    relative_copy_accuracy,
    relative_forecast_loss,
    train_relative,
)

SIZES = {"T5, 32 buckets": (32, 128), "T5, 8 buckets": (8, 16)}  # how many buckets, and the largest distance


def untrained(seeds: tuple[int, ...] = (4, 5), n_blocks: int = 2) -> RelativeCrowd:
    return RelativeCrowd(seeds, n_blocks=n_blocks).double()


def some_texts(n_seeds: int = 2, n_texts: int = 3, length: int = 11) -> torch.Tensor:
    return torch.randint(ALPHABET, (n_seeds, n_texts, length), generator=torch.Generator().manual_seed(3))


def of(code: str, values: torch.Tensor) -> torch.Tensor:
    """Those of the models with this code: (seeds, ...)."""
    return values.detach().view(len(RELATIVE_CODES), -1, *values.shape[1:])[RELATIVE_CODES.index(code)]


def test_models_of_one_seed_start_from_the_same_weights_and_seeds_differ() -> None:
    crowd = untrained()
    for name, weight in crowd.weights.items():
        if name in BUCKETS:
            assert weight.shape == (2, SIZES[name][0], 2)  # one table for each seed: no other model reads it
            continue
        by_code = weight.view(len(RELATIVE_CODES), 2, *weight.shape[1:])
        assert all(torch.equal(by_code[0], other) for other in by_code)
        assert not torch.equal(by_code[0, 0], by_code[0, 1])


@pytest.mark.parametrize("n_heads", [2, 4])
def test_the_bias_is_the_one_that_the_lesson_builds(n_heads: int) -> None:
    crowd, n = RelativeCrowd((4, 5), n_heads=n_heads), 150
    past = torch.ones(n, n, dtype=torch.bool).tril()
    bias = crowd.bias(n)
    assert bias.shape == (len(RELATIVE_CODES) * 2, n_heads, n, n)
    for code in ("none", "rotary"):
        assert float(of(code, bias).abs().max()) == 0.0
    for model in of("ALiBi", bias):
        torch.testing.assert_close(model[:, past], alibi_bias(n_heads, n, n)[:, past])
    for code, (n_buckets, max_distance) in SIZES.items():
        buckets = t5_bucket(relative_distance(n, n), False, n_buckets, max_distance)
        for model, table in zip(of(code, bias), crowd.weights[code].detach(), strict=True):
            torch.testing.assert_close(model, table[buckets].permute(2, 0, 1))


def test_texts_of_sixteen_letters_reach_every_bucket_of_the_small_table_and_half_of_the_large_one() -> None:
    reached = {
        code: set(t5_bucket(-torch.arange(16), False, n_buckets, max_distance).tolist())
        for code, (n_buckets, max_distance) in SIZES.items()
    }
    assert reached == {"T5, 32 buckets": set(range(16)), "T5, 8 buckets": set(range(8))}


def test_no_letter_sees_its_future() -> None:
    crowd, texts = untrained(), some_texts()
    changed = texts.clone()
    changed[..., 6:] = (changed[..., 6:] + 1) % ALPHABET
    difference = (crowd(texts) - crowd(changed)).detach().abs().amax(dim=(0, 1, 3))
    assert float(difference[:6].max()) == 0.0
    assert float(difference[6:].min()) > 0.0


def test_every_code_but_none_tells_the_order_of_two_earlier_letters_in_one_block() -> None:
    crowd = untrained(n_blocks=1)
    texts = torch.tensor([[[1, 2, 3, 4]]]).repeat(2, 1, 1)
    swapped = torch.tensor([[[2, 1, 3, 4]]]).repeat(2, 1, 1)
    gaps = (crowd(texts) - crowd(swapped))[:, 0, -1].abs().amax(dim=-1)
    for code in RELATIVE_CODES:
        assert bool((of(code, gaps) > 1e-4).all()) == (code != "none")


@pytest.mark.parametrize("code", RELATIVE_CODES)
def test_a_block_agrees_with_attention_written_out_pair_by_pair(code: str) -> None:
    crowd, texts = untrained((4,), n_blocks=1), some_texts(1, 2, 5)
    shared = {name: of(code, value)[0] for name, value in crowd.weights.items() if name not in BUCKETS}
    added = of(code, crowd.bias(5))[0].double()
    x = shared["embedding"][texts[0]]
    split = F.layer_norm(x, (32,)) @ shared["query_key_value_0"]
    mixed = torch.zeros_like(x)
    for batch in range(2):
        for head in range(2):
            query, key, value = (split[batch, :, 32 * part + 16 * head :][:, :16] for part in range(3))
            scores = torch.full((5, 5), -torch.inf, dtype=torch.float64)
            for p in range(5):
                for s in range(p + 1):
                    angle = (code == "rotary") * (p - s) * 10000.0 ** (-torch.arange(8).double() / 8)
                    a, b, c, d = query[p, :8], query[p, 8:], key[s, :8], key[s, 8:]
                    # Re((a + ib) e^{i angle} (c - id)), summed over pairs
                    dot = ((a * c + b * d) * angle.cos() + (a * d - b * c) * angle.sin()).sum()
                    scores[p, s] = dot / math.sqrt(16) + added[head, p, s]
            mixed[batch, :, 16 * head : 16 * head + 16] = scores.softmax(dim=-1) @ value
    x = x + mixed @ shared["output_0"]
    x = x + (F.layer_norm(x, (32,)) @ shared["expand_0"]).relu() @ shared["contract_0"]
    wanted = F.layer_norm(x, (32,)) @ shared["scores"]
    torch.testing.assert_close(of(code, crowd(texts))[0], wanted, rtol=0, atol=2e-5)


def test_a_window_hides_what_stands_further_back() -> None:
    crowd, texts = untrained(n_blocks=1), some_texts()
    changed = texts.clone()
    changed[..., 0] = (changed[..., 0] + 1) % ALPHABET
    difference = (crowd(texts, window=4) - crowd(changed, window=4)).detach().abs().amax(dim=(0, 1, 3))
    assert float(difference[:4].min()) > 0.0
    assert float(difference[4:].max()) == 0.0


def test_models_do_not_mix() -> None:
    """A model of a crowd scores as it does in a crowd of its own."""
    texts = some_texts()
    alone = RelativeCrowd((5,))(texts[1:])
    together = RelativeCrowd((4, 5))(texts)
    for code in RELATIVE_CODES:
        torch.testing.assert_close(of(code, together)[1], of(code, alone)[0])


def test_training_moves_only_the_buckets_it_reaches() -> None:
    crowd, start = train_relative(copy_texts, seeds=(0,), steps=4, batch=2), RelativeCrowd((0,))
    for code in BUCKETS:
        moved = (crowd.weights[code] != start.weights[code]).any(dim=-1)[0].tolist()
        assert moved == ([True] * 16 + [False] * 16 if code == "T5, 32 buckets" else [True] * 8)


def test_results_have_a_row_for_each_code_and_a_column_for_each_seed() -> None:
    crowd = RelativeCrowd((0, 1, 2))
    copied, missed = relative_copy_accuracy(crowd, 16, n_texts=4), relative_forecast_loss(crowd, 16, n_texts=4)
    assert copied.shape == missed.shape == (len(RELATIVE_CODES), 3)
    assert bool(((copied >= 0) & (copied <= 1)).all())
    assert bool((missed > 0).all())


@pytest.fixture(scope="module")
def copied() -> dict[str, torch.Tensor]:
    """What the lesson's copy models get right: condition to (codes,), one seed."""
    crowd = train_relative(copy_texts, seeds=(0,))
    tests = {"16": (16, None), "128": (128, None), "window": (128, 16)}
    return {name: relative_copy_accuracy(crowd, n, window=window)[:, 0] for name, (n, window) in tests.items()}


def test_only_exact_codes_copy_and_a_window_brings_them_back(copied: dict[str, torch.Tensor]) -> None:
    at = {name: dict(zip(RELATIVE_CODES, values.tolist(), strict=True)) for name, values in copied.items()}
    exact = ("rotary", *BUCKETS)
    assert min(at["16"][code] for code in exact) > 0.95
    assert max(at["16"][code] for code in ("none", "ALiBi")) < 0.5
    assert min(at["window"][code] for code in exact) > 0.85
    assert max(at["128"].values()) < 0.8
    assert at["128"]["T5, 8 buckets"] > at["128"]["T5, 32 buckets"]


def test_alibi_forecasts_best_in_long_texts() -> None:
    missed = relative_forecast_loss(train_relative(drifting_texts, seeds=(0,)), 128)[:, 0]
    assert RELATIVE_CODES[int(missed.argmin())] == "ALiBi"
