"""Other right answers to learned-position, in the ways in which people write them. Each must get full marks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class _ByLookup(nn.Module):
    """Looks position numbers up, as BERT does."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table = nn.Embedding(num_embeddings=max_len, embedding_dim=d_model)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        last = offset + x.size(1) - 1
        if last >= self.max_len:
            raise ValueError(f"position {last} needs max_len > {last}, but max_len is {self.max_len}")
        numbers = torch.arange(offset, last + 1, device=x.device)
        rows: Tensor = self.table(numbers)
        return x + rows.unsqueeze(0)


class _ForEachSentence(_ByLookup):
    """Position numbers written out for each sentence of the batch."""

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        batch, length, _ = x.shape
        if length + offset > self.max_len:
            raise ValueError(f"max_len = {self.max_len}, asked for {length + offset}")
        numbers = (torch.arange(length, device=x.device) + offset).expand(batch, length)
        rows: Tensor = self.table(numbers)
        return rows + x


class _ByOneHot(_ByLookup):
    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        length = x.shape[1]
        if offset > self.max_len - length:
            raise ValueError(f"offset {offset} and length {length} exceed max_len {self.max_len}")
        chosen = torch.eye(self.max_len, dtype=x.dtype, device=x.device)[offset : offset + length]
        return x + chosen @ self.table.weight


class _Rows(nn.Module):
    """A table without `nn.Embedding`."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, width))


class _OwnTable(nn.Module):
    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = _Rows(max_len, d_model)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        rows = self.table.weight.narrow(0, offset, x.shape[1]) if self._fits(x, offset) else None
        if rows is None:
            raise ValueError(f"past the end: max_len={len(self.table.weight)}")
        return torch.add(x, rows)

    def _fits(self, x: Tensor, offset: int) -> bool:
        return offset + x.shape[1] <= len(self.table.weight)


class _Sparse(_ByLookup):
    """The gradient holds the rows that were used and nothing else."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__(max_len, d_model)
        self.table = nn.Embedding(max_len, d_model, sparse=True)


class _RowByRow(_ByLookup):
    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        rows = []
        for t in range(offset, offset + x.shape[1]):
            if t >= self.max_len:
                raise ValueError(f"there is no row {t}: max_len is {self.max_len}")
            rows.append(x[:, t - offset] + self.table.weight[t])
        return torch.stack(rows, dim=1)


def _named(module: Callable[..., nn.Module]) -> dict[str, Callable[..., nn.Module]]:
    return {"LearnedPosition": module}


LEARNED_POSITION = {
    "lookup": _named(_ByLookup),
    "numbers-for-each-sentence": _named(_ForEachSentence),
    "one-hot": _named(_ByOneHot),
    "own-table": _named(_OwnTable),
    "sparse-gradient": _named(_Sparse),
    "row-by-row": _named(_RowByRow),
}
