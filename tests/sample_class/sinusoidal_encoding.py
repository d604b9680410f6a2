"""The sample class of lesson 02."""

from __future__ import annotations

from tests.sample_class.student import PARTLY, Student, from_colab, with_mark, without_ids, without_metadata

ASSIGNMENT = "02-sinusoidal-encoding"

EXERCISES = (
    "pair-frequencies",
    "encode-position",
    "sinusoidal-encoding",
    "wavelengths",
    "shift-matrix",
    "position-similarity",
    "quiz-sinusoidal",
)

# --- Right answers, in different styles -------------------------------------------------------------------------------

FREQUENCIES = """
def pair_frequencies(d_model, base=10000.0):
    if d_model < 2 or d_model % 2 != 0:
        raise ValueError(f"d_model must be even and at least 2, got d_model = {d_model}")
    i = torch.arange(d_model // 2, dtype=torch.float64)
    return 1.0 / base ** (2 * i / d_model)
"""
ENCODE = """
def encode_position(position, d_model, base=10000.0):
    angles = position * pair_frequencies(d_model, base)
    row = torch.zeros(d_model)
    row[0::2] = torch.sin(angles)
    row[1::2] = torch.cos(angles)
    return row
"""
TABLE = """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    positions = torch.arange(n_positions, dtype=torch.float64)
    angles = positions[:, None] * pair_frequencies(d_model, base)[None, :]
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table.to(dtype).to(device)
"""
WAVES = """
def wavelengths(d_model, base=10000.0):
    return 2 * math.pi / pair_frequencies(d_model, base)
"""
SHIFT = """
def shift_matrix(offset, d_model, base=10000.0):
    angles = offset * pair_frequencies(d_model, base)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        c, s = torch.cos(angles[i]), torch.sin(angles[i])
        matrix[2 * i, 2 * i] = c
        matrix[2 * i, 2 * i + 1] = s
        matrix[2 * i + 1, 2 * i] = -s
        matrix[2 * i + 1, 2 * i + 1] = c
    return matrix
"""
SIMILARITY = """
def position_similarity(encoding):
    return encoding @ encoding.T
"""
QUIZ = """
q1 = "c"
q2 = "b"
q3 = "b"
q4 = "d"
q5 = "a"
"""
RIGHT = {
    "pair-frequencies": FREQUENCIES,
    "encode-position": ENCODE,
    "sinusoidal-encoding": TABLE,
    "wavelengths": WAVES,
    "shift-matrix": SHIFT,
    "position-similarity": SIMILARITY,
    "quiz-sinusoidal": QUIZ,
}

LOGARITHMS = {
    "pair-frequencies": """
def pair_frequencies(d_model: int, base: float = 10000.0) -> torch.Tensor:
    if d_model % 2 == 1 or d_model <= 0:
        raise ValueError("bad d_model: " + str(d_model))
    columns = torch.arange(0, d_model, 2).double()
    return torch.exp(columns * (-math.log(base) / d_model))
""",
    "encode-position": """
def encode_position(position, d_model, base=10000.0):
    angle = pair_frequencies(d_model, base) * position
    return torch.cat([angle.sin()[:, None], angle.cos()[:, None]], dim=1).reshape(-1).to(torch.float32)
""",
    "sinusoidal-encoding": """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    angle = torch.einsum("p,i->pi", torch.arange(n_positions).double(), pair_frequencies(d_model, base))
    both = torch.stack((angle.sin(), angle.cos()), dim=2)
    return both.reshape(n_positions, d_model).to(device=device, dtype=dtype)
""",
    "wavelengths": """
def wavelengths(d_model, base=10000.0):
    return torch.tensor([2 * math.pi / f for f in pair_frequencies(d_model, base).tolist()], dtype=torch.float64)
""",
    "shift-matrix": """
def shift_matrix(offset, d_model, base=10000.0):
    blocks = []
    for a in (offset * pair_frequencies(d_model, base)).tolist():
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]], dtype=torch.float64))
    return torch.block_diag(*blocks)
""",
    "position-similarity": """
def position_similarity(encoding):
    return torch.einsum("ad,bd->ab", encoding, encoding)
""",
    "quiz-sinusoidal": 'q1, q2, q3, q4, q5 = "c", "b", "b", "d", "a"',
}

