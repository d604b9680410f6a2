"""The sample class of lesson 01."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "01-why-order-matters"

EXERCISES = ("attention", "causal-mask", "permutation-gap", "sentence-vector", "naive-positions", "quiz-order")

# --- Right answers, in different styles -------------------------------------------------------------------------------

ATTENTION = """
def attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == False, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = torch.nan_to_num(weights, nan=0.0)  # rows where everything is blocked
    return torch.matmul(weights, value), weights
"""
CAUSAL = """
def causal_mask(length, device=None):
    positions = torch.arange(length, device=device)
    return positions[None, :] <= positions[:, None]
"""
GAP = """
def permutation_gap(layer, x, permutation):
    a = layer(x[:, permutation])
    b = layer(x)[:, permutation]
    return float(torch.max(torch.abs(a - b)))
"""
VECTOR = """
def sentence_vector(x):
    return attention(x, x, x)[0].mean(0)
"""
NAIVE = """
def add_integer_positions(x):
    t = torch.arange(x.shape[1], device=x.device).to(x.dtype)
    return x + t.unsqueeze(-1)


def add_fraction_positions(x):
    n = x.shape[1]
    if n == 1:
        return x.clone()
    t = torch.arange(n, device=x.device).to(x.dtype) / (n - 1)
    return x + t.unsqueeze(-1)
"""
QUIZ = """
q1 = "c"
q2 = "b"
q3 = "a"
q4 = "d"
q5 = "b"
"""
RIGHT = {
    "attention": ATTENTION,
    "causal-mask": CAUSAL,
    "permutation-gap": GAP,
    "sentence-vector": VECTOR,
    "naive-positions": NAIVE,
    "quiz-order": QUIZ,
}

EINSUM = {
    "attention": """
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask=None):
    d = query.shape[-1]
    scores = torch.einsum("...qd,...kd->...qk", query * d**-0.5, key)
    if mask is None:
        weights = F.softmax(scores, -1)
    else:
        weights = F.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), -1)
        weights = torch.where(mask, weights, 0)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights
""",
    "causal-mask": """
def causal_mask(length, device=None):
    return ~torch.triu(torch.ones((length, length), device=device), diagonal=1).bool()
""",
    "permutation-gap": """
def permutation_gap(layer, x, permutation):
    shuffled = torch.index_select(x, 1, permutation)
    difference = layer(shuffled) - torch.index_select(layer(x), 1, permutation)
    return torch.linalg.vector_norm(difference, ord=math.inf).item()
""",
    "sentence-vector": """
def sentence_vector(x):
    out, _ = attention(x, x, x)
    return torch.einsum("ld->d", out) / len(x)
""",
    "naive-positions": """
def add_integer_positions(x):
    batch, length, d_model = x.shape
    return x + torch.arange(length, device=x.device).view(1, length, 1).expand(batch, length, d_model)


def add_fraction_positions(x):
    batch, length, d_model = x.shape
    steps = torch.linspace(0, 1, length, device=x.device).to(x.dtype)
    return x + steps.view(1, length, 1)
""",
    "quiz-order": 'q1, q2, q3, q4, q5 = "c", "b", "a", "d", "b"',
}

STEP_BY_STEP = {
    "attention": """
def attention(query, key, value, mask=None):
    # exponentials by hand: the largest score is subtracted first, blocked ones count as nothing
    scores = query @ key.mT / query.shape[-1] ** 0.5
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    if mask is not None:
        exponentials = exponentials * mask
    total = exponentials.sum(dim=-1, keepdim=True)
    weights = exponentials / torch.where(total == 0, torch.ones_like(total), total)
    return weights @ value, weights
""",
    "causal-mask": """
def causal_mask(length, device=None):
    rows = []
    for t in range(length):
        rows.append([s <= t for s in range(length)])
    return torch.tensor(rows, dtype=torch.bool, device=device)
""",
    "permutation-gap": """
