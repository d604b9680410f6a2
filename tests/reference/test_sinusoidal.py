"""The sinusoidal reference against independent oracles: 50-digit arithmetic, published numbers, the shift identity."""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext

import pytest
import torch

from autograder.reference.sinusoidal import (
    encode_position,
    pair_frequencies,
    position_similarity,
    shift_matrix,
    sinusoidal_encoding,
    wavelengths,
)

SIZES = [(7, 4, 10000.0), (5, 12, 10000.0), (9, 6, 57.5), (4, 2, 10000.0), (3, 10, 250000.0)]

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def taylor(x: Decimal, start: int) -> Decimal:
    """Sine (start 1) or cosine (start 0) by its power series, after taking full turns away."""
    x %= 2 * PI
    term = total = x if start else Decimal(1)
    n = start
    while abs(term) > Decimal("1e-45"):
        term *= -x * x / ((n + 1) * (n + 2))
        n += 2
        total += term
    return total


@functools.cache
def exact(p: int, column: int, d_model: int, base: float) -> float:
    """One entry of the encoding, straight from the formula of the paper, in 60-digit decimal arithmetic."""
    with localcontext(prec=60):
        angle = Decimal(p) / Decimal(base) ** (Decimal(2 * (column // 2)) / Decimal(d_model))
        return float(taylor(angle, 1 - column % 2))


def exact_table(n_positions: int, d_model: int, base: float, first: int = 0) -> torch.Tensor:
    rows = [[exact(p, c, d_model, base) for c in range(d_model)] for p in range(first, first + n_positions)]
    return torch.tensor(rows, dtype=torch.float64)


def test_the_oracle_agrees_with_the_math_library() -> None:
    for x in (0.0, 0.5, 3.0, 100.0, 4711.0):
        with localcontext(prec=60):
            assert float(taylor(Decimal(x), 1)) == pytest.approx(math.sin(x), abs=1e-15)
            assert float(taylor(Decimal(x), 0)) == pytest.approx(math.cos(x), abs=1e-15)


@pytest.mark.parametrize(("n_positions", "d_model", "base"), SIZES)
def test_the_table_is_the_formula_in_float64(n_positions: int, d_model: int, base: float) -> None:
    found = sinusoidal_encoding(n_positions, d_model, base, dtype=torch.float64)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, exact_table(n_positions, d_model, base), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("n_positions", "d_model", "base"), SIZES)
def test_other_dtypes_are_the_exact_value_rounded_once(
    n_positions: int, d_model: int, base: float, dtype: torch.dtype
) -> None:
    found = sinusoidal_encoding(n_positions, d_model, base, dtype=dtype)
    wanted = exact_table(n_positions, d_model, base)
    assert found.dtype == dtype
    half_unit = torch.finfo(dtype).eps / 2 * wanted.abs() + torch.finfo(dtype).smallest_normal
    assert bool(((found.double() - wanted).abs() <= 1.001 * half_unit).all())


def test_the_default_is_float32_on_the_cpu() -> None:
    found = sinusoidal_encoding(5, 8)
    assert (found.shape, found.dtype, found.device.type) == ((5, 8), torch.float32, "cpu")


def test_positions_past_4096_are_as_exact_as_the_first() -> None:
    table = sinusoidal_encoding(5003, 6, dtype=torch.float64)
    for first in (4097, 4711, 5000):
        torch.testing.assert_close(table[first : first + 3], exact_table(3, 6, 10000.0, first), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("position", "d_model", "base"), [(0, 4, 1e4), (3, 6, 1e4), (4711, 10, 1e4), (61, 8, 99.0)])
def test_one_position_is_the_formula_in_float32(position: int, d_model: int, base: float) -> None:
    found = encode_position(position, d_model, base)
    assert (found.shape, found.dtype) == ((d_model,), torch.float32)
    torch.testing.assert_close(found.double(), exact_table(1, d_model, base, position)[0], rtol=0, atol=6e-8)


def test_the_published_row_one_of_width_four() -> None:
    torch.testing.assert_close(encode_position(1, 4), torch.tensor([0.8415, 0.5403, 0.0100, 0.9999]), rtol=0, atol=6e-5)
    torch.testing.assert_close(pair_frequencies(4), torch.tensor([1.0, 0.01]).double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("d_model", "base"), [(2, 1e4), (6, 1e4), (64, 1e4), (512, 1e4), (10, 333.0)])
def test_frequencies_and_wavelengths(d_model: int, base: float) -> None:
    with localcontext(prec=50):
        wanted = [float(Decimal(base) ** (Decimal(-2 * i) / d_model)) for i in range(d_model // 2)]
        turns = [float(2 * PI * Decimal(base) ** (Decimal(2 * i) / d_model)) for i in range(d_model // 2)]
    for found, numbers in ((pair_frequencies(d_model, base), wanted), (wavelengths(d_model, base), turns)):
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, torch.tensor(numbers, dtype=torch.float64), rtol=1e-14, atol=0)


@pytest.mark.parametrize("offset", [0, 1, -1, 17, -40, 4711, -5000])
@pytest.mark.parametrize(("d_model", "base"), [(4, 1e4), (10, 1e4), (6, 77.0)])
def test_the_shift_matrix_moves_every_position(offset: int, d_model: int, base: float) -> None:
    matrix = shift_matrix(offset, d_model, base)
    assert (matrix.shape, matrix.dtype) == ((d_model, d_model), torch.float64)
    for position in (0, 1, 63, 6000):
        before, after = (exact_table(1, d_model, base, p)[0] for p in (position, position + offset))
        torch.testing.assert_close(matrix @ before, after, rtol=0, atol=2e-12)


def test_shifts_are_rotations_and_add_up() -> None:
    forth, back, more = shift_matrix(12, 8), shift_matrix(-12, 8), shift_matrix(19, 8)
    torch.testing.assert_close(forth @ back, torch.eye(8).double(), rtol=0, atol=1e-14)
    torch.testing.assert_close(forth.T, back, rtol=0, atol=0)
    torch.testing.assert_close(forth @ more, shift_matrix(31, 8), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_similarity_is_every_dot_product(dtype: torch.dtype) -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).to(dtype)
    before = rows.clone()
    found = position_similarity(rows)
    products = [[math.fsum(a * b for a, b in zip(p, q, strict=True)) for q in rows.tolist()] for p in rows.tolist()]
    torch.testing.assert_close(found, torch.tensor(products, dtype=dtype), rtol=0, atol=1e-6)
    assert torch.equal(rows, before)


def test_similarity_of_encodings_depends_on_the_distance_alone() -> None:
    found = position_similarity(sinusoidal_encoding(40, 16, dtype=torch.float64))
    for distance in (0, 1, 7):
        diagonal = found.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-12)
    torch.testing.assert_close(found.diagonal(), torch.full((40,), 8.0).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("d_model", [-4, -1, 0, 1, 3, 7, 511])
def test_bad_widths_are_refused_by_name_and_value(d_model: int) -> None:
    for call in (
        lambda: pair_frequencies(d_model),
        lambda: encode_position(3, d_model),
        lambda: sinusoidal_encoding(3, d_model),
        lambda: wavelengths(d_model),
        lambda: shift_matrix(3, d_model),
    ):
        with pytest.raises(ValueError, match=rf"d_model.*{d_model}"):
            call()


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_table_is_made_on_the_device_that_is_asked_for(device: str, dtype: torch.dtype) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    found = sinusoidal_encoding(9, 4, device=device, dtype=dtype)
    assert (found.shape, found.device.type, found.dtype) == ((9, 4), device, dtype)
    if device != "meta":
        assert torch.equal(found.cpu(), sinusoidal_encoding(9, 4, dtype=dtype))
        similar = position_similarity(found)
        assert (similar.device.type, similar.dtype) == (device, dtype)
