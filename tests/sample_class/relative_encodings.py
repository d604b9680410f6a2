"""The sample class of lesson 06."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "06-relative-encodings"

EXERCISES = (
    "relative-distance",
    "t5-bucket",
    "t5-bias",
    "alibi-slopes",
    "alibi-bias",
    "relative-shift",
    "transformer-xl-scores",
    "deberta-scores",
    "quiz-relative",
)

# --- Right answers, in different styles -------------------------------------------------------------------------------

DISTANCE = """
def relative_distance(query_len, key_len):
    keys = torch.arange(key_len)
    queries = torch.arange(query_len) + (key_len - query_len)
    return keys[None, :] - queries[:, None]
"""
BUCKET = """
def t5_bucket(distance, bidirectional=True, n_buckets=32, max_distance=128):
    if bidirectional:
        n_buckets = n_buckets // 2
        offset = (distance > 0).long() * n_buckets
        steps = distance.abs()
    else:
        offset = 0
        steps = (-distance).clamp(min=0)
    exact = n_buckets // 2
    part = torch.log(steps.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = exact + (part * (n_buckets - exact)).long()
    far = far.clamp(max=n_buckets - 1)
    return offset + torch.where(steps < exact, steps, far)
"""
BIAS = """
class T5Bias(nn.Module):
    def __init__(self, n_heads, bidirectional=True, n_buckets=32, max_distance=128):
        super().__init__()
        self.bidirectional, self.n_buckets, self.max_distance = bidirectional, n_buckets, max_distance
        self.table = nn.Embedding(n_buckets, n_heads)

    def forward(self, query_len, key_len):
        distance = relative_distance(query_len, key_len).to(self.table.weight.device)
        bucket = t5_bucket(distance, self.bidirectional, self.n_buckets, self.max_distance)
        return self.table(bucket).permute(2, 0, 1)
"""
SLOPES = """
def alibi_slopes(n_heads):
    def series(n):
        return [2.0 ** (-8.0 * (h + 1) / n) for h in range(n)]

    power = 2 ** math.floor(math.log2(n_heads))
    return torch.tensor(series(power) + series(2 * power)[0::2][: n_heads - power])
"""
LINEAR = """
def alibi_bias(n_heads, query_len, key_len):
    distance = relative_distance(query_len, key_len).abs()
    return -alibi_slopes(n_heads)[:, None, None] * distance
"""
SHIFT = """
def relative_shift(scores):
    q, k = scores.shape[-2:]
    i = torch.arange(q, device=scores.device)[:, None]
    j = torch.arange(k, device=scores.device)[None, :]
    column = (j + q - 1 - i).clamp(max=k - 1)
    return scores.gather(-1, column.expand(scores.shape))
"""
XL = """
def transformer_xl_scores(query, key, relative, content_bias, position_bias):
    content = (query + content_bias[:, None]) @ key.transpose(-2, -1)
    position = (query + position_bias[:, None]) @ relative.transpose(-2, -1)
    scores = (content + relative_shift(position)) / math.sqrt(query.shape[-1])
    q, k = scores.shape[-2:]
    future = torch.ones(q, k, dtype=torch.bool, device=query.device).triu(k - q + 1)
    return scores.masked_fill(future, float("-inf"))
"""
DEBERTA = """
def deberta_scores(query, key, relative_query, relative_key, max_distance):
    batch, heads, n, d = query.shape
    place = torch.arange(n, device=query.device)
    delta = (place[:, None] - place[None, :] + max_distance).clamp(0, 2 * max_distance - 1)
    delta = delta.expand(batch, heads, n, n)
    content = query @ key.transpose(-2, -1)
    to = torch.gather(query @ relative_key.transpose(-2, -1), -1, delta)
    back = torch.gather(key @ relative_query.transpose(-2, -1), -1, delta).transpose(-2, -1)
    return (content + to + back) / math.sqrt(3 * d)
"""
QUIZ = """
q1 = "c"
q2 = "d"
q3 = "a"
q4 = "b"
q5 = "c"
"""
RIGHT = {
    "relative-distance": DISTANCE,
    "t5-bucket": BUCKET,
    "t5-bias": BIAS,
    "alibi-slopes": SLOPES,
    "alibi-bias": LINEAR,
    "relative-shift": SHIFT,
    "transformer-xl-scores": XL,
    "deberta-scores": DEBERTA,
    "quiz-relative": QUIZ,
}

AS_PUBLISHED = {
    "relative-distance": """
def relative_distance(query_len: int, key_len: int) -> torch.Tensor:
    position = torch.arange(key_len)
    return (position[None, :] - position[:, None])[key_len - query_len :]
""",
    "t5-bucket": """
def t5_bucket(distance, bidirectional=True, n_buckets=32, max_distance=128):
    result = torch.zeros_like(distance)
    if bidirectional:
        n_buckets //= 2
        result = result + (distance > 0).to(torch.long) * n_buckets
        n = torch.abs(distance)
    else:
        n = -torch.min(distance, torch.zeros_like(distance))
    exact = n_buckets // 2
    large = exact + (
        torch.log(n.float() / exact) / math.log(max_distance / exact) * (n_buckets - exact)
    ).to(torch.long)
    large = torch.min(large, torch.full_like(large, n_buckets - 1))
    return result + torch.where(n < exact, n, large)
""",
    "t5-bias": """
class T5Bias(nn.Module):
    def __init__(self, n_heads: int, bidirectional: bool = True, n_buckets: int = 32, max_distance: int = 128):
        super().__init__()
        self.rule = dict(bidirectional=bidirectional, n_buckets=n_buckets, max_distance=max_distance)
        self.table = nn.Embedding(n_buckets, n_heads)
        nn.init.normal_(self.table.weight, std=0.05)

    def forward(self, query_len: int, key_len: int) -> torch.Tensor:
        # the whole square, then the rows of the last queries
        bucket = t5_bucket(relative_distance(key_len, key_len), **self.rule)
        return self.table(bucket.to(self.table.weight.device)).movedim(-1, 0)[:, -query_len:]
""",
    "alibi-slopes": """
def alibi_slopes(n_heads: int) -> torch.Tensor:
    def numbers(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return numbers(closest) + numbers(2 * closest)[0::2][: n - closest]

    return torch.tensor(numbers(n_heads))
""",
    "alibi-bias": """
def alibi_bias(n_heads: int, query_len: int, key_len: int) -> torch.Tensor:
    distance = relative_distance(query_len, key_len)
    return alibi_slopes(n_heads).view(-1, 1, 1) * torch.minimum(distance, -distance)
""",
    "relative-shift": """
def relative_shift(scores: torch.Tensor) -> torch.Tensor:
    *front, q, k = scores.shape
    padded = torch.cat([torch.zeros_like(scores[..., :1]), scores], dim=-1)
    return padded.reshape(*front, k + 1, q)[..., 1:, :].reshape(scores.shape)
""",
    "transformer-xl-scores": """
def transformer_xl_scores(query, key, relative, content_bias, position_bias):
    heads, d = content_bias.shape
    a = query @ key.mT
    b = relative_shift(query @ relative.mT)
    c = (key @ content_bias.view(heads, d, 1)).mT
    e = relative_shift((relative @ position_bias[..., None]).mT.expand(a.shape))
    q, k = a.shape[-2:]
    row = torch.arange(k - q, k, device=a.device)[:, None]
    return torch.where(torch.arange(k, device=a.device) > row, -math.inf, (a + b + c + e) * d**-0.5)
""",
    "deberta-scores": """
def deberta_scores(query, key, relative_query, relative_key, max_distance):
    n, d = query.shape[-2:]
    i = torch.arange(n, device=query.device)
    delta = torch.clamp(i.unsqueeze(1) - i.unsqueeze(0) + max_distance, 0, 2 * max_distance - 1)
    content = torch.einsum("bhid,bhjd->bhij", query, key)
    to = torch.einsum("bhid,hijd->bhij", query, relative_key[:, delta])
    back = torch.einsum("bhjd,hijd->bhij", key, relative_query[:, delta.T])
    return (content + to + back) / (3 * d) ** 0.5
""",
    "quiz-relative": 'q1, q2, q3, q4, q5 = "c", "d", "a", "b", "c"',
}

LOOPS = {
    "relative-distance": """
def relative_distance(query_len, key_len):
    first = key_len - query_len
    return torch.tensor([[j - (first + i) for j in range(key_len)] for i in range(query_len)])
""",
    "t5-bucket": """
def t5_bucket(distance, bidirectional=True, n_buckets=32, max_distance=128):
    places = [bucket_of(d, bidirectional, n_buckets, max_distance) for d in distance.flatten().tolist()]
    return torch.tensor(places, device=distance.device).view(distance.shape)
""",
    "t5-bias": """
class T5Bias(nn.Module):
    def __init__(self, n_heads, bidirectional=True, n_buckets=32, max_distance=128):
        super().__init__()
        self.table = Table(n_buckets, n_heads)
        self.bidirectional, self.n_buckets, self.max_distance = bidirectional, n_buckets, max_distance

    def forward(self, query_len, key_len):
        bucket = t5_bucket(relative_distance(query_len, key_len), self.bidirectional, self.n_buckets, self.max_distance)
        return torch.stack([column[bucket] for column in self.table.weight.unbind(1)])
""",
    "alibi-slopes": """
def alibi_slopes(n_heads):
    power = 1
    while 2 * power <= n_heads:
        power *= 2
    slopes = torch.empty(n_heads)
    for head in range(n_heads):
        if head < power:
            slopes[head] = 2 ** (-8 * (head + 1) / power)
        else:
            slopes[head] = 2 ** (-4 * (2 * (head - power) + 1) / power)
    return slopes
""",
    "alibi-bias": """
def alibi_bias(n_heads, query_len, key_len):
    bias = torch.zeros(n_heads, query_len, key_len)
    for h, slope in enumerate(alibi_slopes(n_heads)):
        for i in range(query_len):
            for j in range(key_len):
                bias[h, i, j] = -slope * abs(i + key_len - query_len - j)
    return bias
""",
    "relative-shift": """
def relative_shift(scores):
    q = scores.shape[-2]
    return torch.stack([scores[..., i, :].roll(i + 1 - q, dims=-1) for i in range(q)], dim=-2)
""",
    "transformer-xl-scores": """
def transformer_xl_scores(query, key, relative, content_bias, position_bias):
    q, k, d = query.shape[2], key.shape[2], query.shape[3]
    scores = torch.full((*query.shape[:2], q, k), -math.inf, dtype=query.dtype, device=query.device)
    for i in range(q):
        for j in range(i + k - q + 1):
            row = relative[:, k - 1 - (i + k - q - j)]
            content = ((query[:, :, i] + content_bias) * key[:, :, j]).sum(-1)
            position = ((query[:, :, i] + position_bias) * row).sum(-1)
            scores[:, :, i, j] = (content + position) / math.sqrt(d)
    return scores
""",
    "deberta-scores": """
def deberta_scores(query, key, relative_query, relative_key, max_distance):
    n, d = query.shape[-2:]
    scores = torch.zeros(*query.shape[:2], n, n, dtype=query.dtype, device=query.device)
    for i in range(n):
        for j in range(n):
            there = min(max(i - j + max_distance, 0), 2 * max_distance - 1)
            back = min(max(j - i + max_distance, 0), 2 * max_distance - 1)
            q, k = query[:, :, i], key[:, :, j]
            scores[:, :, i, j] = (q * k + q * relative_key[:, there] + k * relative_query[:, back]).sum(-1)
    return scores / math.sqrt(3 * d)
""",
    "quiz-relative": 'q1, q2, q3, q4, q5 = list("cdabc")',
}
HELPER = """
def bucket_of(d, bidirectional, n_buckets, max_distance):
    half = n_buckets // 2 if bidirectional else n_buckets
    exact = half // 2
    start = half if bidirectional and d > 0 else 0
    steps = abs(d) if bidirectional else max(-d, 0)
    if steps < exact:
        return start + steps
    share = math.log(steps / exact) / math.log(max_distance / exact)
    return start + min(exact + int(share * (half - exact)), half - 1)
"""
TABLE = """
class Table(nn.Module):
    \"\"\"A table of my own.\"\"\"

    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, columns))
