"""The visible checks: what a student sees at once, before anything is submitted.

The build writes these functions into each notebook's locked tool cell, so they use torch and the standard library only.
A check names the likely mistake in one sentence. It never decides a grade.
"""

import builtins
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import torch


class CheckFailed(Exception):
    """A visible check that did not hold. IPython shows the message alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[1;31mNot yet.\x1b[0m {self}"]


def expect(condition: object, message: str) -> None:
    """Stop the check with `message` unless `condition` holds."""
    if not condition:
        raise CheckFailed(message)


def expect_tensor(found: object, shape: tuple[int, ...], message: str) -> None:
    """Stop the check unless `found` is a tensor of exactly this shape."""
    if not isinstance(found, torch.Tensor):
        raise CheckFailed(f"expected a torch tensor and found {type(found).__name__}. {message}")
    if tuple(found.shape) != tuple(shape):
        raise CheckFailed(f"expected shape {tuple(shape)} and found {tuple(found.shape)}. {message}")


def expect_close(found: object, wanted: object, message: str, atol: float = 1e-4) -> None:
    """Stop the check unless `found` has the shape and, within `atol`, the values of `wanted`."""
    target = torch.as_tensor(wanted, dtype=torch.float64)
    if not isinstance(found, (torch.Tensor, int, float)):
        raise CheckFailed(f"expected numbers and found {type(found).__name__}. {message}")
    values = torch.as_tensor(found).detach().cpu().double()
    if values.shape != target.shape:
        raise CheckFailed(f"expected shape {tuple(target.shape)} and found {tuple(values.shape)}. {message}")
    if not torch.allclose(values, target, rtol=0.0, atol=atol):
        raise CheckFailed(message)


def expect_raises(error: type[Exception], function: Callable[[], object], message: str) -> None:
    """Stop the check unless calling `function` raises `error`."""
    try:
        function()
    except error:
        return
    except Exception as other:
        raise CheckFailed(f"{type(other).__name__} was raised instead. {message}") from None
    raise CheckFailed(message)


@contextlib.contextmanager
def check(exercise: str) -> Iterator[None]:
    """Run the visible checks of one exercise and say in one line how they ended.

    While nbgrader grades (it sets NBGRADER_EXECUTION), a failed check is printed and not raised, so that the hidden
    tests after it still run.
    """
    graded = os.environ.get("NBGRADER_EXECUTION") == "autograde"
    try:
        with contextlib.redirect_stderr(sys.stdout):
            yield
    except NotImplementedError:
        failure = CheckFailed(f"{exercise}: no answer yet. Write it in the cell above, run that cell, then this one.")
    except CheckFailed as error:
        failure = CheckFailed(f"{exercise}: {error}")
    except Exception as error:
        if not graded:
            raise
        failure = CheckFailed(f"{exercise}: your code raised {type(error).__name__}: {error}")
    else:
        builtins.print(f"{exercise}: the visible checks pass.")
        return
    if not graded:
        raise failure from None
    builtins.print(f"Not yet. {failure}")
