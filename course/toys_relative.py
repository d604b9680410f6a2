"""Tiny causal Transformers with relative position codes, trained side by side at one length and tested at others.

The models, the tasks and the training are those of `toys_lengths`; only the position codes are others. One stack of
tensors holds all models of an experiment, one for each code and seed.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course.toys_lengths import (
    ALPHABET,
    TRAINED_LENGTH,
    Texts,
    _angles,
    _many,
    _normalise,
    _turn,
    best_forecast,
    copy_texts,
    drifting_texts,
)

RELATIVE_CODES = ("none", "rotary", "ALiBi", "T5, 32 buckets", "T5, 8 buckets")
# Where each bucket of one direction begins (places before the query): the rule itself is an exercise of the lesson.
BUCKETS = {
    "T5, 32 buckets": (*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113),
    "T5, 8 buckets": (*range(5), 6, 8, 12),
}
SLOPES = {2: (1 / 16, 1 / 256), 4: (1 / 4, 1 / 16, 1 / 64, 1 / 256)}  # of ALiBi, by number of heads


class RelativeCrowd(nn.Module):
    """One small pre-norm causal Transformer for each code in `RELATIVE_CODES` and each seed.

    Two blocks, without biases, and layer norms without weights. Scores are divided by the root of the head's width in
    all of them, so that only the code differs. A T5 table serves both blocks.

    Args:
        seeds: one model of each code starts from each of these.
        n_heads: 2 or 4.
    """

    def __init__(self, seeds: tuple[int, ...], d_model: int = 32, n_heads: int = 2, n_blocks: int = 2) -> None:
        super().__init__()
        self.n_heads, self.n_blocks, self.n_seeds = n_heads, n_blocks, len(seeds)
        shapes = {"embedding": (ALPHABET, d_model), "scores": (d_model, ALPHABET)}
        for block in range(n_blocks):
            shapes[f"query_key_value_{block}"] = (d_model, 3 * d_model)
            shapes[f"output_{block}"] = (d_model, d_model)
            shapes[f"expand_{block}"] = (d_model, 2 * d_model)
            shapes[f"contract_{block}"] = (2 * d_model, d_model)
        for code, starts in BUCKETS.items():
            shapes[code] = (len(starts), n_heads)
        self.weights = nn.ParameterDict()
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        for name, shape in shapes.items():
            scale = d_model**-0.5 if name in BUCKETS else 1.0 if name == "embedding" else shape[0] ** -0.5
            drawn = torch.stack([scale * torch.randn(shape, generator=generator) for generator in generators])
            copies = 1 if name in BUCKETS else len(RELATIVE_CODES)
            self.weights[name] = nn.Parameter(drawn.repeat(copies, 1, 1))  # the same for each code
        number = torch.arange(len(RELATIVE_CODES)).repeat_interleave(len(seeds)).view(-1, 1, 1)
        is_rotary = number == RELATIVE_CODES.index("rotary")
        self.angle = is_rotary * _angles(d_model // n_heads)  # the others turn by angle 0
        self.slopes = torch.tensor(SLOPES[n_heads])

    def bias(self, length: int) -> torch.Tensor:
        """What each model adds to the score of a query and an earlier key: `(models, n_heads, length, length)`."""
        place = torch.arange(length)
        back = (place[:, None] - place).clamp(min=0)
        nothing = torch.zeros(self.n_seeds, self.n_heads, length, length)
        parts = dict.fromkeys(RELATIVE_CODES, nothing)
        parts["ALiBi"] = nothing - self.slopes[:, None, None] * back
        for code, starts in BUCKETS.items():
            buckets = torch.bucketize(back, torch.tensor(starts), right=True) - 1
            parts[code] = self.weights[code][:, buckets].permute(0, 3, 1, 2)
        return torch.cat([parts[code] for code in RELATIVE_CODES])

    def forward(self, texts: torch.Tensor, window: int | None = None) -> torch.Tensor:
        """Score the eight letters: int64 `(seeds, batch, length)` to `(models, batch, length, 8)`.

        Args:
            window: how many letters, itself included, each letter may look at; without it all earlier ones.
        """
        length = texts.shape[-1]
        letters = F.one_hot(texts, ALPHABET).to(self.weights["embedding"].dtype)
        x = self._project("embedding", letters.repeat(len(RELATIVE_CODES), 1, 1, 1))
        cos, sin = self.angle[:, None, None, :length].cos(), self.angle[:, None, None, :length].sin()
        may_look = torch.ones(length, length, dtype=torch.bool).tril()
        if window is not None:
            may_look = may_look.triu(1 - window)
        added = self.bias(length).masked_fill(~may_look, -torch.inf).unsqueeze(1)
        for block in range(self.n_blocks):
            split = self._project(f"query_key_value_{block}", _normalise(x))
            split = split.view(*x.shape[:-1], 3, self.n_heads, -1)
            query, key, value = split.permute(3, 0, 1, 4, 2, 5)  # each (models, batch, heads, length, head_dim)
            query, key = _turn(query, cos, sin), _turn(key, cos, sin)
            weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) + added).softmax(dim=-1)
            x = x + self._project(f"output_{block}", (weights @ value).transpose(2, 3).flatten(3))
            x = x + self._project(f"contract_{block}", self._project(f"expand_{block}", _normalise(x)).relu())
        return self._project("scores", _normalise(x))

    def _project(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x.flatten(1, 2), self.weights[name]).view(*x.shape[:-1], -1)


def train_relative(
    make_texts: Texts, seeds: tuple[int, ...] = (0, 1, 2), steps: int = 120, batch: int = 16, n_heads: int = 2
) -> RelativeCrowd:
    """Train all codes and seeds at once, on fresh texts of 16 letters, as `train_crowd` does.

    Args:
        make_texts: `copy_texts` or `drifting_texts`.
    """
    crowd = RelativeCrowd(seeds, n_heads=n_heads)
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
    optimizer = torch.optim.Adam(crowd.parameters(), lr=0.01, fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1.0, (step + 1) / 20) * (1 - step / steps) ** 0.5
        texts, targets = _many(make_texts, batch, TRAINED_LENGTH, generators)
        scores = crowd(texts)
        wanted = targets.repeat(len(RELATIVE_CODES), 1, 1)
        loss = len(wanted) * F.cross_entropy(scores.flatten(0, 2), wanted.flatten())  # a sum: models stay apart
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return crowd


def relative_copy_accuracy(
    crowd: RelativeCrowd, length: int, window: int | None = None, n_texts: int = 32
) -> torch.Tensor:
    """How often each model copies right at the last eight letters of unseen texts: `(codes, seeds)`, from 0 to 1."""
    scores, _, targets = _last_eight(crowd, copy_texts, length, window, n_texts)
    right = scores.argmax(dim=-1) == targets.repeat(len(RELATIVE_CODES), 1, 1)
    return right.float().mean(dim=(1, 2)).view(len(RELATIVE_CODES), -1)


def relative_forecast_loss(
    crowd: RelativeCrowd, length: int, window: int | None = None, n_texts: int = 32
) -> torch.Tensor:
    """How far each model is from the best forecast at the last eight letters of unseen texts: `(codes, seeds)` in nats.

    The Kullback-Leibler divergence from `best_forecast` to the model's forecast; 0 is perfect.
    """
    scores, texts, _ = _last_eight(crowd, drifting_texts, length, window, n_texts)
    best = torch.stack([best_forecast(some)[:, -8:] for some in texts]).repeat(len(RELATIVE_CODES), 1, 1, 1)
    lost = (best * (best.log() - scores.double().log_softmax(dim=-1))).sum(dim=-1)
    return lost.mean(dim=(1, 2)).view(len(RELATIVE_CODES), -1).float()


@torch.no_grad()
def _last_eight(
    crowd: RelativeCrowd, make_texts: Texts, length: int, window: int | None, n_texts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generators = [torch.Generator().manual_seed(5000 + length + seed) for seed in range(crowd.n_seeds)]
    texts, targets = _many(make_texts, n_texts, length, generators)
    return crowd(texts, window)[:, :, -8:], texts, targets[:, :, -8:]
