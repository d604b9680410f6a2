"""The sample class of lesson 03."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "03-embedding-plus-position"

EXERCISES = ("token-embedding", "sinusoidal-position", "transformer-input", "padding-mask", "quiz-embedding")
REFLECTION = "reflection-order"
"""A person grades it, so it is nobody's loss here."""

# --- Right answers, in different styles -------------------------------------------------------------------------------

TOKENS = """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, padding_id=None):
        super().__init__()
        self.d_model = d_model
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)

    def forward(self, tokens):
        return self.table(tokens) * math.sqrt(self.d_model)
"""
POSITION = """
class SinusoidalPosition(nn.Module):
    def __init__(self, d_model, max_len=5000, base=10000.0):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), persistent=False)

    def forward(self, x, offset=0):
        length = x.size(1)
        if offset + length > self.max_len:
            raise ValueError(f"{offset + length} positions do not fit: max_len = {self.max_len}")
        rows = self.encoding[offset : offset + length, :]
        return x + rows.to(x.dtype)
"""
INPUT = """
class TransformerInput(nn.Module):
    def __init__(self, vocab_size, d_model, max_len=5000, dropout=0.1, padding_id=None):
        super().__init__()
        self.tokens = TokenEmbedding(vocab_size, d_model, padding_id)
        self.positions = SinusoidalPosition(d_model, max_len)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens, offset=0):
        x = self.tokens(tokens)
        x = self.positions(x, offset)
        return self.drop(x)
"""
MASK = """
def padding_mask(tokens, padding_id):
    return (tokens != padding_id).unsqueeze(1).unsqueeze(2)
"""
QUIZ = """
q1 = "c"
q2 = "a"
q3 = "b"
q4 = "d"
q5 = "b"
"""
RIGHT = {
    "token-embedding": TOKENS,
    "sinusoidal-position": POSITION,
    "transformer-input": INPUT,
    "padding-mask": MASK,
    "quiz-embedding": QUIZ,
}

LOOK_UPS = {
    "token-embedding": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, padding_id: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_id)
        with torch.no_grad():
            self.table.weight.normal_(0.0, d_model**-0.5)
            if padding_id is not None:
                self.table.weight[padding_id].zero_()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weight = self.table.weight
        return F.embedding(tokens, weight * weight.shape[1] ** 0.5, self.table.padding_idx)
""",
    "sinusoidal-position": """
class SinusoidalPosition(nn.Module):
    encoding: torch.Tensor

    def __init__(self, d_model: int, max_len: int = 5000, base: float = 10000.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base).double(), persistent=False)

    def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
        _, length, _ = x.size()
        positions = torch.arange(offset, offset + length, device=x.device)
        if offset + length > len(self.encoding):
            raise ValueError(f"positions up to {offset + length - 1}, but max_len is {len(self.encoding)}")
        return x.add(self.encoding.index_select(0, positions).type_as(x))
""",
    "transformer-input": """
class TransformerInput(nn.Module):
    def __init__(
        self, vocab_size: int, d_model: int, max_len: int = 5000, dropout: float = 0.1, padding_id: int | None = None
    ) -> None:
        super().__init__()
        self.share = dropout
        self.tokens = TokenEmbedding(vocab_size, d_model, padding_id)
        self.place = SinusoidalPosition(d_model, max_len)

    def forward(self, tokens: torch.Tensor, offset: int = 0) -> torch.Tensor:
        return F.dropout(self.place(self.tokens(tokens), offset=offset), p=self.share, training=self.training)
""",
    "padding-mask": """
def padding_mask(tokens: torch.Tensor, padding_id: int) -> torch.Tensor:
    batch, length = tokens.shape
    return torch.ne(tokens, padding_id).view(batch, 1, 1, length)
""",
    "quiz-embedding": 'q1, q2, q3, q4, q5 = "c", "a", "b", "d", "b"',
    REFLECTION: """
