"""The treasure hunt of lesson 04: a toy task that needs one look-up after another, and a reader built of any blocks."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

N_PLACES = 8
HUNT_STEPS = (2, 3, 4)  # the questions: which place is reached after so many steps?


def treasure_hunts(n_hunts: int, generator: torch.Generator) -> torch.Tensor:
    """Hunts: the note at each of 8 places names the next place; following the notes visits all before it returns.

    Returns:
        int64 `(n_hunts, 8)`: entry `[h, t]` is the note at place t of hunt h.
    """
    route = torch.rand(n_hunts, N_PLACES, generator=generator).argsort(dim=1)
    return torch.empty_like(route).scatter_(1, route, route.roll(-1, dims=1))


def follow_notes(hunts: torch.Tensor, steps: int) -> torch.Tensor:
    """The place reached from each place after following `steps` notes. `(n_hunts, 8) -> (n_hunts, 8)` int64."""
    place = torch.arange(N_PLACES, device=hunts.device).expand_as(hunts)
    for _ in range(steps):
        place = hunts.gather(1, place)
    return place


class HuntReader(nn.Module):
    """Answers, at each place of a hunt, which place is reached after 2, 3 and 4 steps.

    Each place starts as a trained vector for its note plus a trained vector for its number. The blocks follow, then a
    layer norm, then one linear layer of scores.
    """

    def __init__(self, blocks: nn.ModuleList, d_model: int) -> None:
        super().__init__()
        self.note, self.place = nn.Embedding(N_PLACES, d_model), nn.Embedding(N_PLACES, d_model)
        self.blocks, self.norm = blocks, nn.LayerNorm(d_model)
        self.scores = nn.Linear(d_model, len(HUNT_STEPS) * N_PLACES)

    def forward(self, hunts: torch.Tensor) -> torch.Tensor:
        """Score all places for each question: `(batch, 8) -> (batch, 8, 3, 8)`."""
        x = self.note(hunts) + self.place.weight
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.scores(self.norm(x))
        return scores.view(*hunts.shape, len(HUNT_STEPS), N_PLACES)


def train_hunter(
    make_block: Callable[[], nn.Module],
    layers: int,
    d_model: int = 32,
    steps: int = 140,
    learning_rate: float = 1e-2,
    warm_up: int = 0,
    seed: int = 0,
) -> list[tuple[int, float, float, float]]:
    """Train a `HuntReader` of `layers` blocks on fresh random hunts, 48 in a batch, with AdamW.

    Args:
        make_block: Makes one new block, a module from `(batch, length, d_model)` to the same shape.
        warm_up: Number of steps over which the learning rate rises to its full value; 0 means full from the start.

    Returns:
        One row each 20 steps: the step, and the share of right answers on 250 other hunts for 2, 3 and 4 steps.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    reader = HuntReader(nn.ModuleList([make_block() for _ in range(layers)]), d_model)
    optimizer = torch.optim.AdamW(reader.parameters(), lr=learning_rate, fused=True)
    unseen = treasure_hunts(250, generator)
    answers = torch.stack([follow_notes(unseen, n) for n in HUNT_STEPS], dim=-1)  # (250, 8, 3)
    history = []
    for step in range(steps + 1):
        if step % 20 == 0:
            with torch.no_grad():
                right = (reader(unseen).argmax(dim=-1) == answers).float().mean(dim=(0, 1))
            two, three, four = right.tolist()
            history.append((step, two, three, four))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (step + 1) / max(warm_up, 1))
        hunts = treasure_hunts(48, generator)
        targets = torch.stack([follow_notes(hunts, n) for n in HUNT_STEPS], dim=-1)
        loss = len(HUNT_STEPS) * F.cross_entropy(reader(hunts).flatten(0, 2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return history
