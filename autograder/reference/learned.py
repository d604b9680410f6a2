"""Learned positions: a table, trained with the rest. Source: Gehring et al. (2017), Devlin et al. (2018, BERT)."""

from __future__ import annotations

from torch import Tensor, nn


class LearnedPosition(nn.Module):
    """Adds to each position its own trained row.

    Args:
        max_len: rows of the table; no position at or past it exists.
        d_model: width of the rows.
    """

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        """Add rows offset … offset + length − 1.

        Args:
            x: `(batch, length, d_model)`.
            offset: position of `x[:, 0]`.

        Returns:
            `(batch, length, d_model)` in x's dtype.

        Raises:
            ValueError: offset + length is past max_len.
        """
        end = offset + x.shape[1]
        max_len = self.table.num_embeddings
        if end > max_len:
            raise ValueError(f"positions {offset} … {end - 1} don't fit in a table of max_len={max_len}")
        return x + self.table.weight[offset:end].to(x.dtype)
