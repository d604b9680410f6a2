"""Other right answers to lesson 02, in the ways in which people write them. Each must get full marks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.reference.sinusoidal import pair_frequencies


def _require_even(d_model: int) -> None:
    if d_model % 2 == 1 or d_model <= 0:
        raise ValueError(f"d_model has to be a positive even number, but it is {d_model}")


def _frequencies_by_exp(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    return torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(base) / d_model))


def _frequencies_by_division(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    return 1 / base ** (torch.arange(0, d_model, 2).double() / d_model)


def _frequencies_by_list(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    return torch.tensor([1 / math.pow(base, 2 * i / d_model) for i in range(d_model // 2)], dtype=torch.float64)


def _frequencies_by_logspace(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    return torch.logspace(0, -(d_model - 2) / d_model, d_model // 2, base=base, dtype=torch.float64)


def _frequencies_by_ratio(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    ratio = torch.full((d_model // 2,), base ** (-2 / d_model), dtype=torch.float64)
    ratio[0] = 1.0
    return ratio.cumprod(0)


def _frequencies_by_numpy(d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    return torch.from_numpy(np.power(base, -2.0 * np.arange(d_model // 2) / d_model))


PAIR_FREQUENCIES = {
    "exp-log": {"pair_frequencies": _frequencies_by_exp},
    "division": {"pair_frequencies": _frequencies_by_division},
    "list": {"pair_frequencies": _frequencies_by_list},
    "logspace": {"pair_frequencies": _frequencies_by_logspace},
    "ratio": {"pair_frequencies": _frequencies_by_ratio},
    "numpy": {"pair_frequencies": _frequencies_by_numpy},
}


def _row_by_loop(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    row: list[float] = []
    for i in range(d_model // 2):
        angle = position / base ** (2 * i / d_model)
        row += [math.sin(angle), math.cos(angle)]
    return torch.tensor(row)


def _row_by_slices(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    row = torch.zeros(d_model)
    slowing = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    row[0::2] = torch.sin(position * slowing)
    row[1::2] = torch.cos(position * slowing)
    return row


def _row_by_polar(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    angle = position * pair_frequencies(d_model, base)
    return torch.view_as_real(torch.polar(torch.ones_like(angle), angle)).flip(-1).reshape(-1).float()


def _row_by_phase(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    angle = (position * pair_frequencies(d_model, base)).repeat_interleave(2)
    return torch.sin(angle + torch.tensor([0, math.pi / 2]).repeat(d_model // 2)).to(torch.float32)


def _row_by_where(position: int, d_model: int, base: float = 10000.0) -> Tensor:
    _require_even(d_model)
    column = torch.arange(d_model)
    angle = position / base ** (2 * (column // 2) / d_model)  # float32
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


ENCODE_POSITION = {
    "loop": {"encode_position": _row_by_loop},
    "slices-float32": {"encode_position": _row_by_slices},
    "polar": {"encode_position": _row_by_polar},
    "phase": {"encode_position": _row_by_phase},
    "where-float32": {"encode_position": _row_by_where},
}


def _table_by_slices(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    _require_even(d_model)
    position = torch.arange(n_positions, device=device, dtype=torch.float32).unsqueeze(1)
    slowing = torch.exp(torch.arange(0, d_model, 2, device=device).float() * (-math.log(base) / d_model))
    table = torch.zeros(n_positions, d_model, device=device)
    table[:, 0::2] = torch.sin(position * slowing)
    table[:, 1::2] = torch.cos(position * slowing)
    return table.to(dtype)


def _table_by_pairs(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    _require_even(d_model)
    table = torch.empty(n_positions, d_model, device=device, dtype=dtype)
    position = torch.arange(n_positions, device=device)
    for i in range(d_model // 2):
        angle = position / base ** (2 * i / d_model)
        table[:, 2 * i] = angle.sin()
        table[:, 2 * i + 1] = angle.cos()
    return table


def _table_by_stack(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    frequency = pair_frequencies(d_model, base).to(device=device, dtype=torch.float32)
    angle = torch.outer(torch.arange(n_positions, device=device).float(), frequency)
    return torch.stack((angle.sin(), angle.cos()), dim=2).view(n_positions, d_model).to(dtype)


def _table_by_einsum(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    angle = torch.einsum("p,i->pi", torch.arange(n_positions).double(), pair_frequencies(d_model, base))
    columns = [wave for i in range(d_model // 2) for wave in (angle[:, i].sin(), angle[:, i].cos())]
    return torch.stack(columns, dim=1).to(device, dtype)


def _table_by_polar(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    angle = torch.arange(n_positions).double()[:, None] * pair_frequencies(d_model, base)
    hands = torch.polar(torch.ones_like(angle), angle)
    return torch.stack([hands.imag, hands.real], dim=-1).reshape(n_positions, d_model).to(device=device, dtype=dtype)


def _table_by_phase(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    frequency = pair_frequencies(d_model, base).float().repeat_interleave(2).to(device)
    quarter = torch.tensor([0.0, math.pi / 2], device=device).repeat(d_model // 2)
    return torch.sin(torch.arange(n_positions, device=device)[:, None] * frequency + quarter).to(dtype)


def _table_by_numpy(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    _require_even(d_model)
    angle = np.arange(n_positions)[:, np.newaxis] / np.power(base, 2 * (np.arange(d_model) // 2) / d_model)
    angle[:, 0::2], angle[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    return torch.tensor(angle, dtype=dtype, device=device)


def _table_reading_the_device(
    n_positions: int, d_model: int, base: float = 10000.0, device: Any = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    _require_even(d_model)
    position = torch.arange(n_positions, device=device, dtype=torch.float32)
    columns = []
    for exponent in torch.arange(0, d_model, 2, device=device) / d_model:
        angle = position * math.pow(base, -exponent.item())
        columns += [angle.sin(), angle.cos()]
    return torch.stack(columns, dim=-1).to(dtype)


SINUSOIDAL_ENCODING = {
    "slices-float32": {"sinusoidal_encoding": _table_by_slices},
    "pairs": {"sinusoidal_encoding": _table_by_pairs},
    "stack-float32": {"sinusoidal_encoding": _table_by_stack},
    "einsum": {"sinusoidal_encoding": _table_by_einsum},
    "polar": {"sinusoidal_encoding": _table_by_polar},
    "phase-float32": {"sinusoidal_encoding": _table_by_phase},
    "numpy": {"sinusoidal_encoding": _table_by_numpy},
    "reads-the-device": {"sinusoidal_encoding": _table_reading_the_device},
}


def _waves_by_formula(d_model: int, base: float = 10000.0) -> Tensor:
    return 2 * math.pi * base ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def _waves_by_list(d_model: int, base: float = 10000.0) -> Tensor:
    return torch.tensor([math.tau / f for f in pair_frequencies(d_model, base).tolist()], dtype=torch.float64)


def _waves_by_logarithm(d_model: int, base: float = 10000.0) -> Tensor:
    i = torch.arange(d_model // 2, dtype=torch.float64)
    return torch.exp(math.log(2 * math.pi) + 2 * i / d_model * math.log(base))


WAVELENGTHS = {
    "formula": {"wavelengths": _waves_by_formula},
    "list": {"wavelengths": _waves_by_list},
    "logarithm": {"wavelengths": _waves_by_logarithm},
}


def _shift_by_block_diag(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    blocks = []
    for angle in (offset * pair_frequencies(d_model, base)).tolist():
        sine, cosine = math.sin(angle), math.cos(angle)
        blocks.append(torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64))
    matrix: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return matrix


def _shift_by_kronecker(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    angle = offset * pair_frequencies(d_model, base)
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    return torch.kron(angle.cos().diag(), torch.eye(2).double()) + torch.kron(angle.sin().diag(), turn)


def _shift_by_exponential(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    speed = torch.kron(pair_frequencies(d_model, base).diag(), torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double())
    matrix: Tensor = torch.linalg.matrix_exp(offset * speed)
    return matrix


def _shift_by_complex(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    angle = offset * pair_frequencies(d_model, base)
    turn = torch.polar(torch.ones_like(angle), angle)
    units = torch.eye(d_model, dtype=torch.float64).reshape(d_model, -1, 2)  # every column of the identity, as hands
    hands = torch.complex(units[..., 1], units[..., 0]) * turn  # real part cosine, imaginary part sine
    return torch.stack([hands.imag, hands.real], dim=-1).reshape(d_model, d_model).T


def _shift_by_loop(offset: int, d_model: int, base: float = 10000.0) -> Tensor:
    matrix = torch.eye(d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        angle = torch.tensor(offset * base ** (-2 * i / d_model))  # float32
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = torch.cos(angle)
        matrix[2 * i, 2 * i + 1] = torch.sin(angle)
        matrix[2 * i + 1, 2 * i] = -torch.sin(angle)
    return matrix


SHIFT_MATRIX = {
    "block-diag": {"shift_matrix": _shift_by_block_diag},
    "kronecker": {"shift_matrix": _shift_by_kronecker},
    "matrix-exponential": {"shift_matrix": _shift_by_exponential},
    "complex": {"shift_matrix": _shift_by_complex},
    "loop-float32": {"shift_matrix": _shift_by_loop},
}


def _similarity_by_loop(encoding: Tensor) -> Tensor:
    n = len(encoding)
    result = torch.zeros(n, n, dtype=encoding.dtype, device=encoding.device)
    for p in range(n):
        for q in range(n):
            result[p, q] = torch.dot(encoding[p], encoding[q])
    return result


def _similarity_by_lists(encoding: Tensor) -> Tensor:
    products = [[(row * other).sum().item() for other in encoding] for row in encoding]
    return torch.tensor(products, dtype=encoding.dtype, device=encoding.device)


POSITION_SIMILARITY = {
    "matmul": {"position_similarity": lambda encoding: torch.matmul(encoding, encoding.transpose(0, 1))},
    "einsum": {"position_similarity": lambda encoding: torch.einsum("pd,qd->pq", encoding, encoding)},
    "broadcast": {"position_similarity": lambda encoding: (encoding[:, None, :] * encoding[None, :, :]).sum(-1)},
    "inner": {"position_similarity": lambda encoding: torch.inner(encoding, encoding)},
    "double-inside": {
        "position_similarity": lambda encoding: (encoding.double() @ encoding.double().T).to(encoding.dtype)
    },
    "loop": {"position_similarity": _similarity_by_loop},
    "lists": {"position_similarity": _similarity_by_lists},
}
