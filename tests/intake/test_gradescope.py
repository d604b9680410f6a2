"""Gradescope's list of who handed in what, results and all, and what may be hidden in such a file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from autograder.errors import OrderMattersError
from autograder.intake.gradescope import Submitter, read_metadata

METADATA = """\
---
submission_12345:
  :submitters:
  - :name: Name Surname
    :sid: '0123'
    :email: student-01@example.edu
  :created_at: 2026-01-02 15:04:00.000000000 Z
  :score: 3.0
  :status: processed
  :results:
    tests:
    - :name: hidden
      :sid: no submitter
    - name: other
  :history:
  - :submitters:
    - :name: Older
      :sid: '9'
    :score: 1.0
submission_12346:
  :submitters:
  - :name: 李雷
    :sid:
    :email: student-02@example.edu
  - :name: Third
    :sid: s3
    :email: ""
submission_12347:
  :submitters: []
"""


def test_submitters_by_folder(tmp_path: Path) -> None:
    """Several where a group hands in; none of results and history; a missing id is no id."""
    path = tmp_path / "submission_metadata.yml"
    path.write_text(METADATA, encoding="utf-8")
    found = read_metadata(path)
    assert found["submission_12345"] == [Submitter("Name Surname", "0123", "student-01@example.edu")]
    assert [one.who for one in found["submission_12346"]] == ["student-02@example.edu", "s3"]
    assert found.get("submission_12347", []) == []


def test_a_large_file_takes_little_time(tmp_path: Path) -> None:
    """Six hundred submissions with their results: some megabytes."""
    tests = "".join(f"    - name: test {number}\n      output: 'some text of a test'\n" for number in range(60))
    parts = (
        f"submission_{number}:\n  :submitters:\n  - :name: N\n    :sid: s{number}\n  :results:\n    tests:\n{tests}"
        for number in range(600)
    )
    path = tmp_path / "submission_metadata.yml"
    path.write_text("".join(parts), encoding="utf-8")
    started = time.monotonic()
    assert len(read_metadata(path)) == 600
    assert time.monotonic() - started < 20


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
)
HARMLESS = {
    "aliases of aliases": LAUGHS,
    "an object": "a: !!python/object/apply:os.system ['false']\n",
    "a list": "- x\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_is_hidden_in_the_file_does_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "submission_metadata.yml"
    path.write_text(text, encoding="utf-8")
    assert not any(read_metadata(path).values())


@pytest.mark.parametrize("text", ["a: [", "[" * 100_000, "\x00", "a: b: c"], ids=["open", "deep", "NUL", "colons"])
def test_a_file_that_is_no_list_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "submission_metadata.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OrderMattersError, match=r"submission_metadata\.yml can't be read"):
        read_metadata(path)
