"""The toy of lesson 03: server logs of different lengths, and readers who must know what stands right after a login."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

PADDING, LOGIN, N_EVENTS = 0, 1, 8  # ids of the padding and of the login; then come eight other events
LONGEST_LOG = 12

Mask = Callable[[torch.Tensor, int], torch.Tensor]


def server_logs(n_logs: int, generator: torch.Generator) -> torch.Tensor:
    """Logs of 4 … 12 entries: one login that is never the last, and other events, drawn anew for each entry.

    Returns:
        int64 `(n_logs, 12)`, filled up with padding on the right.
    """
    length = torch.randint(4, LONGEST_LOG + 1, (n_logs,), generator=generator)
    logs = torch.randint(LOGIN + 1, LOGIN + 1 + N_EVENTS, (n_logs, LONGEST_LOG), generator=generator)
    login = (torch.rand(n_logs, generator=generator) * (length - 1)).long()
    logs[torch.arange(n_logs), login] = LOGIN
    logs[torch.arange(LONGEST_LOG) >= length[:, None]] = PADDING
    return logs


def event_after_login(logs: torch.Tensor) -> torch.Tensor:
    """Which event, 0 … 7, stands right after the login. `(…, length) -> (…)` int64."""
    login = (logs == LOGIN).int().argmax(dim=-1, keepdim=True)
    return logs.gather(-1, login + 1)[..., 0] - LOGIN - 1


def best_without_order(logs: torch.Tensor) -> float:
    """The share that the best guess gets which knows how often each event occurs in a log and not where.

    Every event but the login is as likely as any other to stand right after it, so the best guess is the most frequent.
    """
    counts = F.one_hot(logs, LOGIN + 1 + N_EVENTS)[..., LOGIN + 1 :].sum(dim=-2)
    return (counts.amax(dim=-1) / counts.sum(dim=-1)).mean().item()


class LogReaders(nn.Module):
    """Several readers with weights of their own, computed side by side; each is one pre-norm Transformer block.

    Only the output at the login is used, so only that query is computed.

    Args:
        make_input: Makes the input layer of one reader; its word table is the parameter `….table.weight`.
        word_std: Standard deviation with which every word table is drawn anew; the padding row is zero.
    """

    def __init__(self, make_input: Callable[[], nn.Module], n_readers: int, word_std: float, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.inputs = nn.ModuleList(make_input() for _ in range(n_readers))
        for name, weight in self.inputs.named_parameters():
            if name.endswith("table.weight"):
                d_model = weight.shape[1]
                with torch.no_grad():
                    weight.normal_(std=word_std, generator=generator)
                    weight[PADDING] = 0.0

        def matrix(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(n_readers, rows, columns, generator=generator) / rows**0.5)

        self.n_heads = 2
        self.query, self.key_value = matrix(d_model, d_model), matrix(d_model, 2 * d_model)
        self.output, self.scores = matrix(d_model, d_model), matrix(d_model, N_EVENTS)
        self.expand, self.contract = matrix(d_model, 2 * d_model), matrix(2 * d_model, d_model)

    def forward(self, logs: torch.Tensor, mask: Mask | None) -> torch.Tensor:
        """Score the eight events.

        Args:
            logs: int64 `(readers, batch, length)`, each reader's own.
            mask: Makes `(batch, 1, 1, length)`, True where a key may be looked at; None lets all be looked at.

        Returns:
            `(readers, batch, 8)`.
        """
        x = torch.stack([layer(own) for layer, own in zip(self.inputs, logs, strict=True)])
        readers, batch, length, d_model = x.shape
        normed = F.layer_norm(x, (d_model,))
        login = (logs == LOGIN).int().argmax(dim=-1)[..., None, None].expand(-1, -1, 1, d_model)
        query = normed.gather(2, login)[:, :, 0] @ self.query
        query = query.view(readers, batch, self.n_heads, 1, -1)
        key_value = (normed.flatten(1, 2) @ self.key_value).view(readers, batch, length, 2, self.n_heads, -1)
        key, value = key_value.permute(3, 0, 1, 4, 2, 5)  # each (readers, batch, heads, length, head_dim)
        weights = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5  # (readers, batch, heads, 1, length)
        if mask is not None:
            may_look = mask(logs.flatten(0, 1), PADDING).view(readers, batch, 1, 1, length)
            weights = weights.masked_fill(~may_look, -torch.inf)
        mixed = (weights.softmax(dim=-1) @ value).flatten(2)  # (readers, batch, d_model)
        y = x.gather(2, login)[:, :, 0] + mixed @ self.output
        y = y + (F.layer_norm(y, (d_model,)) @ self.expand).relu() @ self.contract
        scores: torch.Tensor = F.layer_norm(y, (d_model,)) @ self.scores
        return scores

    @torch.no_grad()
    def accuracy(self, logs: torch.Tensor, mask: Mask | None) -> list[float]:
        """Each reader's share of right answers on the same logs `(batch, length)`, dropout off."""
        was_training = self.training
        scores = self.eval()(logs.expand(len(self.inputs), -1, -1), mask)
        self.train(was_training)
        shares: list[float] = (scores.argmax(dim=-1) == event_after_login(logs)).float().mean(dim=-1).tolist()
        return shares


def train_log_readers(
    make_input: Callable[[], nn.Module],
    mask: Mask | None,
    word_std: float,
    n_readers: int = 5,
    steps: int = 160,
    seed: int = 0,
) -> tuple[LogReaders, list[tuple[int, list[float]]]]:
    """Train readers that differ in their first weights and in the logs they see; each step shows each one 64 new logs.

    Returns:
        The readers, and one row each 20 steps: the step, and each reader's share of right answers on 500 other logs.
    """
    torch.manual_seed(seed)  # for dropout, if the input layer has it
    generator = torch.Generator().manual_seed(seed)
    unseen = server_logs(500, torch.Generator().manual_seed(-1 - seed))
    readers = LogReaders(make_input, n_readers, word_std, seed)
    optimizer = torch.optim.Adam(readers.parameters(), lr=5e-3, fused=True)
    history = []
    for step in range(steps + 1):
        if step % 20 == 0:
            history.append((step, readers.accuracy(unseen, mask)))
        logs = server_logs(64 * n_readers, generator).view(n_readers, 64, -1)
        scores = readers(logs, mask)
        # a sum over the readers: each one's gradient is that of its own mean
        loss = n_readers * F.cross_entropy(scores.flatten(0, 1), event_after_login(logs).flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return readers, history