Without positions the curve stays at the dashed line: the model can only count how often each event occurs.
With positions it climbs to nearly 1, because the login's neighbour can be found by its place.
""",
}

BY_HAND = {
    "token-embedding": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, padding_id=None):
        super().__init__()
        self.table = Table(vocab_size, d_model, padding_id)
        self.register_buffer("scale", torch.tensor(math.sqrt(d_model)), persistent=False)

    def forward(self, tokens):
        return self.table(tokens) * self.scale
""",
    "sinusoidal-position": """
class SinusoidalPosition(nn.Module):
    def __init__(self, d_model, max_len=5000, base=10000.0):
        super().__init__()
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), False)

    def forward(self, x, offset=0):
        end, max_len = offset + x.shape[1], len(self.encoding)
        if not end <= max_len:
            raise ValueError(f"max_len is {max_len}, but the last position would be {end - 1}")
        result = x.clone()
        for place, position in enumerate(range(offset, end)):
            result[:, place] += self.encoding[position].to(dtype=x.dtype, device=x.device)
        return result
""",
    "transformer-input": """
class TransformerInput(nn.Module):
    def __init__(self, vocab_size, d_model, *rest, **options):
        super().__init__()
        names = dict(zip(("max_len", "dropout", "padding_id"), rest)) | options
        self.tokens = TokenEmbedding(vocab_size, d_model, names.get("padding_id"))
        self.where = SinusoidalPosition(max_len=names.get("max_len", 5000), d_model=d_model)
        self.keep = 1 - names.get("dropout", 0.1)

    def forward(self, tokens, offset=0):
        placed = self.where(self.tokens(tokens), offset)
        if not self.training:
            return placed
        chance = torch.rand(placed.shape, device=placed.device)
        return torch.where(chance < self.keep, placed / self.keep, torch.zeros_like(placed))
""",
    "padding-mask": """
def padding_mask(tokens, padding_id):
    mask = torch.ones(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool, device=tokens.device)
    return mask.masked_fill(tokens[:, None, None, :] == padding_id, False)
""",
    "quiz-embedding": 'q1, q2, q3, q4, q5 = list("cabdb")',
    REFLECTION: "有位置编码时，准确率接近 1；没有位置编码时，停在虚线附近。",
}
TABLE = """
class Table(nn.Module):
    \"\"\"A parameter, indexed; padding comes out as zero.\"\"\"

    def __init__(self, vocab_size, d_model, padding_id):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))
        self.padding_id = padding_id
        if padding_id is not None:
            self.weight.data[padding_id] = 0

    def forward(self, tokens):
        found = self.weight[tokens]
        if self.padding_id is None:
            return found
        return found.masked_fill((tokens == self.padding_id).unsqueeze(-1), 0)
"""

NOISY = {
    "token-embedding": """
import sys
import warnings


class TokenEmbedding(nn.Module):
    # a product with one-hot rows
    def __init__(self, vocab_size, d_model, padding_id=None):
        super().__init__()
        warnings.warn("one-hot rows need memory")
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)

    def forward(self, tokens):
        print("tokens", tokens.shape, file=sys.stderr)
        weight, padding_id = self.table.weight, self.table.padding_idx
        rows = (tokens.unsqueeze(-1) == torch.arange(len(weight), device=tokens.device)).to(weight.dtype)
        if padding_id is not None:
            rows = rows * (tokens != padding_id).unsqueeze(-1)
        return rows @ weight * weight.shape[-1] ** 0.5
""",
    "sinusoidal-position": """
class SinusoidalPosition(nn.Module):
    # the old way: zeros, slices, float32
    def __init__(self, d_model, max_len=5000, base=10000.0):
        super().__init__()
        position = torch.arange(max_len).float().unsqueeze(1)
        slowing = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(position * slowing)
        table[:, 1::2] = torch.cos(position * slowing)
        self.max_len = max_len
        self.register_buffer("encoding", table, persistent=False)

    def forward(self, x, offset=0):
        if x.shape[1] > self.max_len - offset:
            print("too long", file=sys.stderr)
            raise ValueError(f"max_len={self.max_len} is too short for offset={offset} and length={x.shape[1]}")
        rows = self.encoding.narrow(0, offset, x.shape[1])
        return (x + rows.float()).to(x.dtype)
""",
    "transformer-input": """
class TransformerInput(nn.Module):
    def __init__(self, vocab_size, d_model, max_len=5000, dropout=0.1, padding_id=None):
        super().__init__()
        self.tokens = nn.Module()
        self.tokens.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_id)
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model), persistent=False)
        self.last = nn.Sequential(nn.Identity(), nn.Dropout(dropout))

    def forward(self, tokens, offset=0):
        warnings.warn("positions count from the offset")
        rows = self.encoding[offset:][: tokens.size(1)]
        vectors = self.tokens.table(tokens)
        return self.last(vectors * vectors.shape[2] ** 0.5 + rows.to(vectors))
""",
    "padding-mask": "padding_mask = lambda tokens, padding_id: ~(tokens == padding_id)[:, None, None]",
    "quiz-embedding": 'q1 = "C"\nq2 = " a"\nq3 = "b"\nq4 = "D "\nq5 = "b"',
}
# --- Wrong answers ----------------------------------------------------------------------------------------------------