"""

NOISY = {
    **RIGHT,
    "relative-distance": """
import sys
import warnings


def relative_distance(query_len, key_len):
    print("distances", query_len, key_len, file=sys.stderr)
    line = torch.arange(1 - key_len, query_len)
    return line.unfold(0, key_len, 1).flip(0)
""",
    "t5-bucket": """
def t5_bucket(distance, bidirectional=True, n_buckets=32, max_distance=128):
    warnings.warn("32 buckets, one of them for nothing")
    half = n_buckets // 2 if bidirectional else n_buckets
    exact, steps = half // 2, distance.abs() if bidirectional else (-distance).clamp(min=0)
    edges = [exact * (max_distance / exact) ** (s / (half - exact)) for s in range(1, half - exact)]
    edges = torch.tensor(edges, dtype=torch.float64, device=distance.device)
    far = exact + torch.bucketize(steps.double(), edges, right=True)
    place = torch.where(steps < exact, steps, far)
    return place + half * (distance > 0) if bidirectional else place
""",
    "t5-bias": BIAS.replace(
        "return self.table(bucket).permute(2, 0, 1)",
        "return self.table.weight.T[:, bucket]  # heads are in front already",
    ),
    "alibi-slopes": """
def alibi_slopes(n_heads):
    above = 2 ** math.ceil(math.log2(n_heads))
    slopes = 1.0 / 2 ** (torch.arange(1, above + 1).float() * 8 / above)
    return slopes if above == n_heads else torch.cat([slopes[1::2], slopes[::2]])[:n_heads]
