"""Tiny causal Transformers with four position codes, trained side by side at one length and tested at others.

All models of an experiment, one for each code and seed, are one stack of tensors: their weights have a leading axis
`models`, and one batched matrix product serves them all. Models of one seed start from the same weights and read the
same texts, so that only the code differs.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

CODES = ("none", "learned", "sinusoidal", "rotary")
ALPHABET = 8  # letters 0 ... 7
TRAINED_LENGTH = 16
TABLE_ROWS = 128
KEEP, CHANGE = 0.5, 1 / 12  # drifting texts: the favourite is written, respectively replaced, with this probability

Texts = Callable[[int, int, torch.Generator], tuple[torch.Tensor, torch.Tensor]]


def copy_texts(n_texts: int, length: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Random letters, and at each position the letter three places back.

    Returns:
        Texts and targets, int64 `(n_texts, length)`; the first three targets are -100: nothing is asked there.
    """
    texts = torch.randint(ALPHABET, (n_texts, length), generator=generator)
    return texts, F.pad(texts[:, :-3], (3, 0), value=-100)


def drifting_texts(n_texts: int, length: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts with a favourite letter that changes now and then, and at each position the next letter.

    A letter is the favourite with probability `KEEP`, else any of the eight. After each letter a new favourite is drawn
    with probability `CHANGE`. So recent letters tell more about the next one than old letters do.

    Returns:
        Texts and targets, int64 `(n_texts, length)`.
    """
    shape = (n_texts, length + 1)
    drawn = torch.randint(ALPHABET, shape, generator=generator)
    changes = torch.rand(shape, generator=generator) < CHANGE
    changes[:, 0] = True
    since = torch.where(changes, torch.arange(length + 1), 0).cummax(dim=1).values  # when the favourite was drawn
    favourite = drawn.gather(1, since)
    other = torch.randint(ALPHABET, shape, generator=generator)
    letters = torch.where(torch.rand(shape, generator=generator) < KEEP, favourite, other)
    return letters[:, :-1], letters[:, 1:]


def best_forecast(texts: torch.Tensor) -> torch.Tensor:
    """What the rules of `drifting_texts` say about the next letter: nobody can do better without seeing it.

    Bayes' rule, letter by letter: weigh each possible favourite by the letter just read, then allow for a change.

    Returns:
        Probabilities, float64 `(n_texts, length, 8)`.
    """
    belief = torch.full((len(texts), ALPHABET), 1 / ALPHABET, dtype=torch.float64)  # who is the favourite
    forecasts = []
    for letter in texts.T:
        belief = belief * (KEEP * F.one_hot(letter, ALPHABET) + (1 - KEEP) / ALPHABET)
        belief = (1 - CHANGE) * belief / belief.sum(dim=1, keepdim=True) + CHANGE / ALPHABET
        forecasts.append(KEEP * belief + (1 - KEEP) / ALPHABET)
    return torch.stack(forecasts, dim=1)


class PositionCrowd(nn.Module):
    """One small pre-norm causal Transformer for each code in `CODES` and each seed.

    Two blocks, one layer norm before each part and one at the end, without weights. The learned table has 128 rows,
    drawn like the token embeddings; rows that training does not use stay as they were drawn.

    Args:
        seeds: one model of each code starts from each of these.
    """

    def __init__(self, seeds: tuple[int, ...], d_model: int = 32, n_heads: int = 2, n_blocks: int = 2) -> None:
        super().__init__()
        self.n_heads, self.n_blocks, self.n_seeds = n_heads, n_blocks, len(seeds)
        shapes = {"embedding": (ALPHABET, d_model), "table": (TABLE_ROWS, d_model), "scores": (d_model, ALPHABET)}
        for block in range(n_blocks):
            shapes[f"query_key_value_{block}"] = (d_model, 3 * d_model)
            shapes[f"output_{block}"] = (d_model, d_model)
            shapes[f"expand_{block}"] = (d_model, 2 * d_model)
            shapes[f"contract_{block}"] = (2 * d_model, d_model)
        self.weights = nn.ParameterDict()
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        for name, shape in shapes.items():
            scale = 1.0 if name in ("embedding", "table") else shape[0] ** -0.5
            drawn = torch.stack([scale * torch.randn(shape, generator=generator) for generator in generators])
            self.weights[name] = nn.Parameter(drawn.repeat(len(CODES), 1, 1))  # the same for each code
        code = torch.arange(len(CODES)).repeat_interleave(len(seeds)).view(-1, 1, 1)
        self.is_learned = (code == CODES.index("learned")).float()
        angle = _angles(d_model)
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        self.fixed = (code == CODES.index("sinusoidal")) * waves  # (models, 128, d_model)
        self.angle = (code == CODES.index("rotary")) * _angles(d_model // n_heads)  # others turn by angle 0

    def forward(self, texts: torch.Tensor, start: int = 0, window: int | None = None) -> torch.Tensor:
        """Score the eight letters: int64 `(seeds, batch, length)` to `(models, batch, length, 8)`.

        Args:
            start: position of the first letter.
            window: how many letters, itself included, each letter may look at; without it all earlier ones.
        """
        length = texts.shape[-1]
        rows = slice(start, start + length)
        letters = F.one_hot(texts, ALPHABET).to(self.weights["embedding"].dtype)
        x = self._project("embedding", letters.repeat(len(CODES), 1, 1, 1))
        x = x + (self.fixed[:, rows] + self.is_learned * self.weights["table"][:, rows]).unsqueeze(1)
        cos, sin = self.angle[:, None, None, rows].cos(), self.angle[:, None, None, rows].sin()
        may_look = torch.ones(length, length, dtype=torch.bool).tril()
        if window is not None:
            may_look = may_look.triu(1 - window)
        for block in range(self.n_blocks):
            split = self._project(f"query_key_value_{block}", _normalise(x))
            split = split.view(*x.shape[:-1], 3, self.n_heads, -1)
            query, key, value = split.permute(3, 0, 1, 4, 2, 5)  # each (models, batch, heads, length, head_dim)
            query, key = _turn(query, cos, sin), _turn(key, cos, sin)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=may_look)
            x = x + self._project(f"output_{block}", mixed.transpose(2, 3).flatten(3))
            x = x + self._project(f"contract_{block}", self._project(f"expand_{block}", _normalise(x)).relu())
        return self._project("scores", _normalise(x))

    def _project(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x.flatten(1, 2), self.weights[name]).view(*x.shape[:-1], -1)


def _angles(size: int) -> torch.Tensor:
    frequency = 10000.0 ** (-2 * torch.arange(size // 2) / size)
    return torch.outer(torch.arange(TABLE_ROWS).float(), frequency)  # (128, size // 2)


def _normalise(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def train_crowd(
    make_texts: Texts, seeds: tuple[int, ...] = (0, 1, 2), steps: int = 160, batch: int = 16
) -> PositionCrowd:
    """Train all codes and seeds at once, on fresh texts of 16 letters, with Adam (no weight decay).

    Args:
        make_texts: `copy_texts` or `drifting_texts`.
    """
    crowd = PositionCrowd(seeds)
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
    optimizer = torch.optim.Adam(crowd.parameters(), lr=0.01, fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1.0, (step + 1) / 20) * (1 - step / steps) ** 0.5
        texts, targets = _many(make_texts, batch, TRAINED_LENGTH, generators)
        scores = crowd(texts)
        wanted = targets.repeat(len(CODES), 1, 1)
        loss = len(wanted) * F.cross_entropy(scores.flatten(0, 2), wanted.flatten())  # a sum: models stay apart
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return crowd


def copy_accuracy(
    crowd: PositionCrowd, length: int, start: int = 0, window: int | None = None, n_texts: int = 32
) -> torch.Tensor:
    """How often each model copies right at the last eight letters of unseen texts: `(codes, seeds)`, from 0 to 1."""
    scores, _, targets = _at_the_end(crowd, copy_texts, length, start, window, n_texts)
    right = scores.argmax(dim=-1) == targets.repeat(len(CODES), 1, 1)
    return right.float().mean(dim=(1, 2)).view(len(CODES), -1)


def forecast_loss(
    crowd: PositionCrowd, length: int, start: int = 0, window: int | None = None, n_texts: int = 32
) -> torch.Tensor:
    """How far each model is from the best forecast at the last eight letters of unseen texts: `(codes, seeds)` in nats.

    The Kullback-Leibler divergence from `best_forecast` to the model's forecast; 0 is perfect.
    """
    scores, texts, _ = _at_the_end(crowd, drifting_texts, length, start, window, n_texts)
    best = torch.stack([best_forecast(some)[:, -8:] for some in texts]).repeat(len(CODES), 1, 1, 1)
    lost = (best * (best.log() - scores.double().log_softmax(dim=-1))).sum(dim=-1)
    return lost.mean(dim=(1, 2)).view(len(CODES), -1).float()


@torch.no_grad()
def _at_the_end(
    crowd: PositionCrowd, make_texts: Texts, length: int, start: int, window: int | None, n_texts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generators = [torch.Generator().manual_seed(5000 + length + seed) for seed in range(crowd.n_seeds)]
    texts, targets = _many(make_texts, n_texts, length, generators)
    return crowd(texts, start, window)[:, :, -8:], texts, targets[:, :, -8:]


def _many(
    make_texts: Texts, n_texts: int, length: int, generators: list[torch.Generator]
) -> tuple[torch.Tensor, torch.Tensor]:
    made = [make_texts(n_texts, length, generator) for generator in generators]
    return torch.stack([texts for texts, _ in made]), torch.stack([targets for _, targets in made])
