"""A class as each platform exports it, and the ways in which it reaches an instructor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from autograder.intake.desk import Intake
from tests.intake.makers import LESSON, Files, mark_of, notebook, tar_bytes, write_folder, write_zip
from tests.intake.test_gradescope import METADATA

Pack = Callable[[Path, Files], Path]


def pack_zip(root: Path, files: Files) -> Path:
    return write_zip(root / "download.zip", files)


def pack_zip_around(root: Path, files: Files) -> Path:
    return write_zip(root / "download.zip", {f"some export/{name}": content for name, content in files.items()})


def pack_tar(root: Path, files: Files) -> Path:
    (root / "download.tar.gz").write_bytes(tar_bytes(files))
    return root / "download.tar.gz"


def pack_folder(root: Path, files: Files) -> Path:
    return write_folder(root / "download", files)


def pack_zips(root: Path, files: Files) -> Path:
    """A class in two sections, downloaded one after the other, nothing unpacked."""
    (root / "downloads").mkdir()
    names = list(files)
    shared = {name: files[name] for name in names if name.endswith(".yml")}
    for number, part in enumerate((names[::2], names[1::2])):
        own = {name: files[name] for name in part} | shared
        write_zip(root / "downloads" / f"section {number}.zip", own)
    return root / "downloads"


PACKS = {
    "zip": pack_zip,
    "zip with a folder around": pack_zip_around,
    "tar.gz": pack_tar,
    "folder": pack_folder,
    "folder of zips": pack_zips,
}

CANVAS: Files = {
    f"surnamename_12345_67890_{LESSON}.ipynb": notebook("one"),
    f"surnamename_LATE_12346_67891_{LESSON}-2.ipynb": notebook("two"),
    "李雷_12347_67892_作业 (1).ipynb": notebook("three"),
    "anon_aB3d_67893_x.ipynb": notebook("four"),
    "noname_12348_text.html": "<p>typed in</p>",
    "other_12349_67894_report.pdf": "%PDF",
}
MOODLE: Files = {
    "Name Surname_12345_assignsubmission_file/work.ipynb": notebook("one"),
    "Name Surname_12346_assignsubmission_file/work.ipynb": notebook("two"),
    "李 雷_12347_assignsubmission_file/作业.ipynb": notebook("three"),
    "Other Name_12348_assignsubmission_file_/sub/work (2).ipynb": notebook("four"),
    "No Name_12349_assignsubmission_onlinetext/onlinetext.html": "<p>typed in</p>",
}
MOODLE_FLAT: Files = {
    "Name Surname_12345_assignsubmission_file_work.ipynb": notebook("one"),
    "Name Surname_12346_assignsubmission_file_work.ipynb": notebook("two"),
    "李 雷_12347_assignsubmission_file_作业.ipynb": notebook("three"),
    "Other Name_12348_assignsubmission_file_work (2).ipynb": notebook("four"),
    "No Name_12349_assignsubmission_onlinetext_onlinetext.html": "<p>typed in</p>",
}
BLACKBOARD: Files = {
    "Lesson 2_student01_attempt_2026-01-02-03-04-05_work.ipynb": notebook("one"),
    "Lesson 2_student01_attempt_2026-01-02-03-04-05.txt": "Name: Student One (student01)\nAssignment: Lesson 2\n",
    "Lesson 2_s_02_attempt_2026-01-02-03-04-06_work.ipynb": notebook("two"),
    "Lesson 2_s_02_attempt_2026-01-02-03-04-06.txt": "Name: Student Two (s_02)\nAssignment: Lesson 2\n",
    "Lesson 2_student03_attempt_2026-01-02-03-04-07.txt": "Name: Student Three (student03)\n",
}
BRIGHTSPACE: Files = {
    "12345-67890 - Name Surname - Jan 2, 2026 304 PM - work.ipynb": notebook("one"),
    "12346-67890 - 李雷 - Jan 2, 2026 1204 AM - a - b (1).ipynb": notebook("two"),
    "12347-67890 - Other Name - Jan 3, 2026 904 AM/work.ipynb": notebook("three"),
    "index.html": "<html>",
}
GRADESCOPE: Files = {
    "submission_metadata.yml": METADATA,
    "submission_12345/work.ipynb": notebook("one"),
    "submission_12346/src/work.ipynb": notebook("two"),
    "submission_12399/work.ipynb": notebook("three"),
}
NBGRADER: Files = {
    f"student-01+{LESSON}+2026-01-02 03:04:05.123456 UTC+aB3d/{LESSON}.ipynb": notebook("one"),
    f"student-02+{LESSON}+2026-01-02 03:04:06.123456 UTC/{LESSON}.ipynb": notebook("two"),
    "student-02+01-other+2026-01-02 03:04:06.123456 UTC/01-other.ipynb": notebook("other"),
}
EXPORTS: dict[str, tuple[str, Files, dict[str, str | None]]] = {
    "Canvas": (
        "Canvas",
        CANVAS,
        {"12345": "one", "12346": "two", "12347": "three", "anon_aB3d": "four", "12348": None, "12349": None},
    ),
    "Moodle": (
        "Moodle",
        MOODLE,
        {
            "Name Surname_12345": "one",
            "Name Surname_12346": "two",
            "李 雷": "three",
            "Other Name": "four",
            "No Name": None,
        },
    ),
    "Moodle, flat": (
        "Moodle",
        MOODLE_FLAT,
        {
            "Name Surname_12345": "one",
            "Name Surname_12346": "two",
            "李 雷": "three",
            "Other Name": "four",
            "No Name": None,
        },
    ),
    "Blackboard": ("Blackboard", BLACKBOARD, {"student01": "one", "s_02": "two", "student03": None}),
    "Brightspace": ("Brightspace", BRIGHTSPACE, {"12345": "one", "12346": "two", "12347": "three"}),
    "Gradescope": (
        "Gradescope",
        GRADESCOPE,
        {"0123": "one", "student-02@example.edu": "two", "s3": "two", "submission_12399": "three"},
    ),
    "nbgrader": ("nbgrader", NBGRADER, {"student-01": "one", "student-02": "two"}),
}


def marks(intake: Intake) -> dict[str, str | None]:
    return {one.student: mark_of(one.notebook) if one.notebook else None for one in intake.submissions}