COMPLEX = {
    "pair-frequencies": """
def pair_frequencies(d_model, base=10000.0):
    check_width(d_model)
    ratio = base ** (-2 / d_model)
    return torch.tensor([ratio**i for i in range(d_model // 2)], dtype=torch.float64)
""",
    "encode-position": """
def encode_position(position, d_model, base=10000.0):
    turns = torch.exp(1j * position * pair_frequencies(d_model, base))  # cos + i sin
    return torch.view_as_real(turns).flip(-1).reshape(d_model).float()
""",
    "sinusoidal-encoding": """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    frequencies = pair_frequencies(d_model, base)
    angles = torch.arange(n_positions, dtype=torch.float64).outer(frequencies)
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turns).flip(-1).flatten(1).to(dtype=dtype, device=device)
""",
    "wavelengths": """
def wavelengths(d_model, base=10000.0):
    return pair_frequencies(d_model, base).reciprocal().mul(math.tau)
""",
    "shift-matrix": """
def shift_matrix(offset, d_model, base=10000.0):
    # cosines on the diagonal, sines beside it
    frequencies = pair_frequencies(d_model, base)
    matrix = torch.diag(torch.cos(offset * frequencies).repeat_interleave(2))
    beside = torch.zeros(d_model - 1, dtype=torch.float64)
    beside[0::2] = torch.sin(offset * frequencies)
    return matrix + torch.diag(beside, 1) - torch.diag(beside, -1)
""",
    "position-similarity": """
def position_similarity(encoding):
    return torch.stack([(encoding * row).sum(dim=1) for row in encoding])
""",
    "quiz-sinusoidal": 'q1, q2, q3, q4, q5 = list("cbbda")',
}
CHECK_WIDTH = """
def check_width(d_model):
    if d_model not in range(2, 10**9, 2):
        raise ValueError(f"d_model={d_model!r}: expected an even number, 2 or more")
"""

NUMPY = {
    "pair-frequencies": """
import sys
import warnings

import numpy as np


def pair_frequencies(d_model, base=10000.0):
    warnings.warn("float64 everywhere")
    print("frequencies for", d_model, file=sys.stderr)
    if d_model < 2 or d_model & 1:
        raise ValueError("d_model is %d" % d_model)
    return torch.from_numpy(np.power(base, -np.arange(0, d_model, 2) / d_model))
""",
    "encode-position": """
def encode_position(position, d_model, base=10000.0):
    phase = torch.tensor([0.0, math.pi / 2], dtype=torch.float64)  # cos(a) = sin(a + pi / 2)
    return torch.sin((position * pair_frequencies(d_model, base))[:, None] + phase).flatten().float()
""",
    "sinusoidal-encoding": """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    angles = np.outer(np.arange(n_positions), pair_frequencies(d_model, base).numpy())
    table = np.empty((n_positions, d_model))
    table[:, ::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return torch.from_numpy(table).to(dtype).to(device or "cpu")
""",
    "wavelengths": """
def wavelengths(d_model, base=10000.0):
    check = pair_frequencies(d_model, base)
    return 2 * math.pi * base ** (torch.arange(len(check), dtype=torch.float64) * 2 / d_model)
""",
    "shift-matrix": """
def shift_matrix(offset, d_model, base=10000.0):
    a = offset * pair_frequencies(d_model, base)
    blocks = torch.stack([torch.stack([a.cos(), a.sin()], -1), torch.stack([-a.sin(), a.cos()], -1)], -2)
    m = torch.zeros(d_model // 2, 2, d_model // 2, 2, dtype=torch.float64)
    i = torch.arange(d_model // 2)
    m[i, :, i, :] = blocks
    return m.reshape(d_model, d_model)
""",
    "position-similarity": """
def position_similarity(encoding):
    print(encoding.shape, file=sys.stderr)
    return torch.nn.functional.linear(encoding, encoding)
""",
    "quiz-sinusoidal": QUIZ.upper().replace("Q", "q"),
}

# --- Wrong answers ----------------------------------------------------------------------------------------------------

COLUMN_INDEX = """
def pair_frequencies(d_model, base=10000.0):
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, got {d_model}")
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    return base ** (-2 * i / d_model)
"""
OWN_EXPONENT_ROW = """
def encode_position(position, d_model, base=10000.0):
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, got {d_model}")
    row = torch.zeros(d_model)
    for column in range(d_model):
        angle = position / base ** (column / d_model)
        row[column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return row
"""
OWN_EXPONENT_TABLE = """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, got {d_model}")
    positions = torch.arange(n_positions, dtype=torch.float64)[:, None]
    columns = torch.arange(d_model, dtype=torch.float64)
    angles = positions / base ** (columns / d_model)
    table = torch.empty(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = angles[:, 0::2].sin()
    table[:, 1::2] = angles[:, 1::2].cos()
    return table.to(device=device, dtype=dtype)
"""
HALVES_ROW = """
def encode_position(position, d_model, base=10000.0):
    angles = position * pair_frequencies(d_model, base)
    return torch.cat([angles.sin(), angles.cos()]).float()
"""
HALVES_TABLE = """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    angles = torch.outer(torch.arange(n_positions, dtype=torch.float64), pair_frequencies(d_model, base))
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(device=device, dtype=dtype)
"""
COSINES = """
def position_similarity(encoding):
    unit = encoding / encoding.norm(dim=1, keepdim=True)
    return unit @ unit.T
"""
UNCHECKED = """
def pair_frequencies(d_model, base=10000.0):
    i = torch.arange(d_model // 2, dtype=torch.float64)
    return base ** (-2 * i / d_model)
"""
BACKWARDS = """
def shift_matrix(offset, d_model, base=10000.0):
    angles = offset * pair_frequencies(d_model, base)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i, a in enumerate(angles.tolist()):
        rotation = [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(rotation)
    return matrix
"""
BFLOAT_POSITIONS = """
def sinusoidal_encoding(n_positions, d_model, base=10000.0, device=None, dtype=torch.float32):
    positions = torch.arange(n_positions, dtype=dtype)
    angles = positions[:, None].float() * pair_frequencies(d_model, base).float()
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(device=device, dtype=dtype)
"""
ROW_WITH_ITSELF = """
def position_similarity(encoding):
    return (encoding * encoding).sum(dim=-1)
"""

