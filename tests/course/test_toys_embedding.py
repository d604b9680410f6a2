"""The logs ask for order alone, and the readers see what their input layer lets them see."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from course.toys_embedding import (
    LOGIN,
    LONGEST_LOG,
    N_EVENTS,
    PADDING,
    LogReaders,
    best_without_order,
    event_after_login,
    server_logs,
    train_log_readers,
)


class Words(nn.Module):
    """A word table, with or without a vector for each position."""

    def __init__(self, positions: bool, d_model: int = 16) -> None:
        super().__init__()
        self.table = nn.Embedding(LOGIN + 1 + N_EVENTS, d_model)
        code = torch.randn(64, d_model, generator=torch.Generator().manual_seed(3)) if positions else torch.zeros(64, 1)
        self.register_buffer("code", code, persistent=False)
        self.code: torch.Tensor

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        embedded: torch.Tensor = self.table(tokens) * 4.0
        return embedded + self.code[: tokens.shape[1]]


def real(tokens: torch.Tensor, padding_id: int) -> torch.Tensor:
    return (tokens != padding_id)[:, None, None]


def logs(n_logs: int = 400) -> torch.Tensor:
    return server_logs(n_logs, torch.Generator().manual_seed(5))


def readers(positions: bool = True, n_readers: int = 3, seed: int = 4) -> LogReaders:
    return LogReaders(lambda: Words(positions), n_readers, word_std=0.25, seed=seed)


def test_a_log_has_one_login_that_is_not_its_last_entry_and_padding_on_the_right_alone() -> None:
    found = logs()
    assert found.shape == (400, LONGEST_LOG)
    assert found.dtype == torch.int64
    lengths = (found != PADDING).sum(dim=1)
    assert set(lengths.tolist()) == set(range(4, LONGEST_LOG + 1))
    for log, length in zip(found.tolist(), lengths.tolist(), strict=True):
        assert PADDING not in log[:length]
        assert set(log[length:]) <= {PADDING}
        assert log.count(LOGIN) == 1
        assert log[length - 1] != LOGIN
    assert set(found.flatten().tolist()) == set(range(LOGIN + 1 + N_EVENTS))
    assert len(set((found == LOGIN).int().argmax(dim=1).tolist())) == LONGEST_LOG - 1


def test_logs_repeat_with_their_generator() -> None:
    assert torch.equal(logs(), logs())


def test_the_answer_is_the_entry_after_the_login() -> None:
    by_hand = torch.tensor([[[5, 1, 2, 9], [1, 9, 3, 0]], [[4, 4, 1, 3], [2, 1, 6, 6]]])
    assert event_after_login(by_hand).tolist() == [[0, 7], [1, 4]]


def test_without_order_the_most_frequent_event_is_the_best_guess() -> None:
    by_hand = torch.tensor([[1, 5, 5, 2, 0], [3, 1, 4, 0, 0], [6, 6, 6, 1, 6]])
    assert best_without_order(by_hand) == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)


def test_that_guess_agrees_with_a_count_over_all_orders() -> None:
    orders = [order for order in itertools.permutations([1, 5, 5, 7, 2]) if order[-1] != LOGIN]
    answers = event_after_login(torch.tensor(orders)).tolist()
    best = max(answers.count(answer) for answer in set(answers)) / len(answers)
    assert best_without_order(torch.tensor(orders[:1])) == pytest.approx(best)


def test_each_reader_draws_its_own_table_with_a_zero_row_for_padding() -> None:
    tables = [weight for name, weight in readers().named_parameters() if name.endswith("table.weight")]
    assert len(tables) == 3
    assert not torch.equal(tables[0], tables[1])
    for table in tables:
        assert bool((table[PADDING] == 0).all())
        assert table[PADDING + 1 :].std().item() == pytest.approx(0.25, rel=0.25)


def test_readers_do_not_mix() -> None:
    several = readers().double()
    own = logs(15).view(3, 5, -1)
    together = several(own, real)
    other = own.clone()
    other[1] = logs(405)[400:]
    again = several(other, real)
    assert together.shape == (3, 5, N_EVENTS)
    torch.testing.assert_close(again[[0, 2]], together[[0, 2]], rtol=0, atol=1e-12)
    assert (again[1] - together[1]).abs().max().item() > 1e-3
    together[0].sum().backward()
    assert several.query.grad is not None
    assert bool((several.query.grad[1:] == 0).all())


@pytest.mark.parametrize(("positions", "sees_order"), [(False, False), (True, True)], ids=["words", "positions"])
def test_a_reader_sees_order_only_with_positions(positions: bool, sees_order: bool) -> None:
    several = readers(positions).double()
    before = torch.tensor([[[3, 1, 4, 5, 6, 0]]] * 3)
    after = torch.tensor([[[6, 5, 1, 4, 3, 0]]] * 3)
    gap = (several(before, real) - several(after, real)).abs().max().item()
    assert (gap > 1e-6) == sees_order


def test_with_the_mask_more_padding_changes_nothing_and_without_it_does() -> None:
    several = readers().double()
    narrow = logs(15).view(3, 5, -1)
    wide = nn.functional.pad(narrow, (0, 20))
    torch.testing.assert_close(several(wide, real), several(narrow, real), rtol=0, atol=1e-12)
    assert (several(wide, None) - several(narrow, None)).abs().max().item() > 1e-3


def test_a_reader_is_a_pre_norm_block_read_at_the_login() -> None:
    """The same numbers from PyTorch's own attention and layer norm, computed for every query."""
    one = readers(n_readers=1).double()
    own = logs(7)[None]
    x = one.inputs[0](own[0])
    normed = nn.functional.layer_norm(x, (16,))

    def heads(y: torch.Tensor) -> torch.Tensor:
        return y.view(*y.shape[:-1], 2, 8).transpose(1, 2)

    query, key_value = heads(normed @ one.query[0]), normed @ one.key_value[0]
    key, value = heads(key_value[..., :16]), heads(key_value[..., 16:])
    mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=real(own[0], PADDING))
    y = x + mixed.transpose(1, 2).flatten(2) @ one.output[0]
    y = y + nn.functional.relu(nn.functional.layer_norm(y, (16,)) @ one.expand[0]) @ one.contract[0]
    scores = nn.functional.layer_norm(y, (16,)) @ one.scores[0]
    at_login = scores[torch.arange(7), (own[0] == LOGIN).int().argmax(dim=1)]
    torch.testing.assert_close(one(own, real)[0], at_login, rtol=0, atol=1e-10)


