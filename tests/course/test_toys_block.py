"""The treasure hunt needs one look-up after another, and its reader learns what its blocks let it learn."""

import pytest
import torch
from torch import nn

from course.toys_block import HUNT_STEPS, N_PLACES, HuntReader, follow_notes, train_hunter, treasure_hunts


def hunts(n_hunts: int = 200) -> torch.Tensor:
    return treasure_hunts(n_hunts, torch.Generator().manual_seed(3))


def make_block() -> nn.Module:
    return nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True, norm_first=True)


def test_following_the_notes_visits_every_place_before_it_returns() -> None:
    found = hunts()
    assert found.shape == (200, N_PLACES)
    assert found.dtype == torch.int64
    start = torch.arange(N_PLACES).expand_as(found)
    for steps in range(1, N_PLACES):
        assert not bool((follow_notes(found, steps) == start).any())
    assert torch.equal(follow_notes(found, N_PLACES), start)


def test_hunts_repeat_with_their_generator_and_differ() -> None:
    assert torch.equal(hunts(), hunts())
    assert len({tuple(hunt) for hunt in hunts().tolist()}) > 190


def test_steps_are_followed_by_hand() -> None:
    hunt = torch.tensor([[3, 0, 7, 5, 1, 2, 4, 6]])  # 0 3 5 2 7 6 4 1 and back to 0
    assert torch.equal(follow_notes(hunt, 0), torch.arange(N_PLACES)[None])
    assert torch.equal(follow_notes(hunt, 1), hunt)
    assert follow_notes(hunt, 2)[0].tolist() == [5, 3, 6, 2, 0, 7, 1, 4]
    assert follow_notes(hunt, 3)[0, 0].item() == 2
    assert follow_notes(hunt, 4)[0, 0].item() == 7


def test_the_reader_scores_every_place_for_each_question() -> None:
    torch.manual_seed(1)
    scores = HuntReader(nn.ModuleList([make_block()]), 32)(hunts(6))
    assert scores.shape == (6, N_PLACES, len(HUNT_STEPS), N_PLACES)


def test_one_block_learns_one_look_up_and_no_more() -> None:
    history = train_hunter(make_block, layers=1, steps=120, seed=2)
    assert [row[0] for row in history] == [0, 20, 40, 60, 80, 100, 120]
    assert all(0.0 <= share <= 1.0 for _, *shares in history for share in shares)
    _, two, three, four = history[-1]
    assert two > 0.95
    assert max(three, four) < 0.35


def test_training_repeats_with_its_seed_and_differs_with_another() -> None:
    first = train_hunter(make_block, layers=1, steps=40, seed=4)
    assert first == train_hunter(make_block, layers=1, steps=40, seed=4)
    assert first != train_hunter(make_block, layers=1, steps=40, seed=5)


@pytest.mark.parametrize(("warm_up", "rates"), [(0, [0.5] * 3), (2, [0.25, 0.5, 0.5])])
def test_the_learning_rate_warms_up_to_its_full_value(
    warm_up: int, rates: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    class Noting(torch.optim.AdamW):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            seen.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim, "AdamW", Noting)
    train_hunter(make_block, layers=1, steps=2, learning_rate=0.5, warm_up=warm_up)
    assert seen == pytest.approx(rates)