STUDENTS = (
    Student("right, as in a textbook", RIGHT),
    Student("right, with logarithms, einsum and block_diag; saved without cell ids", LOGARITHMS, form=without_ids),
    Student(
        "right, with complex numbers and a helper of its own; saved with a byte order mark",
        COMPLEX,
        own_cells={"pair-frequencies": CHECK_WIDTH},
        form=with_mark,
    ),
    Student(
        "right, with NumPy and a phase instead of a cosine, warnings and lines on stderr; from a notebook service",
        NUMPY,
        form=from_colab,
    ),
    Student(
        "takes the column number for the pair number; everything built on it inherits the mistake",
        {**RIGHT, "pair-frequencies": COLUMN_INDEX},
        lost=dict.fromkeys(EXERCISES[:5], "column-index-as-pair-index"),
    ),
    Student(
        "gives the cosine an exponent of its own",
        {**RIGHT, "encode-position": OWN_EXPONENT_ROW, "sinusoidal-encoding": OWN_EXPONENT_TABLE},
        lost=dict.fromkeys(("encode-position", "sinusoidal-encoding"), "cosine-with-its-own-exponent"),
    ),
    Student(
        "puts sines and cosines in halves, and normalises the similarity; the file has no metadata",
        {
            **RIGHT,
            "encode-position": HALVES_ROW,
            "sinusoidal-encoding": HALVES_TABLE,
            "position-similarity": COSINES,
        },
        lost={
            "encode-position": "halves-instead-of-neighbours",
            "sinusoidal-encoding": "halves-instead-of-neighbours",
            "position-similarity": "cosine-similarity",
        },
        form=without_metadata,
    ),
    Student(
        "does not check the width, counts radians for turns, and shifts backwards",
        {
            **RIGHT,
            "pair-frequencies": UNCHECKED,
            "wavelengths": WAVES.replace("2 * math.pi", "1"),
            "shift-matrix": BACKWARDS,
        },
        lost={
            "pair-frequencies": "width-not-checked",
            "encode-position": "width-not-checked",
            "sinusoidal-encoding": "width-not-checked",
            "wavelengths": "radian-instead-of-turn",
            "shift-matrix": "turns-the-wrong-way",
        },
    ),
    Student(
        "counts positions in the dtype asked for, compares rows with themselves only, and errs in the quiz",
        {
            **RIGHT,
            "sinusoidal-encoding": BFLOAT_POSITIONS,
            "position-similarity": ROW_WITH_ITSELF,
            "quiz-sinusoidal": QUIZ.replace('"d"', '"c"'),
        },
        lost={
            "sinusoidal-encoding": "positions-in-half-precision",
            "position-similarity": "each-row-with-itself",
            "quiz-sinusoidal": "q4-c",
        },
    ),
    Student(
        "hands in the released notebook as it is",
        lost=dict.fromkeys(EXERCISES, "unanswered"),
    ),
    Student(
        "answers the first half",
        {name: RIGHT[name] for name in EXERCISES[:3]},
        lost={
            "wavelengths": "unanswered",
            "shift-matrix": "unanswered",
            "position-similarity": "unanswered",
            "quiz-sinusoidal": "unanswered",
        },
    ),
    Student(
        "indents a line wrongly in the wavelengths' cell",
        {**RIGHT, "wavelengths": WAVES.replace("    return", "  x = 1\n    return")},
        lost={"wavelengths": "not-defined"},
    ),
    Student(
        "uses a name that does not exist, and returns a text for numbers",
        {
            **RIGHT,
            "wavelengths": WAVES.replace("math.pi", "pi"),
            "position-similarity": 'def position_similarity(encoding):\n    return "high near the diagonal"',
        },
        lost={"wavelengths": None, "position-similarity": None},
    ),
    Student(
        "reads memory at address 0 in the shift matrix, which ends the kernel",
        {**RIGHT, "shift-matrix": "import ctypes\n\n\ndef shift_matrix(*arguments):\n    return ctypes.string_at(0)"},
        lost=dict.fromkeys(("shift-matrix", "position-similarity", "quiz-sinusoidal"), "not-reached"),
        outcome=PARTLY,
        reason="the kernel died in the cell test-shift-matrix",
    ),
    Student(
        "loops without end in the similarity",
        {**RIGHT, "position-similarity": "def position_similarity(encoding):\n    while True:\n        pass"},
        lost={"position-similarity": "timed-out"},
        outcome=PARTLY,
        reason="not judged: position-similarity (timed-out)",
    ),
)
