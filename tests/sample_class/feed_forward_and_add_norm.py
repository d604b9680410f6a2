"""The sample class of lesson 04."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "04-feed-forward-and-add-norm"

EXERCISES = ("feed-forward", "layer-norm", "add-norm", "encoder-block", "block-cost", "quiz-block")

# --- Right answers, in different styles -------------------------------------------------------------------------------

FEED_FORWARD = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        if activation == "relu":
            self.activation = F.relu
        elif activation == "gelu":
            self.activation = F.gelu
        else:
            raise ValueError(f"unknown activation: {activation}")
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.activation(self.expand(x))
        return self.contract(self.dropout(hidden))
"""
NORM = """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, unbiased=False)
        return self.weight * (x - mean) / torch.sqrt(variance + self.eps) + self.bias
"""
ADD_NORM = """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.0, eps=1e-5):
        super().__init__()
        self.norm = LayerNorm(d_model, eps)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, sublayer_output):
        return self.norm(x + self.drop(sublayer_output))
"""
BLOCK = """
class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, activation="relu", norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.attention_norm = LayerNorm(d_model)
        self.feed_forward_norm = LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.drop(self.attention(self.attention_norm(x), mask))
            x = x + self.drop(self.feed_forward(self.feed_forward_norm(x)))
        else:
            x = self.attention_norm(x + self.drop(self.attention(x, mask)))
            x = self.feed_forward_norm(x + self.drop(self.feed_forward(x)))
        return x
"""
COST = """
def block_cost(length, d_model, n_heads, d_ff):
    return {
        "parameters": 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model,
        "attention_scores": n_heads * length**2,
        "multiply_adds": 4 * length * d_model**2 + 2 * length**2 * d_model + 2 * length * d_model * d_ff,
    }
"""
QUIZ = """
q1 = "b"
q2 = "c"
q3 = "d"
q4 = "a"
q5 = "b"
"""
RIGHT = {
    "feed-forward": FEED_FORWARD,
    "layer-norm": NORM,
    "add-norm": ADD_NORM,
    "encoder-block": BLOCK,
    "block-cost": COST,
    "quiz-block": QUIZ,
}

FORMULAS = {
    "feed-forward": """
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        if activation not in {"relu", "gelu"}:
            raise ValueError("activation: 'relu' or 'gelu', not " + activation)
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation, self.p = activation, dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x @ self.expand.weight.T + self.expand.bias
        if self.activation == "relu":
            hidden = hidden.clamp(min=0)
        else:
            hidden = hidden * 0.5 * (1.0 + torch.erf(hidden / math.sqrt(2.0)))
        if self.training and self.p > 0:
            hidden = hidden * (torch.rand_like(hidden) >= self.p) / (1 - self.p)
        return hidden @ self.contract.weight.T + self.contract.bias
""",
    "layer-norm": """
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.eps), self.weight)
""",
    "add-norm": """
class AddNorm(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model, eps)
        self.p = dropout

    def forward(self, x: torch.Tensor, sublayer_output: torch.Tensor) -> torch.Tensor:
        return self.norm(F.dropout(sublayer_output, p=self.p, training=self.training) + x)
""",
    "encoder-block": """
class EncoderBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.attention_norm, self.feed_forward_norm = LayerNorm(d_model), LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.p, self.order = dropout, "pre" if norm_first else "post"

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        def framed(x, norm, sublayer):
            inner = sublayer(norm(x) if self.order == "pre" else x)
            total = x + F.dropout(inner, self.p, self.training)
            return total if self.order == "pre" else norm(total)

        x = framed(x, self.attention_norm, lambda x: self.attention(x, mask))
        return framed(x, self.feed_forward_norm, self.feed_forward)
""",
    "block-cost": """
def block_cost(length: int, d_model: int, n_heads: int, d_ff: int) -> dict[str, int]:
    linear = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    head_dim = d_model // n_heads
    products = [length * rows * columns for rows, columns in linear]
    products += n_heads * [length * head_dim * length, length * length * head_dim]
    return {
        "multiply_adds": sum(products),
        "parameters": sum((rows + 1) * columns for rows, columns in linear) + sum([d_model] * 4),
        "attention_scores": sum(length**2 for _ in range(n_heads)),
    }
""",
    "quiz-block": 'q1, q2, q3, q4, q5 = "b", "c", "d", "a", "b"',
}

MODULES = {
    "feed-forward": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        match activation:
            case "relu":
                self.bend = nn.ReLU()
            case "gelu":
                self.bend = nn.GELU()
            case other:
                raise ValueError(f"no activation called {other!r}")
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x):
        for layer in (self.expand, self.bend, self.drop, self.contract):
            x = layer(x)
        return x
""",
    "layer-norm": """
class LayerNorm(nn.Module):
    # the centred vector divided by its length, times the root of the width
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d_model,), 1.0))
        self.bias = nn.Parameter(torch.full((d_model,), 0.0))
        self.eps = eps

    def forward(self, x):
        width = x.size(-1)
        middle = centred(x)
        length = torch.sqrt((middle * middle).sum(-1, keepdim=True) + width * self.eps)
        return middle / length * math.sqrt(width) * self.weight + self.bias