""",
    "alibi-bias": """
alibi_bias = lambda n_heads, query_len, key_len: torch.einsum(
    "h,qk->hqk", -alibi_slopes(n_heads), relative_distance(query_len, key_len).abs().float()
)
""",
    "relative-shift": """
def relative_shift(scores):
    warnings.warn("nobody looks at the future")
    q, k = scores.shape[-2:]
    result = torch.full_like(scores, math.nan)
    for i in range(q):
        n = i + k - q + 1
        result[..., i, :n] = scores[..., i, k - n :]
    return result
""",
    "quiz-relative": 'q1 = "C"\nq2 = " d"\nq3 = "a"\nq4 = "B "\nq5 = "c"',
}

# --- Wrong answers ----------------------------------------------------------------------------------------------------

PLAIN_SLOPES = """
def alibi_slopes(n_heads):
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads)
"""
OF_BLOOM = """
def alibi_bias(n_heads, query_len, key_len):
    alibi = alibi_slopes(n_heads)[:, None] * torch.arange(key_len)
    return alibi[:, None, :].expand(n_heads, query_len, key_len)
"""
LINEAR_BUCKETS = BUCKET.replace("return offset + torch.where(steps < exact, steps, far)", "").rstrip() + (
    "\n    return offset + steps.clamp(max=n_buckets - 1)\n"
)

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, as the published codes write it; saved without cell ids", AS_PUBLISHED, form=without_ids),
    Student(
        "right, with loops over pairs, a helper and a table of its own; saved with a byte order mark",
        LOOPS,
        own_cells={"t5-bucket": HELPER, "t5-bias": TABLE},
        form=with_mark,
    ),
    Student(
        "right, with other ways, nan in the future, warnings and lines on stderr; from a notebook service",
        NOISY,
        form=from_colab,
    ),
    Student(
        "counts queries from 0, which both biases inherit; and divides by the root of one term",
        {
            **RIGHT,
            "relative-distance": DISTANCE.replace(" + (key_len - query_len)", ""),
            "deberta-scores": DEBERTA.replace("3 * d", "d"),
        },
        lost={
            "relative-distance": "queries-from-zero",
            "t5-bias": "queries-from-zero",
            "alibi-bias": "queries-from-zero",
            "deberta-scores": "scale-of-one-term",
        },
    ),
    Student(
        "follows the library's order in DeBERTa, and BLOOM's bias; the file has no metadata",
        {
            **RIGHT,
            "alibi-bias": OF_BLOOM,
            "deberta-scores": DEBERTA.replace("-1, delta).transpose(-2, -1)", "-1, delta.mT).transpose(-2, -1)"),
        },
        lost={"alibi-bias": "number-of-the-key", "deberta-scores": "index-order-of-the-code"},
        form=without_metadata,
    ),
    Student(
        "turns the direction of the buckets, which the bias inherits; does not shift, nor look at the future",
        {
            **RIGHT,
            "t5-bucket": BUCKET.replace("(distance > 0)", "(distance < 0)"),
            "relative-shift": "def relative_shift(scores):\n    return scores.clone()",
            "transformer-xl-scores": XL.replace('float("-inf")', "-1e9"),
        },
        lost={
            "t5-bucket": "direction-swapped",
            "t5-bias": "direction-swapped",
            "relative-shift": "not-shifted",
            "transformer-xl-scores": "not-shifted",
        },
    ),
    Student(
        "has no logarithm, the plain formula for all slopes, swaps two biases, and errs in the quiz",
        {
            **RIGHT,
            "t5-bucket": LINEAR_BUCKETS,
            "alibi-slopes": PLAIN_SLOPES,
            "transformer-xl-scores": XL.replace("position_bias[", "u[")
            .replace("content_bias[", "position_bias[")
            .replace("u[", "content_bias["),
            "quiz-relative": QUIZ.replace('q3 = "a"', 'q3 = "b"').replace('q5 = "c"', 'q5 = "b"'),
        },
        lost={
            "t5-bucket": "no-logarithm",
            "t5-bias": "no-logarithm",
            "alibi-slopes": "plain-formula-for-every-number",
            "alibi-bias": "plain-formula-for-every-number",
            "transformer-xl-scores": "biases-swapped",
            "quiz-relative": "q3-b",
        },
    ),
    Student(
        "forgets the last bucket, leaves heads last, favours far keys, masks without a device, and forgets to clamp",
        {
            **RIGHT,
            "t5-bucket": BUCKET.replace("    far = far.clamp(max=n_buckets - 1)\n", ""),
            "t5-bias": BIAS.replace(".permute(2, 0, 1)", ""),
            "alibi-bias": LINEAR.replace("-alibi_slopes", "alibi_slopes"),
            "transformer-xl-scores": XL.replace(", device=query.device", ""),
            "deberta-scores": DEBERTA.replace(".clamp(0, 2 * max_distance - 1)", ""),
        },
        lost={
            "t5-bucket": "last-bucket-not-kept",
            "t5-bias": "heads-left-last",
            "alibi-bias": "sign-of-the-bias",
            "transformer-xl-scores": "mask-made-on-the-cpu",
            "deberta-scores": "distances-not-clamped",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in EXERCISES[:5]},
        lost=dict.fromkeys(EXERCISES[5:], "unanswered"),
    ),
    Student(
        "leaves a parenthesis open in DeBERTa's cell",
        {**RIGHT, "deberta-scores": DEBERTA.replace("math.sqrt(3 * d)", "math.sqrt(3 * d")},
        lost={"deberta-scores": "not-defined"},
    ),
    Student(
        "calls a tensor method that does not exist, and returns a text for a tensor",
        {
            **RIGHT,
            "alibi-bias": 'def alibi_bias(n_heads, query_len, key_len):\n    return "linear"',
            "deberta-scores": DEBERTA.replace("delta.expand", "delta.enlarge"),
        },
        lost={"alibi-bias": None, "deberta-scores": None},
    ),
    Student(
        "ends the kernel in Transformer-XL's scores",
        {
            **RIGHT,
            "transformer-xl-scores": XL.replace("    content =", "    import os\n\n    os._exit(1)\n    content ="),
        },
        lost={"transformer-xl-scores": "not-reached", "deberta-scores": "not-reached", "quiz-relative": "not-reached"},
        outcome=PARTLY,
        reason="the kernel died in the cell test-transformer-xl-scores",
    ),
    Student(
        "loops without end in the shift",
        {
            **RIGHT,
            "relative-shift": "def relative_shift(scores):\n    while True:\n        pass",
            "transformer-xl-scores": LOOPS["transformer-xl-scores"],
        },
        lost={"relative-shift": "timed-out"},
        outcome=PARTLY,
        reason="not judged: relative-shift (timed-out)",
    ),
)
