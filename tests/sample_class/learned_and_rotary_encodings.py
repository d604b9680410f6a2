"""The sample class of lesson 05."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "05-learned-and-rotary-encodings"

EXERCISES = (
    "learned-position",
    "rotary-angles",
    "rotate-adjacent",
    "rotate-halves",
    "adjacent-to-halves",
    "rotary-attention",
    "quiz-rotary",
)

# --- Right answers, in different styles -------------------------------------------------------------------------------

LEARNED = """
class LearnedPosition(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.max_len = max_len
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, x, offset=0):
        length = x.shape[1]
        if offset + length > self.max_len:
            raise ValueError(f"max_len is {self.max_len}, but {offset + length} positions are needed")
        positions = torch.arange(offset, offset + length, device=x.device)
        return x + self.table(positions)
"""
ANGLES = """
def rotary_angles(positions, head_dim, base=10000.0):
    if head_dim % 2 == 1:
        raise ValueError(f"head_dim must be even, got head_dim = {head_dim}")
    i = torch.arange(head_dim // 2, device=positions.device).float()
    frequencies = base ** (-2 * i / head_dim)
    return positions.unsqueeze(-1).float() * frequencies
"""
ADJACENT = """
def rotate_adjacent(x, angles):
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    a, b = y[..., 0::2], y[..., 1::2]
    cos, sin = torch.cos(angles), torch.sin(angles)
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.reshape(x.shape).to(x.dtype)
"""
HALVES = """
def rotate_halves(x, angles):
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    half = x.shape[-1] // 2
    a, b = y[..., :half], y[..., half:]
    cos, sin = torch.cos(angles), torch.sin(angles)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
"""
CONVERT = """
def adjacent_to_halves(weight, n_heads):
    heads = weight.reshape(n_heads, -1, weight.shape[1])
    return torch.cat((heads[:, 0::2], heads[:, 1::2]), dim=1).reshape(weight.shape)
"""
ATTENTION = """
class RotaryAttention(nn.Module):
    def __init__(self, d_model, n_heads, base=10000.0):
        super().__init__()
        self.n_heads, self.head_dim, self.base = n_heads, d_model // n_heads, base
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def split(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, positions=None, mask=None):
        batch, length, d_model = x.shape
        if positions is None:
            positions = torch.arange(length, device=x.device)
        angles = rotary_angles(positions, self.head_dim, self.base)
        if positions.dim() == 2:
            angles = angles.unsqueeze(1)
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        q, k = rotate_adjacent(q, angles), rotate_adjacent(k, angles)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.output(mixed.transpose(1, 2).reshape(batch, length, d_model))
"""
QUIZ = """
q1 = "b"
q2 = "d"
q3 = "b"
q4 = "c"
q5 = "a"
"""
RIGHT = {
    "learned-position": LEARNED,
    "rotary-angles": ANGLES,
    "rotate-adjacent": ADJACENT,
    "rotate-halves": HALVES,
    "adjacent-to-halves": CONVERT,
    "rotary-attention": ATTENTION,
    "quiz-rotary": QUIZ,
}

COMPLEX = {
    "learned-position": """
class LearnedPosition(nn.Module):
    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_embeddings=max_len, embedding_dim=d_model)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
        end, max_len = offset + x.size(1), len(self.table.weight)
        if end > max_len:
            raise ValueError(f"position {end - 1} needs max_len >= {end}, but max_len is {max_len}")
        return torch.add(x, self.table.weight.narrow(0, offset, x.size(1)))
""",
    "rotary-angles": """
def rotary_angles(positions: torch.Tensor, head_dim: int, base: float = 10000.0) -> torch.Tensor:
    if head_dim & 1:
        raise ValueError(f"odd head_dim: {head_dim}")
    exponent = torch.arange(head_dim // 2, device=positions.device) * (-2 * math.log(base) / head_dim)
    return torch.einsum("...l,i->...li", positions.to(torch.float32), exponent.exp())
""",
    "rotate-adjacent": """
def rotate_adjacent(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], -1, 2))
    hands = torch.polar(torch.ones_like(angles), angles)  # cos + i sin
    return torch.view_as_real(pairs * hands).flatten(-2).type_as(x)
""",
    "rotate-halves": """