UNSCALED = TOKENS.replace(" * math.sqrt(self.d_model)", "")
ZEROED_BY_HAND = """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, padding_id=None):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        if padding_id is not None:
            self.table.weight.data[padding_id] = torch.zeros(d_model)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens):
        return self.table(tokens) * self.scale
"""
LEARNED = POSITION.replace(
    'self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), persistent=False)',
    "self.encoding = nn.Parameter(sinusoidal_encoding(max_len, d_model, base))",
)
LENGTH_FIRST = """
class SinusoidalPosition(nn.Module):
    def __init__(self, d_model, max_len=5000, base=10000.0):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), persistent=False)

    def forward(self, x, offset=0):
        end = offset + x.size(0)
        if end > self.max_len:
            raise ValueError(f"position {end - 1} is past the end: max_len = {self.max_len}")
        return x + self.encoding[offset:end].unsqueeze(1).to(x.dtype)
"""
UNCHECKED = """
class SinusoidalPosition(nn.Module):
    def __init__(self, d_model, max_len=5000, base=10000.0):
        super().__init__()
        self.register_buffer("encoding", sinusoidal_encoding(max_len, d_model, base), persistent=False)

    def forward(self, x, offset=0):
        return x + self.encoding[offset : offset + x.shape[1]].to(x.dtype)
"""
LIFTED = POSITION.replace("rows.to(x.dtype)", "rows")
OFFSET_LOST = INPUT.replace("self.positions(x, offset)", "self.positions(x)")
DROPOUT_ALWAYS = """
class TransformerInput(nn.Module):
    def __init__(self, vocab_size, d_model, max_len=5000, dropout=0.1, padding_id=None):
        super().__init__()
        self.tokens = TokenEmbedding(vocab_size, d_model, padding_id)
        self.position = SinusoidalPosition(d_model, max_len)
        self.p = dropout

    def forward(self, tokens, offset=0):
        return F.dropout(self.position(self.tokens(tokens), offset), self.p)
"""

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, with look-ups and functions; saved without cell ids", LOOK_UPS, form=without_ids),
    Student(
        "right, with a table, a loop and a dropout of its own; saved with a byte order mark",
        BY_HAND,
        own_cells={"token-embedding": TABLE},
        form=with_mark,
    ),
    Student(
        "right, with one-hot rows and a float32 table, warnings and lines on stderr; from a notebook service",
        NOISY,
        form=from_colab,
    ),
    Student(
        "forgets the root of d_model; the input layer inherits it",
        {**RIGHT, "token-embedding": UNSCALED, REFLECTION: "Order matters."},
        lost={"token-embedding": "unscaled", "transformer-input": "embedding-not-scaled"},
    ),
    Student(
        "keeps the encoding as a parameter, which the input layer inherits, and inverts the mask",
        {**RIGHT, "sinusoidal-position": LEARNED, "padding-mask": MASK.replace("!=", "==")},
        lost={
            "sinusoidal-position": "encoding-is-a-parameter",
            "transformer-input": "position-learns",
            "padding-mask": "mask-inverted",
        },
    ),
    Student(
        "counts positions along the batch, and gives the mask the shape of the tokens; the file has no metadata",
        {
            **RIGHT,
            "sinusoidal-position": LENGTH_FIRST,
            "padding-mask": MASK.replace(".unsqueeze(1).unsqueeze(2)", ""),
        },
        lost={
            "sinusoidal-position": "wrong-axis",
            "transformer-input": "wrong-axis",
            "padding-mask": "mask-without-axes",
        },
        form=without_metadata,
    ),
    Student(
        "does not check the end, forgets the offset, takes 0 for the padding, and errs in the quiz",
        {
            **RIGHT,
            "sinusoidal-position": UNCHECKED,
            "transformer-input": OFFSET_LOST,
            "padding-mask": MASK.replace("!= padding_id", "!= 0"),
            "quiz-embedding": QUIZ.replace('"d"', '"a"'),
        },
        lost={
            "sinusoidal-position": "end-unchecked",
            "transformer-input": "offset-not-passed-on",
            "padding-mask": "padding-always-zero",
            "quiz-embedding": "q4-a",
        },
    ),
    Student(
        "lets the padding row learn, lifts half precision, drops in eval mode too, and makes a mask of floats",
        {
            **RIGHT,
            "token-embedding": ZEROED_BY_HAND,
            "sinusoidal-position": LIFTED,
            "transformer-input": DROPOUT_ALWAYS,
            "padding-mask": MASK.replace(".unsqueeze(2)", ".unsqueeze(2).float()"),
        },
        lost={
            "token-embedding": "padding-row-learns",
            "sinusoidal-position": "lifted-to-float32",
            "transformer-input": "dropout-in-eval",
            "padding-mask": "mask-of-floats",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in EXERCISES[:2]},
        lost=dict.fromkeys(EXERCISES[2:], "unanswered"),
    ),
    Student(
        "leaves a parenthesis open in the mask's cell",
        {**RIGHT, "padding-mask": MASK.replace("padding_id).unsqueeze(1)", "padding_id.unsqueeze(1)")},
        lost={"padding-mask": "not-defined"},
    ),
    Student(
        "misspells an attribute, and returns a text for a mask",
        {
            **RIGHT,
            "transformer-input": INPUT.replace("self.drop(x)", "self.dorp(x)"),
            "padding-mask": 'def padding_mask(tokens, padding_id):\n    return "real tokens only"',
        },
        lost={"transformer-input": None, "padding-mask": None},
    ),
    Student(
        "ends the kernel in the mask",
        {**RIGHT, "padding-mask": "import os\n\n\ndef padding_mask(tokens, padding_id):\n    os._exit(3)"},
        lost={"padding-mask": "not-reached", "quiz-embedding": "not-reached"},
        outcome=PARTLY,
        reason="the kernel died in the cell test-padding-mask",
    ),
    Student(
        "loops without end in the mask",
        {**RIGHT, "padding-mask": "def padding_mask(tokens, padding_id):\n    while True:\n        pass"},
        lost={"padding-mask": "timed-out"},
        outcome=PARTLY,
        reason="not judged: padding-mask (timed-out)",
    ),
)