def permutation_gap(layer, x, permutation):
    first, then = layer(x[:, permutation]), layer(x)[:, permutation]
    largest = 0.0
    for difference in (first - then).flatten().tolist():
        if abs(difference) > largest:
            largest = abs(difference)
    return largest
""",
    "sentence-vector": """
def sentence_vector(x):
    output, weights = attention(x[None], x[None], x[None])
    total = torch.zeros_like(x[0])
    for row in output[0]:
        total = total + row
    return total / x.shape[0]
""",
    "naive-positions": """
def add_integer_positions(x):
    result = x.clone()
    for t in range(x.shape[1]):
        result[:, t] += t
    return result


def add_fraction_positions(x):
    result = x.clone()
    for t in range(x.shape[1]):
        if x.shape[1] > 1:
            result[:, t] += t / (x.shape[1] - 1)
    return result
""",
    "quiz-order": 'answers = "cbadb"\nq1, q2, q3, q4, q5 = answers',
}

NOISY = {
    "attention": """
import sys
import warnings


def attention(query, key, value, mask=None):
    warnings.warn("softmax over a masked row may give nan")
    print("scores", query.shape, key.shape, file=sys.stderr)
    return weigh(score(query, key), value, mask)
""",
    "causal-mask": "causal_mask = lambda length, device=None: torch.ones(length, length, device=device).tril().bool()",
    "permutation-gap": """
def permutation_gap(layer, x, permutation):
    print("gap of", layer, file=sys.stderr)
    with torch.no_grad():
        return (layer(x)[:, permutation] - layer(x[:, permutation])).abs().amax(dim=(0, 1, 2)).item()
""",
    "sentence-vector": """
class Reader:
    def __call__(self, x):
        return attention(query=x, key=x, value=x)[0].sum(dim=-2) / x.shape[-2]


sentence_vector = Reader()
""",
    "naive-positions": """
def _add(x, positions):
    return (x.transpose(1, 2) + positions.to(x.dtype)).transpose(1, 2)


def add_integer_positions(x):
    return _add(x, torch.arange(x.size(1), device=x.device))


def add_fraction_positions(x):
    warnings.warn("length 1 is a special case")
    return _add(x, torch.arange(x.size(1), device=x.device) / max(x.size(1) - 1, 1))
""",
    "quiz-order": 'q1 = "C"\nq2 = " b"\nq3 = "a"\nq4 = "D "\nq5 = "b"',
}
HELPERS = """
# my helpers
def score(query, key):
    return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])


def weigh(scores, value, mask):
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(mask.logical_not(), -math.inf).softmax(-1).nan_to_num()
    return weights @ value, weights
"""

# --- Wrong answers ----------------------------------------------------------------------------------------------------

UNSCALED = """
def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ value, weights
"""
WRONG_AXIS = """
def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(F.softmax(scores, dim=-2))
    return weights @ value, weights
"""
IN_PLACE = """
def add_integer_positions(x):
    x += torch.arange(x.shape[1], device=x.device)[:, None]
    return x


def add_fraction_positions(x):
    x += (torch.arange(x.shape[1], device=x.device) / max(x.shape[1] - 1, 1))[:, None]
    return x
"""
MASK_INVERTED = """
def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)  # True = blocked, as in nn.MultiheadAttention
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ value, weights
"""
CAUSAL_INVERTED = """
def causal_mask(length, device=None):
    return torch.triu(torch.ones(length, length, device=device), diagonal=1).bool()
"""
NAN_ROWS = """
def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights
"""
NAN_FRACTION = """
def add_integer_positions(x):
    return x + torch.arange(x.shape[1], device=x.device)[:, None]


def add_fraction_positions(x):
    steps = torch.arange(x.shape[1], device=x.device) / (x.shape[1] - 1)
    return x + steps[:, None].to(x.dtype)