def test_accuracy_is_measured_without_dropout_and_leaves_the_mode_as_it_was() -> None:
    def noisy() -> nn.Module:
        return Noisy()

    class Noisy(Words):
        def __init__(self) -> None:
            super().__init__(positions=True)
            self.dropout = nn.Dropout(0.9)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            kept: torch.Tensor = self.dropout(super().forward(tokens))
            return kept

    several = LogReaders(noisy, 2, word_std=0.25, seed=1)
    assert several.accuracy(logs(), real) == several.accuracy(logs(), real)
    assert several.training
    assert several.eval().accuracy(logs(), real) == several.accuracy(logs(), real)
    assert not several.training


@pytest.mark.parametrize("mask", [real, None], ids=["mask", "no mask"])
def test_training_reports_every_20_steps_and_repeats_with_its_seed(
    mask: Callable[[torch.Tensor, int], torch.Tensor] | None,
) -> None:
    def run(seed: int) -> list[tuple[int, list[float]]]:
        return train_log_readers(lambda: Words(True), mask, word_std=0.25, n_readers=2, steps=40, seed=seed)[1]

    history = run(3)
    assert [step for step, _ in history] == [0, 20, 40]
    assert all(len(shares) == 2 and all(0.0 <= share <= 1.0 for share in shares) for _, shares in history)
    assert history == run(3)
    assert history != run(4)


def test_training_finds_the_most_frequent_event_without_positions() -> None:
    _, history = train_log_readers(lambda: Words(False), real, word_std=0.25, n_readers=2, steps=60)
    assert min(history[-1][1]) > 0.25
    assert max(history[-1][1]) < 0.42
