"""Toy tasks and toy models that train in seconds on a CPU. The build writes what a lesson uses into its notebook."""

import torch
import torch.nn.functional as F
from torch import nn

N_LETTERS = 8
QUESTION_MARK = N_LETTERS  # the token that ends each text


def shuffled_letters(n_texts: int, generator: torch.Generator) -> torch.Tensor:
    """Texts that differ in order alone: each holds letters 0 … 7 once, shuffled, then a question mark.

    Returns:
        int64 `(n_texts, 9)`.
    """
    letters = torch.rand(n_texts, N_LETTERS, generator=generator).argsort(dim=1)
    return F.pad(letters, (0, 1), value=QUESTION_MARK)


def came_first(texts: torch.Tensor) -> torch.Tensor:
    """1 where letter 0 stands before letter 1, else 0. `(n_texts, 9) -> (n_texts,)` int64."""
    place_of_0, place_of_1 = (texts == 0).int().argmax(dim=1), (texts == 1).int().argmax(dim=1)
    return (place_of_0 < place_of_1).long()


def three_back(texts: torch.Tensor) -> torch.Tensor:
    """The letter three places before the question mark. `(n_texts, 9) -> (n_texts,)` int64."""
    return texts[:, -4]


class _Block(nn.Module):
    """One pre-norm Transformer block: `(batch, length, d_model)` to the same shape."""

    def __init__(self, d_model: int, n_heads: int, causal: bool) -> None:
        super().__init__()
        self.n_heads, self.causal = n_heads, causal
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.query_key_value, self.output = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, self.n_heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)  # each (batch, heads, length, head_dim)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x


class Reader(nn.Module):
    """Reads a text of `shuffled_letters` and answers two questions from the vector of its last token.

    Scores 0 and 1 answer "did letter 0 come before letter 1?", the other eight "which letter stands three back?".

    Args:
        layers: Transformer blocks; 0 makes the reader an LSTM instead.
        causal: Each token sees itself and earlier tokens only.
        positions: Add a trained vector for each position to the embeddings.
    """

    def __init__(self, layers: int, causal: bool = False, positions: bool = False, d_model: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_LETTERS + 1, d_model)
        self.positions = nn.Embedding(N_LETTERS + 1, d_model) if positions else None
        self.blocks = nn.Sequential(*[_Block(d_model, 2, causal) for _ in range(layers)])
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True) if layers == 0 else None
        self.scores = nn.Linear(d_model, 2 + N_LETTERS)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        """Score both questions: `(batch, 9) -> (batch, 10)`."""
        x = self.embedding(texts)
        if self.positions is not None:
            x = x + self.positions.weight
        x = self.blocks(x) if self.lstm is None else self.lstm(x)[0]
        scores: torch.Tensor = self.scores(x[:, -1])
        return scores


def train_reader(
    layers: int, causal: bool = False, positions: bool = False, steps: int = 160, seed: int = 0
) -> list[tuple[int, float, float]]:
    """Train a `Reader` on both questions.

    Returns:
        One row each 20 steps: the step, and the share of right answers on 1000 other texts for each question.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    reader = Reader(layers, causal, positions)
    optimizer = torch.optim.AdamW(reader.parameters(), lr=5e-3, fused=True)
    unseen = shuffled_letters(1000, generator)
    history = []
    for step in range(steps + 1):
        if step % 20 == 0:
            with torch.no_grad():
                scores = reader(unseen)
            first = (scores[:, :2].argmax(dim=1) == came_first(unseen)).float().mean().item()
            back = (scores[:, 2:].argmax(dim=1) == three_back(unseen)).float().mean().item()
            history.append((step, first, back))
        texts = shuffled_letters(64, generator)
        scores = reader(texts)
        loss = F.cross_entropy(scores[:, :2], came_first(texts)) + F.cross_entropy(scores[:, 2:], three_back(texts))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return history