""",
    "add-norm": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.0, eps=1e-5):
        super().__init__()
        self.norm = LayerNorm(d_model, eps)
        self.keep = 1 - dropout

    def forward(self, x, sublayer_output):
        if self.training and self.keep < 1:
            kept = torch.bernoulli(torch.full_like(sublayer_output, self.keep))
            sublayer_output = sublayer_output * kept / self.keep
        return self.norm(x + sublayer_output)
""",
    "encoder-block": """
class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, activation="relu", norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.attention_norm = LayerNorm(d_model)
        self.feed_forward_norm = LayerNorm(d_model)
        self.attention_dropout = nn.Dropout(dropout)
        self.feed_forward_dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        residual = x
        if self.norm_first:
            x = self.attention_norm(x)
        x = residual + self.attention_dropout(self.attention(x, mask=mask))
        if not self.norm_first:
            x = self.attention_norm(x)
        residual = x
        if self.norm_first:
            x = self.feed_forward_norm(x)
        x = residual + self.feed_forward_dropout(self.feed_forward(x))
        return x if self.norm_first else self.feed_forward_norm(x)
""",
    "block-cost": """
def block_cost(length, d_model, n_heads, d_ff):
    with torch.device("meta"):
        block = EncoderBlock(d_model, n_heads, d_ff)
    cost = {"parameters": sum(parameter.numel() for parameter in block.parameters())}
    cost["attention_scores"] = n_heads * length * length
    cost["multiply_adds"] = length * d_model * (4 * d_model + 2 * length + 2 * d_ff)
    return cost
""",
    "quiz-block": 'answers = "bcdab"\nq1, q2, q3, q4, q5 = answers',
}
CENTRED = """
def centred(x):
    return x - x.sum(-1, keepdim=True) / x.size(-1)
"""

NOISY = {
    "feed-forward": """
import sys
import warnings


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        warnings.warn("the middle is wide")
        functions = {"relu": torch.relu, "gelu": F.gelu}
        try:
            self.function = functions[activation]
        except KeyError:
            raise ValueError(f"activation = {activation} is not one of {sorted(functions)}") from None
        self.expand, self.contract = nn.Module(), nn.Module()
        for part, rows, columns in ((self.expand, d_ff, d_model), (self.contract, d_model, d_ff)):
            part.weight = nn.Parameter(torch.randn(rows, columns) / columns**0.5)
            part.bias = nn.Parameter(torch.zeros(rows))
        self.dropout = dropout

    def forward(self, x):
        print("feed-forward", x.shape, file=sys.stderr)
        hidden = self.function(F.linear(x, self.expand.weight, self.expand.bias))
        hidden = F.dropout(hidden, self.dropout, self.training)
        return F.linear(hidden, self.contract.weight, self.contract.bias)
""",
    "layer-norm": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(d_model)))
        self.eps = eps

    def forward(self, x):
        warnings.warn("sums by products with a vector of ones")
        ones = torch.full_like(self.weight, 1 / x.shape[-1])
        centred = x - torch.einsum("...d,d->...", x, ones)[..., None]
        variance = torch.einsum("...d,...d,d->...", centred, centred, ones)[..., None]
        return self.weight * centred * (variance + self.eps) ** -0.5 + self.bias
""",
    "add-norm": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.0, eps=1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)  # allowed after the exercise before
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer_output):
        print("add and norm", file=sys.stderr)
        return self.norm(torch.add(x, self.dropout(sublayer_output)))
""",
    "encoder-block": """
class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, activation="relu", norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.attention_norm, self.feed_forward_norm = (nn.LayerNorm(d_model) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.run = self.pre if norm_first else self.post

    def pre(self, x, mask):
        x = self.dropout(self.attention(self.attention_norm(x), mask)) + x
        return self.dropout(self.feed_forward(self.feed_forward_norm(x))) + x

    def post(self, x, mask):
        x = self.attention_norm(self.dropout(self.attention(x, mask)) + x)
        return self.feed_forward_norm(self.dropout(self.feed_forward(x)) + x)

    def forward(self, x, mask=None):
        warnings.warn("a block")
        return self.run(x, mask)
""",
    "block-cost": """
block_cost = lambda length, d_model, n_heads, d_ff: dict(
    parameters=(4 * d_model + 9) * d_model + (2 * d_model + 1) * d_ff,
    attention_scores=n_heads * length * length,
    multiply_adds=2 * length * d_model * (2 * d_model + length + d_ff),
)
""",
    "quiz-block": 'q1 = "B"\nq2 = " c"\nq3 = "d"\nq4 = "A "\nq5 = "b"',
}

# --- Wrong answers ----------------------------------------------------------------------------------------------------

