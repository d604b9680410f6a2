"""From tokens to what a Transformer's first layer reads: scaled embeddings plus sinusoidal positions, then dropout.

Source: Vaswani et al. (2017), "Attention Is All You Need", sections 3.4, 3.5 and 5.4.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from autograder.reference.sinusoidal import sinusoidal_encoding


class TokenEmbedding(nn.Module):
    """A vector for every token of the vocabulary, scaled by √d_model.

    State: `table.weight (vocab_size, d_model)`.

    Args:
        vocab_size: number of tokens.
        d_model: width of a vector.
        padding_id: token whose row is zero and never learns; None when there is no padding.
    """

    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """`(batch, length)` int64 to `(batch, length, d_model)`."""
        scaled: Tensor = self.table(tokens) * self.scale
        return scaled


class SinusoidalPosition(nn.Module):
    """Adds the sinusoidal encoding of its position to every vector. Nothing to learn, nothing to save.

    Buffer, not in the state_dict: `encoding (max_len, d_model)` float32.

    Args:
        d_model: width of a vector; even, at least 2.
        max_len: number of positions there are encodings for.
        base: ratio of the longest to the shortest wavelength in the limit of many pairs.
    """

    encoding: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        self.max_len = max_len
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), persistent=False)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        """`(batch, length, d_model)` to the same shape and dtype.

        Args:
            offset: position of the first vector; in decoding, how many came before.

        Raises:
            ValueError: offset + length is past max_len.
        """
        end = offset + x.shape[1]
        if end > self.max_len:
            raise ValueError(f"offset + length must be at most max_len={self.max_len}, got {offset} + {x.shape[1]}")
        return x + self.encoding[offset:end].to(x.dtype)


class TransformerInput(nn.Module):
    """Who you are plus where you are: scaled embedding plus position, then dropout on the sum.

    State: `tokens.table.weight (vocab_size, d_model)`.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 5000,
        dropout: float = 0.1,
        padding_id: int | None = None,
    ) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(vocab_size, d_model, padding_id)
        self.position = SinusoidalPosition(d_model, max_len)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        """`(batch, length)` int64 to `(batch, length, d_model)`; padding tokens get their position alone.

        Raises:
            ValueError: offset + length is past max_len.
        """
        dropped: Tensor = self.dropout(self.position(self.tokens(tokens), offset))
        return dropped


def padding_mask(tokens: Tensor, padding_id: int) -> Tensor:
    """Which keys are real tokens: `(batch, length)` to bool `(batch, 1, 1, length)`, for every head and query alike."""
    return (tokens != padding_id)[:, None, None, :]