def rotate_halves(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    hands = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.exp(1j * angles.double())
    return torch.cat([hands.real, hands.imag], dim=-1).to(x.dtype)
""",
    "adjacent-to-halves": """
def adjacent_to_halves(weight: torch.Tensor, n_heads: int) -> torch.Tensor:
    rows, width = weight.shape
    return weight.view(n_heads, rows // n_heads // 2, 2, width).permute(0, 2, 1, 3).reshape(rows, width)
""",
    "rotary-attention": """
class RotaryAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, base: float = 10000.0) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))
        self.n_heads, self.head_dim, self.base = n_heads, d_model // n_heads, base

    def forward(self, x, positions=None, mask=None):
        batch, length, d_model = x.shape
        if positions is None:
            positions = torch.arange(length, device=x.device)
        angles = rotary_angles(positions.expand(batch, length), self.head_dim, self.base)[:, None]
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, self.head_dim)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(
            rotate_adjacent(q, angles), rotate_adjacent(k, angles), v, attn_mask=mask
        )
        return self.output(mixed.transpose(1, 2).flatten(2))
""",
    "quiz-rotary": 'q1, q2, q3, q4, q5 = "b", "d", "b", "c", "a"',
}

LOOPS = {
    "learned-position": """
class LearnedPosition(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.max_len = max_len
        self.table = Rows(max_len, d_model)

    def forward(self, x, offset=0):
        rows = []
        for t in range(offset, offset + x.shape[1]):
            if t >= self.max_len:
                raise ValueError(f"there is no row {t}: max_len is {self.max_len}")
            rows.append(x[:, t - offset] + self.table.weight[t])
        return torch.stack(rows, dim=1)
""",
    "rotary-angles": """
def rotary_angles(positions, head_dim, base=10000.0):
    if head_dim % 2 != 0:
        raise ValueError(f"head_dim = {head_dim} is odd")
    columns = [positions / base ** (2 * i / head_dim) for i in range(head_dim // 2)]
    return torch.stack(columns, dim=-1).to(torch.float32)
""",
    "rotate-adjacent": """
def rotate_adjacent(x, angles):
    columns = []
    for i in range(x.shape[-1] // 2):
        a, b, angle = x[..., 2 * i].double(), x[..., 2 * i + 1].double(), angles[..., i].double()
        columns.append(a * angle.cos() - b * angle.sin())
        columns.append(a * angle.sin() + b * angle.cos())
    return torch.stack(columns, dim=-1).to(x.dtype)
""",
    "rotate-halves": """
def rotate_halves(x, angles):
    # bring partners together, turn them as neighbours, put them back
    half = x.shape[-1] // 2
    order = [column for i in range(half) for column in (i, i + half)]
    back = [order.index(column) for column in range(2 * half)]
    return rotate_adjacent(x[..., order], angles)[..., back]
""",
    "adjacent-to-halves": """
def adjacent_to_halves(weight, n_heads):
    head_dim = weight.shape[0] // n_heads
    rows = []
    for head in range(n_heads):
        for start in (0, 1):
            rows += range(head * head_dim + start, (head + 1) * head_dim, 2)
    return weight[rows]
""",
    "rotary-attention": """
class RotaryAttention(nn.Module):
    def __init__(self, d_model, n_heads, base=10000.0):
        super().__init__()
        for name in ("query", "key", "value", "output"):
            self.add_module(name, nn.Linear(d_model, d_model))
        self.n_heads, self.base = n_heads, base

    def forward(self, x, positions=None, mask=None):
        batch, length, _ = x.shape
        numbers = positions if positions is not None else torch.arange(length, device=x.device)
        if mask is not None:
            mask = torch.broadcast_to(mask, (batch, self.n_heads, length, length))
        mixed = []
        parts = zip(*(layer(x).chunk(self.n_heads, -1) for layer in (self.query, self.key, self.value)))
        for head, (q, k, v) in enumerate(parts):
            angles = rotary_angles(numbers, q.shape[-1], self.base)
            q, k = rotate_adjacent(q.float(), angles), rotate_adjacent(k.float(), angles)
            scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
            if mask is not None:
                scores = torch.where(mask[:, head], scores, -1e9)
            mixed.append(torch.einsum("bij,bjd->bid", scores.softmax(-1), v.float()))
        return self.output(torch.cat(mixed, dim=-1).to(x.dtype))
""",
    "quiz-rotary": 'q1, q2, q3, q4, q5 = list("bdbca")',
}
ROWS = """
class Rows(nn.Module):
    \"\"\"A table of my own.\"\"\"

    def __init__(self, rows, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, width))
"""

NOISY = {
    "learned-position": """
import sys
import warnings


class LearnedPosition(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        warnings.warn("rows past the trained length stay random")
        self.max_len = max_len
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, x, offset=0):
        batch, length, _ = x.shape
        print("rows", offset, offset + length, file=sys.stderr)
        if length + offset > self.max_len:
            raise ValueError(f"max_len = {self.max_len}, asked for {length + offset}")
        numbers = (torch.arange(length, device=x.device) + offset).expand(batch, length)
        return self.table(numbers) + x
""",
    "rotary-angles": """
def rotary_angles(positions, head_dim, base=10000.0):
    print("positions", positions.shape, file=sys.stderr)
    if head_dim % 2:
        raise ValueError("head_dim is %d" % head_dim)
    pairs = torch.arange(head_dim // 2, dtype=torch.float64, device=positions.device)
    return (positions.double()[..., None] * torch.pow(base, -2 * pairs / head_dim)).type(torch.float32)
""",
    "rotate-adjacent": """
def rotate_adjacent(x, angles):
    wide = x.to(torch.float64)
    partner = torch.stack([-wide[..., 1::2], wide[..., ::2]], dim=-1).reshape(x.shape)
    doubled = angles.repeat_interleave(2, dim=-1)
    return (wide * doubled.cos() + partner * doubled.sin()).to(x.dtype)
""",
    "rotate-halves": """
def rotate_halves(x, angles):
    warnings.warn("as in LLaMA")
    first, second = x.to(torch.float64).chunk(2, dim=-1)
    angle = torch.cat((angles, angles), dim=-1)
    return (x * angle.cos() + torch.cat((-second, first), dim=-1) * angle.sin()).to(x.dtype)
""",
    "adjacent-to-halves": """
adjacent_to_halves = lambda weight, n_heads: torch.cat(
    [torch.cat([head[0::2], head[1::2]]) for head in weight.chunk(n_heads)]
)
""",
    "rotary-attention": """
class RotaryAttention(nn.Module):
    # the halves pairing on converted weights gives the same scores
    def __init__(self, d_model, n_heads, base=10000.0):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.output = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.n_heads, self.head_dim, self.base = n_heads, d_model // n_heads, base

    def forward(self, x, positions=None, mask=None):
        warnings.warn("converted at every call")
        numbers = torch.arange(x.shape[1], device=x.device) if positions is None else positions
        angles = rotary_angles(numbers, self.head_dim, self.base)
        angles = angles if angles.dim() == 2 else angles[:, None]

        def heads(weight, bias):
            return F.linear(x, weight, bias).view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

        def converted(layer):
            weight = adjacent_to_halves(layer.weight, self.n_heads)
            bias = adjacent_to_halves(layer.bias[:, None], self.n_heads)[:, 0]
            return rotate_halves(heads(weight, bias), angles)

        scores = converted(self.query) @ converted(self.key).transpose(-2, -1) * self.head_dim**-0.5
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        mixed = scores.softmax(dim=-1) @ heads(self.value.weight, self.value.bias)
        return self.output(mixed.transpose(1, 2).flatten(-2))
""",
    "quiz-rotary": 'q1 = "B"\nq2 = " d"\nq3 = "b"\nq4 = "C "\nq5 = "a"',
}

# --- Wrong answers ----------------------------------------------------------------------------------------------------

SIZES_SWAPPED = """
class LearnedPosition(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.max_len = max_len
        self.table = nn.Embedding(d_model, max_len)

    def forward(self, x, offset=0):
        end = offset + x.shape[1]
        if end > self.max_len:
            raise ValueError(f"{end} positions do not fit: max_len = {self.max_len}")
        return x + self.table.weight[offset:end]
"""
MIXED_PAIRINGS = """
def rotate_adjacent(x, angles):
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    first, second = y.chunk(2, dim=-1)
    angle = angles.repeat_interleave(2, dim=-1)
    return (y * angle.cos() + torch.cat((-second, first), dim=-1) * angle.sin()).to(x.dtype)
"""
HALF_ANGLES = """
def rotate_adjacent(x, angles):
    angles = angles.to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
"""
BACK_AGAIN = """
def adjacent_to_halves(weight, n_heads):
    heads = weight.reshape(n_heads, 2, -1, weight.shape[1])
    return heads.transpose(1, 2).reshape(weight.shape)
"""
ACROSS_HEADS = """
def adjacent_to_halves(weight, n_heads):
    return torch.cat((weight[0::2], weight[1::2]))
"""
CHECK = """    if offset + length > self.max_len:
            raise ValueError(f"max_len is {self.max_len}, but {offset + length} positions are needed")
    """

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, with complex numbers and torch's attention; saved without cell ids", COMPLEX, form=without_ids),
    Student(
        "right, with loops over rows, pairs and heads, and a table of its own; saved with a byte order mark",
        LOOPS,
        own_cells={"learned-position": ROWS},
        form=with_mark,
    ),
    Student(
        "right, with attention through the other pairing, warnings and lines on stderr; from a notebook service",
        NOISY,
        form=from_colab,
    ),
    Student(
        "counts pairs from 1; attention inherits it, and has no name for it",
        {**RIGHT, "rotary-angles": ANGLES.replace("-2 * i / head_dim", "-2 * (i + 1) / head_dim")},
        lost={"rotary-angles": "pairs-from-one", "rotary-attention": None},
    ),
    Student(
        "mixes the two pairings, which attention inherits, and converts in the other direction",
        {**RIGHT, "rotate-adjacent": MIXED_PAIRINGS, "adjacent-to-halves": BACK_AGAIN},
        lost={
            "rotate-adjacent": "rotate-half-with-interleaved-angles",
            "rotary-attention": "rotate-half-with-interleaved-angles",
            "adjacent-to-halves": "inverse-order",
        },
    ),
    Student(
        "swaps the sizes of the table, and rotates the values; the file has no metadata",
        {
            **RIGHT,
            "learned-position": SIZES_SWAPPED,
            "rotary-attention": ATTENTION.replace("@ v\n", "@ rotate_adjacent(v, angles)\n"),
        },
        lost={"learned-position": "sizes-swapped", "rotary-attention": "values-rotated-too"},
        form=without_metadata,
    ),
    Student(
        "does not check the end, confuses the pairings, ignores positions, and errs in the quiz",
        {
            **RIGHT,
            "learned-position": LEARNED.replace(CHECK, ""),
            "rotate-halves": ADJACENT.replace("rotate_adjacent", "rotate_halves"),
            "rotary-attention": ATTENTION.replace(
                "        if positions is None:\n            positions", "        positions"
            ),
            "quiz-rotary": QUIZ.replace('"c"', '"a"'),
        },
        lost={
            "learned-position": "end-not-checked",
            "rotate-halves": "neighbours-instead-of-halves",
            "rotary-attention": "positions-ignored",
            "quiz-rotary": "q4-a",
        },
    ),
    Student(
        "counts learned rows from 1, lets an odd width through, rounds angles, and reorders across heads",
        {
            **RIGHT,
            "learned-position": LEARNED.replace(
                "torch.arange(offset, offset + length", "torch.arange(offset + 1, offset + length + 1"
            ),
            "rotary-angles": ANGLES.replace("head_dim % 2 == 1", "head_dim < 2"),
            "rotate-adjacent": HALF_ANGLES,
            "adjacent-to-halves": ACROSS_HEADS,
        },
        lost={
            "learned-position": "positions-from-one",
            "rotary-angles": "width-not-checked",
            "rotate-adjacent": "half-precision-angles",
            "adjacent-to-halves": "across-heads",
            "rotary-attention": "half-precision-angles",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in EXERCISES[:4]},
        lost=dict.fromkeys(EXERCISES[4:], "unanswered"),
    ),
    Student(
        "leaves a parenthesis open in the conversion's cell",
        {**RIGHT, "adjacent-to-halves": CONVERT.replace("dim=1)", "dim=1")},
        lost={"adjacent-to-halves": "not-defined"},
    ),
    Student(
        "calls a tensor method that does not exist, and returns a text for a tensor",
        {
            **RIGHT,
            "rotate-halves": 'def rotate_halves(x, angles):\n    return "turned"',
            "adjacent-to-halves": CONVERT.replace("weight.reshape", "weight.rearrange"),
        },
        lost={"rotate-halves": None, "adjacent-to-halves": None},
    ),
    Student(
        "ends the kernel in the attention layer",
        {
            **RIGHT,
            "rotary-attention": ATTENTION.replace(
                "mixed = torch", "import os\n\n        os._exit(1)\n        mixed = torch"
            ),
        },
        lost={"rotary-attention": "not-reached", "quiz-rotary": "not-reached"},
        outcome=PARTLY,
        reason="the kernel died in the cell test-rotary-attention",
    ),
    Student(
        "loops without end in the conversion",
        {**RIGHT, "adjacent-to-halves": "def adjacent_to_halves(weight, n_heads):\n    while True:\n        pass"},
        lost={"adjacent-to-halves": "timed-out"},
        outcome=PARTLY,
        reason="not judged: adjacent-to-halves (timed-out)",
    ),
)
