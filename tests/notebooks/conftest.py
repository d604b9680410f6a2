"""A submission to the tiny lesson, and fitting as it happens to a file."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from nbformat import NotebookNode

from autograder.notebooks.fitting import Fitted, fit
from autograder.notebooks.reading import parse_notebook
from tests.notebooks.helpers import MASK_ANSWER, PAIR_ANSWER


@pytest.fixture
def fitted(tiny_source: NotebookNode, tiny_release: NotebookNode) -> Callable[[NotebookNode], Fitted]:
    """Writes the submission as a file would hold it, reads it and fits it."""

    def run(submitted: NotebookNode) -> Fitted:
        text = json.dumps(submitted, ensure_ascii=False)  # not nbformat's writer: it would mend what is broken
        return fit(parse_notebook(text.encode(), "a.ipynb"), tiny_source, tiny_release)

    return run


@pytest.fixture
def submission(answered: Callable[..., NotebookNode]) -> NotebookNode:
    """The released notebook, with both answers of our own."""
    return answered(pair_frequencies=PAIR_ANSWER, causal_mask=MASK_ANSWER, reflection="I saw dots.")
