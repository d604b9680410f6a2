"""Names from archives: encodings, what is unsafe, what they are on disk."""

from __future__ import annotations

import struct
import zlib
from pathlib import PurePosixPath

import pytest

from autograder.intake.names import UNICODE_PATH, decoded, on_disk, safe_path, same, student_name, zip_name

NAMES = {
    "UTF-8": ("作业_李雷.ipynb", "utf-8"),
    "GBK, as Windows in Chinese writes": ("作业_李雷.ipynb", "gbk"),
    "GBK with a character that is not in GB 2312": ("作业镕.ipynb", "gbk"),
    "code page 437": ("Übung_é.ipynb", "cp437"),
    "code page 437, two in a row": ("ä éàx.ipynb", "cp437"),
    "ASCII": ("name.ipynb", "ascii"),
}


@pytest.mark.parametrize(("name", "encoding"), NAMES.values(), ids=NAMES)
def test_names_without_a_declared_encoding(name: str, encoding: str) -> None:
    assert decoded(name.encode(encoding)) == name


def test_the_unicode_field_counts_if_it_belongs_to_the_name() -> None:
    """Info-ZIP's extra field, with the checksum of the name that it stands for."""
    good = struct.pack("<HHxI", UNICODE_PATH, 5 + 6, zlib.crc32(b"old")) + "李雷".encode()
    stale = struct.pack("<HHxI", UNICODE_PATH, 5 + 6, zlib.crc32(b"other")) + "李雷".encode()
    assert zip_name("old", 0, b"\x01\x00\x02\x00ab" + good) == "李雷"
    assert zip_name("old", 0, stale) == "old"


PATHS = {
    "a/b.ipynb": "a/b.ipynb",
    "a\\b.ipynb": "a/b.ipynb",
    "./a//b.ipynb": "a/b.ipynb",
    "a\nb.ipynb": "a_b.ipynb",
}
UNSAFE = {
    "/etc/passwd": "absolute",
    "\\\\host\\share": "absolute",
    "C:\\x.ipynb": "absolute",
    "../x.ipynb": "leads out",
    "a/../../x.ipynb": "leads out",
    "a\\..\\..\\x.ipynb": "leads out",
    "/".join("a" * 30): "deep",
    "": "no name",
    "./": "no name",
}


@pytest.mark.parametrize("name", PATHS)
def test_paths(name: str) -> None:
    assert safe_path(name) == PurePosixPath(PATHS[name])


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_paths_have_a_reason(name: str) -> None:
    why = safe_path(name)
    assert not isinstance(why, PurePosixPath)
    assert UNSAFE[name] in why.en
    assert why.zh


def test_long_names_fit_on_disk_and_stay_apart() -> None:
    """255 bytes are allowed; the suffix stays; two long names that begin alike are two."""
    first, second = on_disk("作" * 200 + "a.ipynb"), on_disk("作" * 200 + "b.ipynb")
    assert first != second
    assert first.endswith(".ipynb")
    assert max(len(first.encode()), len(second.encode())) <= 255
    assert on_disk("short.ipynb") == "short.ipynb"


def test_what_some_file_system_takes_for_one_name_is_the_same() -> None:
    """Case; é as one character or two."""
    assert same("Jose\u0301.IPYNB") == same("JOS\u00c9.ipynb")
    assert same("a") != same("b")


STUDENTS = {
    "Name Surname": "Name Surname",
    "../../x": "_.._x",
    "..": "unnamed",
    " .hidden ": "hidden",
    "a/b\\c:d": "a_b_c_d",
    "李\u202e雷\n": "李 雷",
    "": "unnamed",
    "x" * 300: "x" * 100,
}


@pytest.mark.parametrize("text", STUDENTS)
def test_a_student_names_a_folder_and_nothing_else(text: str) -> None:
    assert student_name(text) == STUDENTS[text]
