"""Position numbers and fractions against loops and torch.linspace."""

from __future__ import annotations

import pytest
import torch

from autograder.reference.naive import add_fraction_positions, add_integer_positions


def _x(length: int = 5, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(2, length, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def test_integer_positions_add_the_number_to_every_feature() -> None:
    x, found = _x(), add_integer_positions(_x())
    for t in range(5):
        assert torch.equal(found[:, t], x[:, t] + t)


def test_fraction_positions_add_an_even_scale_from_0_to_1() -> None:
    found = add_fraction_positions(_x()) - _x()
    scale = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    torch.testing.assert_close(found, scale[None, :, None].expand(2, 5, 3), rtol=0, atol=1e-15)


def test_a_single_position_stays_as_it_is() -> None:
    assert torch.equal(add_integer_positions(_x(1)), _x(1))
    assert torch.equal(add_fraction_positions(_x(1)), _x(1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_result_has_dtype_and_device_of_x_and_x_is_untouched(dtype: torch.dtype) -> None:
    for add in (add_integer_positions, add_fraction_positions):
        x = _x(dtype=dtype)
        assert add(x).dtype == dtype
        assert torch.equal(x, _x(dtype=dtype))
        assert add(x.to("meta")).device.type == "meta"
