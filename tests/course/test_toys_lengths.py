"""The two tasks ask what they say, the stacked models do not mix, and only the code differs between them."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from course.toys_lengths import (
    ALPHABET,
    CHANGE,
    CODES,
    KEEP,
    TABLE_ROWS,
    PositionCrowd,
    best_forecast,
    copy_accuracy,
    copy_texts,
    drifting_texts,
    forecast_loss,
    train_crowd,
)


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def untrained(seeds: tuple[int, ...] = (4, 5)) -> PositionCrowd:
    return PositionCrowd(seeds).double()


def some_texts(n_seeds: int = 2, n_texts: int = 3, length: int = 11) -> torch.Tensor:
    return torch.randint(ALPHABET, (n_seeds, n_texts, length), generator=generator())


def of(code: str, scores: torch.Tensor) -> torch.Tensor:
    """The scores of the models with this code: (seeds, ...)."""
    return scores.detach().view(len(CODES), -1, *scores.shape[1:])[CODES.index(code)]


def test_copy_asks_for_the_letter_three_places_back() -> None:
    texts, targets = copy_texts(7, 9, generator())
    assert texts.shape == targets.shape == (7, 9)
    assert torch.equal(targets[:, 3:], texts[:, :-3])
    assert bool((targets[:, :3] == -100).all())
    assert set(texts.flatten().tolist()) == set(range(ALPHABET))


def test_drifting_texts_ask_for_the_next_letter() -> None:
    texts, targets = drifting_texts(6, 10, generator())
    assert texts.shape == targets.shape == (6, 10)
    assert torch.equal(targets[:, :-1], texts[:, 1:])


def test_drifting_texts_repeat_letters_as_often_as_their_rules_say() -> None:
    texts, _ = drifting_texts(4000, 40, generator())
    for distance in (1, 5):
        same_favourite = (1 - CHANGE) ** distance + (1 - (1 - CHANGE) ** distance) / ALPHABET
        wanted = KEEP**2 * same_favourite + (1 - KEEP**2) / ALPHABET
        found = (texts[:, distance:] == texts[:, :-distance]).double().mean().item()
        assert found == pytest.approx(wanted, abs=0.01)


def test_the_best_forecast_is_the_sum_over_all_histories_of_the_favourite() -> None:
    text = torch.tensor([[2, 2, 5]])
    start = torch.full((ALPHABET,), 1 / ALPHABET, dtype=torch.float64)
    move = (1 - CHANGE) * torch.eye(ALPHABET, dtype=torch.float64) + CHANGE / ALPHABET
    write = KEEP * torch.eye(ALPHABET, dtype=torch.float64) + (1 - KEEP) / ALPHABET  # (favourite, letter)
    joint = torch.einsum(
        "a,a,ab,b,bc,c,cd,dn->n", start, write[:, 2], move, write[:, 2], move, write[:, 5], move, write
    )
    torch.testing.assert_close(best_forecast(text)[0, -1], joint / joint.sum())
    torch.testing.assert_close(best_forecast(text).sum(dim=-1), torch.ones(1, 3, dtype=torch.float64))


def test_no_forecast_beats_the_best_one() -> None:
    texts, targets = drifting_texts(2000, 30, generator())
    best = best_forecast(texts)
    loss = F.nll_loss(best.log().flatten(0, 1), targets.flatten())
    for other in (best**1.5, best**0.7, best.roll(1, dims=0), torch.ones_like(best)):
        other_loss = F.nll_loss((other / other.sum(-1, keepdim=True)).log().flatten(0, 1), targets.flatten())
        assert float(loss) < float(other_loss)


def test_models_of_one_seed_start_from_the_same_weights_and_seeds_differ() -> None:
    crowd = untrained()
    for weight in crowd.weights.values():
        by_code = weight.view(len(CODES), 2, *weight.shape[1:])
        assert all(torch.equal(by_code[0], other) for other in by_code)
        assert not torch.equal(by_code[0, 0], by_code[0, 1])


def test_no_letter_sees_its_future() -> None:
    crowd, texts = untrained(), some_texts()
    changed = texts.clone()
    changed[..., 6:] = (changed[..., 6:] + 1) % ALPHABET
    difference = (crowd(texts) - crowd(changed)).detach().abs().amax(dim=(0, 1, 3))
    assert float(difference[:6].max()) == 0.0
    assert float(difference[6:].min()) > 0.0


def test_moving_a_text_changes_nothing_for_rotary_and_no_code_and_much_for_the_added_codes() -> None:
    crowd, texts = untrained(), some_texts()
    here, there = crowd(texts), crowd(texts, start=100)
    for code in CODES:
        gap = float((of(code, here) - of(code, there)).abs().max())
        assert gap < 1e-4 if code in ("none", "rotary") else gap > 0.1


def test_every_code_but_none_tells_the_order_of_two_earlier_letters_in_one_block() -> None:
    crowd = PositionCrowd((4, 5), n_blocks=1).double()
    texts = torch.tensor([[[1, 2, 3, 4]]]).repeat(2, 1, 1)
    swapped = torch.tensor([[[2, 1, 3, 4]]]).repeat(2, 1, 1)
    gaps = (crowd(texts) - crowd(swapped))[:, 0, -1].abs().amax(dim=-1)
    for code in CODES:
        assert bool((of(code, gaps) > 1e-3).all()) == (code != "none")


def test_rotary_models_agree_with_attention_written_out_pair_by_pair() -> None:
    crowd, texts = PositionCrowd((4,), n_blocks=1).double(), some_texts(1, 2, 5)
    weights = {name: value.detach()[CODES.index("rotary")] for name, value in crowd.weights.items()}
    x = weights["embedding"][texts[0]]
    split = F.layer_norm(x, (32,)) @ weights["query_key_value_0"]
    mixed = torch.zeros_like(x)
    for batch in range(2):
        for head in range(2):
            query, key, value = (split[batch, :, 32 * part + 16 * head :][:, :16] for part in range(3))
            scores = torch.full((5, 5), -torch.inf, dtype=torch.float64)
            for p in range(5):
                for s in range(p + 1):
                    angle = (p - s) * 10000.0 ** (-torch.arange(8).double() / 8)
                    a, b, c, d = query[p, :8], query[p, 8:], key[s, :8], key[s, 8:]
                    # Re((a + ib) e^{i angle} (c - id)), summed over pairs
                    scores[p, s] = ((a * c + b * d) * angle.cos() + (a * d - b * c) * angle.sin()).sum() / 4
            mixed[batch, :, 16 * head : 16 * head + 16] = scores.softmax(dim=-1) @ value
    x = x + mixed @ weights["output_0"]
    x = x + (F.layer_norm(x, (32,)) @ weights["expand_0"]).relu() @ weights["contract_0"]
    wanted = F.layer_norm(x, (32,)) @ weights["scores"]
    torch.testing.assert_close(of("rotary", crowd(texts))[0], wanted, rtol=0, atol=2e-5)


def test_a_window_hides_what_stands_further_back() -> None:
    crowd, texts = PositionCrowd((4, 5), n_blocks=1).double(), some_texts()
    changed = texts.clone()
    changed[..., 0] = (changed[..., 0] + 1) % ALPHABET
    difference = (crowd(texts, window=4) - crowd(changed, window=4)).detach().abs().amax(dim=(0, 1, 3))
    assert float(difference[:4].min()) > 0.0
    assert float(difference[4:].max()) == 0.0


def test_training_reaches_the_rows_it_uses_and_no_other_code_depends_on_the_table() -> None:
    before, after = PositionCrowd((2, 3)), train_crowd(copy_texts, seeds=(2, 3), steps=3)
    moved = (before.weights["table"] - after.weights["table"]).abs().amax(dim=-1)  # (models, rows)
    assert bool((of("learned", moved)[:, :16] > 0).all())
    assert float(of("learned", moved)[:, 16:].max()) == 0.0
    for code in ("none", "sinusoidal", "rotary"):
        assert float(of(code, moved).max()) == 0.0
    assert moved.shape[1] == TABLE_ROWS


def test_each_seed_is_trained_alone() -> None:
    together, alone = (train_crowd(copy_texts, seeds=seeds, steps=4) for seeds in ((2, 3), (3,)))
    for name, weight in alone.weights.items():
        torch.testing.assert_close(of("rotary", together.weights[name])[1], of("rotary", weight)[0], rtol=0, atol=1e-4)


@pytest.mark.slow
def test_codes_part_where_the_lesson_says() -> None:
    crowd = train_crowd(copy_texts)
    accuracy = {length: copy_accuracy(crowd, length).mean(dim=1).tolist() for length in (16, 32, 64, 128)}
    none, learned, sinusoidal, rotary = accuracy[16]
    assert min(learned, sinusoidal, rotary) > 0.85
    assert none < 0.5
    none, learned, sinusoidal, rotary = accuracy[32]
    assert max(learned, sinusoidal) < 0.45
    assert max(learned, sinusoidal) + 0.1 < rotary < 0.95
    for shorter, longer in pairwise(accuracy.values()):
        assert longer[CODES.index("rotary")] < shorter[CODES.index("rotary")]
    far = copy_accuracy(crowd, 16, start=112).mean(dim=1).tolist()
    near_sighted = copy_accuracy(crowd, 128, window=16).mean(dim=1).tolist()
    assert far[CODES.index("rotary")] > 0.95
    assert near_sighted[CODES.index("rotary")] > 0.95
    assert max(far[1], far[2], near_sighted[1], near_sighted[2]) < 0.8


@pytest.mark.slow
def test_forecasts_drift_from_the_best_one_with_length() -> None:
    crowd = train_crowd(drifting_texts, steps=120)
    short, long = forecast_loss(crowd, 16), forecast_loss(crowd, 128)
    assert short.shape == long.shape == (len(CODES), 3)
    assert float(short.min()) > 0.0
    assert float(short.max()) < 0.12
    assert bool((long.mean(dim=1) > short.mean(dim=1) + 0.05).all())
    none, learned, sinusoidal, rotary = long.mean(dim=1).tolist()
    assert min(learned, sinusoidal) > max(none, rotary) - 0.02