NO_ACTIVATION = FEED_FORWARD.replace("self.activation(self.expand(x))", "self.expand(x)")
GELU_TANH = FEED_FORWARD.replace("= F.gelu", '= lambda x: F.gelu(x, approximate="tanh")')
ACCEPTED = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        self.activation = F.gelu if activation == "gelu" else F.relu
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.contract(self.dropout(self.activation(self.expand(x))))
"""
ANNOTATED_NORM = """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias
"""
READY_MADE_NORM = """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
"""
FROM_NORMED = """
class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, activation="relu", norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout)
        self.attention_norm = LayerNorm(d_model)
        self.feed_forward_norm = LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = self.attention_norm(x)
            x = x + self.drop(self.attention(x, mask))
            x = self.feed_forward_norm(x)
            return x + self.drop(self.feed_forward(x))
        x = self.attention_norm(x + self.drop(self.attention(x, mask)))
        return self.feed_forward_norm(x + self.drop(self.feed_forward(x)))
"""
SWAPPED = BLOCK.replace("if self.norm_first:", "if not self.norm_first:")

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, by formulas and functions; saved without cell ids", FORMULAS, form=without_ids),
    Student(
        "right, with modules, a helper of its own and parameters counted; saved with a byte order mark",
        MODULES,
        own_cells={"layer-norm": CENTRED},
        form=with_mark,
    ),
    Student(
        "right, with bare parameters, einsum and torch's norms, warnings and lines on stderr; from a notebook service",
        NOISY,
        form=from_colab,
    ),
    Student(
        "forgets the activation; the block inherits it",
        {**RIGHT, "feed-forward": NO_ACTIVATION},
        lost={"feed-forward": "no-activation", "encoder-block": "no-activation-inside"},
    ),
    Student(
        "takes the norm from a well-known tutorial; everything built on it inherits it",
        {**RIGHT, "layer-norm": ANNOTATED_NORM},
        lost={
            "layer-norm": "unbiased-and-eps-outside",
            "add-norm": "norm-unbiased",
            "encoder-block": "unbiased-variance-inside",
        },
    ),
    Student(
        "approximates GELU, which the block inherits, and drops from the sum; the file has no metadata",
        {
            **RIGHT,
            "feed-forward": GELU_TANH,
            "add-norm": ADD_NORM.replace("x + self.drop(sublayer_output)", "self.drop(x + sublayer_output)"),
        },
        lost={
            "feed-forward": "gelu-tanh",
            "add-norm": "dropout-on-the-sum",
            "encoder-block": "gelu-tanh-inside",
        },
        form=without_metadata,
    ),
    Student(
        "accepts any activation, takes the residual from the normalised tensor, forgets biases, errs in the quiz",
        {
            **RIGHT,
            "feed-forward": ACCEPTED,
            "encoder-block": FROM_NORMED,
            "block-cost": COST.replace(" + d_ff + d_model + 4", " + 4"),
            "quiz-block": QUIZ.replace('"d"', '"a"'),
        },
        lost={
            "feed-forward": "unknown-accepted",
            "encoder-block": "residual-from-normed",
            "block-cost": "no-feed-forward-biases",
            "quiz-block": "q3-a",
        },
    ),
    Student(
        "uses torch's norm where it must not, forgets the residual, swaps the orders, counts one head",
        {
            **RIGHT,
            "layer-norm": READY_MADE_NORM,
            "add-norm": ADD_NORM.replace("x + self.drop", "self.drop"),
            "encoder-block": SWAPPED,
            "block-cost": COST.replace("n_heads * length**2", "length**2"),
        },
        lost={
            "layer-norm": "ready-made-norm",
            "add-norm": "residual-missing",
            "encoder-block": "orders-swapped",
            "block-cost": "scores-of-one-head",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in EXERCISES[:3]},
        lost=dict.fromkeys(EXERCISES[3:], "unanswered"),
    ),
    Student(
        "leaves a bracket open in the cost's cell",
        {**RIGHT, "block-cost": COST.replace("    }", "    ")},
        lost={"block-cost": "not-defined"},
    ),
    Student(
        "returns a text for a tensor, and uses a name that does not exist",
        {
            **RIGHT,
            "add-norm": ADD_NORM.replace("self.norm(x + self.drop(sublayer_output))", '"added and normalised"'),
            "block-cost": COST.replace("n_heads * length**2", "heads * length**2"),
        },
        lost={"add-norm": None, "block-cost": None},
    ),
    Student(
        "ends the kernel in the cost",
        {**RIGHT, "block-cost": "import os\n\n\ndef block_cost(*sizes):\n    os._exit(1)"},
        lost={"block-cost": "not-reached", "quiz-block": "not-reached"},
        outcome=PARTLY,
        reason="the kernel died in the cell test-block-cost",
    ),
    Student(
        "loops without end in the cost",
        {**RIGHT, "block-cost": "def block_cost(*sizes):\n    while True:\n        pass"},
        lost={"block-cost": "timed-out"},
        outcome=PARTLY,
        reason="not judged: block-cost (timed-out)",
    ),
)