"""
STRICT = """
def causal_mask(length, device=None):
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(diagonal=-1)
"""
ONE_SIDE = """
def permutation_gap(layer, x, permutation):
    return (layer(x[:, permutation]) - layer(x)).abs().max().item()
"""
FROM_ONE = """
def add_integer_positions(x):
    return x + torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]


def add_fraction_positions(x):
    length = x.shape[1]
    return x + (torch.arange(length, device=x.device) / max(length - 1, 1)).to(x.dtype)[:, None]
"""

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, with einsum and where; saved without cell ids", EINSUM, form=without_ids),
    Student("right, step by step with loops; saved with a byte order mark", STEP_BY_STEP, form=with_mark),
    Student(
        "right, with helpers in a cell of its own, warnings and lines on stderr; saved by a notebook service",
        NOISY,
        own_cells={"attention": HELPERS},
        form=from_colab,
    ),
    Student(
        "forgets to scale; the sentence vector inherits it",
        {**RIGHT, "attention": UNSCALED},
        lost={"attention": "unscaled", "sentence-vector": "unscaled"},
    ),
    Student(
        "softmax over the wrong axis, and positions added in place",
        {**RIGHT, "attention": WRONG_AXIS, "naive-positions": IN_PLACE},
        lost={"attention": "softmax-over-queries", "sentence-vector": "plain-mean", "naive-positions": "x-changed"},
    ),
    Student(
        "takes True for blocked, twice, so that the two cancel in the figures; the file has no metadata",
        {**RIGHT, "attention": MASK_INVERTED, "causal-mask": CAUSAL_INVERTED},
        lost={"attention": "mask-inverted", "causal-mask": "inverted"},
        form=without_metadata,
    ),
    Student(
        "forgets blocked rows and texts of one word, and errs in the quiz",
        {**RIGHT, "attention": NAN_ROWS, "naive-positions": NAN_FRACTION, "quiz-order": QUIZ.replace('"c"', '"a"')},
        lost={"attention": "nan-rows", "naive-positions": "single-position-nan", "quiz-order": "q1-a"},
    ),
    Student(
        "off by one in the mask and in the positions; permutes one side only",
        {**RIGHT, "causal-mask": STRICT, "permutation-gap": ONE_SIDE, "naive-positions": FROM_ONE},
        lost={
            "causal-mask": "strict-triangle",
            "permutation-gap": "output-not-permuted",
            "naive-positions": "integer-from-one",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in ("attention", "permutation-gap", "sentence-vector")},
        lost={"causal-mask": "unanswered", "naive-positions": "unanswered", "quiz-order": "unanswered"},
    ),
    Student(
        "leaves out a parenthesis in the mask's cell",
        {**RIGHT, "causal-mask": CAUSAL.replace("[:, None]", "[:, None")},
        lost={"causal-mask": "not-defined"},
    ),
    Student(
        "calls a tensor method that does not exist, and returns a text for a mask",
        {
            **RIGHT,
            "permutation-gap": GAP.replace("torch.abs(a - b)", "(a - b).absolute_value()"),
            "causal-mask": 'def causal_mask(length, device=None):\n    return "lower triangle"',
        },
        lost={"permutation-gap": None, "causal-mask": None},
    ),
    Student(
        "ends the kernel in the last exercise but one",
        {**RIGHT, "naive-positions": NAIVE.replace("    n = x.shape[1]", "    import os\n\n    os._exit(1)")},
        lost={"naive-positions": "not-reached", "quiz-order": "not-reached"},
        outcome=PARTLY,
        reason="the kernel died in the cell test-naive-positions",
    ),
    Student(
        "loops without end in the sentence vector",
        {**RIGHT, "sentence-vector": "def sentence_vector(x):\n    while len(x) > 0:\n        x = x + 0"},
        lost={"sentence-vector": "timed-out"},
        outcome=PARTLY,
        reason="not judged: sentence-vector (timed-out)",
    ),
)
