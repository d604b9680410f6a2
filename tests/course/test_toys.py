"""The toy task hides everything but order, and its readers see what their construction lets them see."""

import pytest
import torch

from course.toys import N_LETTERS, QUESTION_MARK, Reader, came_first, shuffled_letters, three_back, train_reader


def texts(n_texts: int = 300) -> torch.Tensor:
    return shuffled_letters(n_texts, torch.Generator().manual_seed(5))


def test_every_text_holds_the_same_letters_and_ends_in_the_question_mark() -> None:
    found = texts()
    assert found.shape == (300, N_LETTERS + 1)
    assert found.dtype == torch.int64
    assert torch.equal(found.sort(dim=1).values, torch.arange(N_LETTERS + 1).expand(300, -1))
    assert bool((found[:, -1] == QUESTION_MARK).all())


def test_texts_repeat_with_their_generator_and_differ_in_order() -> None:
    assert torch.equal(texts(), texts())
    assert len({tuple(text) for text in texts().tolist()}) > 290


def test_both_questions_are_answered_by_hand_on_two_texts() -> None:
    by_hand = torch.tensor([[3, 0, 7, 1, 2, 6, 5, 4, 8], [1, 2, 3, 4, 5, 6, 7, 0, 8]])
    assert came_first(by_hand).tolist() == [1, 0]
    assert three_back(by_hand).tolist() == [6, 6]


@pytest.mark.parametrize(
    ("reader", "sees_order"),
    [
        ({"layers": 2}, False),
        ({"layers": 1, "causal": True}, False),
        ({"layers": 2, "causal": True}, True),
        ({"layers": 1, "positions": True}, True),
        ({"layers": 0}, True),
    ],
    ids=["encoder", "one causal layer", "two causal layers", "positions", "lstm"],
)
def test_a_reader_gives_one_answer_to_all_texts_unless_it_sees_order(
    reader: dict[str, int | bool], sees_order: bool
) -> None:
    torch.manual_seed(6)
    with torch.no_grad():
        scores = Reader(**reader).double()(texts())  # type: ignore[arg-type]
    assert scores.shape == (300, 2 + N_LETTERS)
    assert (scores.std(dim=0).max().item() > 1e-6) == sees_order


def test_training_reports_shares_every_20_steps_and_repeats_with_its_seed() -> None:
    history = train_reader(layers=0, steps=40, seed=3)
    assert [step for step, _, _ in history] == [0, 20, 40]
    assert all(0.0 <= share <= 1.0 for _, *shares in history for share in shares)
    assert history[-1][1] > 0.9  # an LSTM learns which letter came first at once
    assert history == train_reader(layers=0, steps=40, seed=3)
