"""The list of students: what it understands, and what is wrong with it, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.errors import BadStudentList
from autograder.intake.students import read_students


def listed(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "students.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_any_column_is_a_name_that_platforms_use(tmp_path: Path) -> None:
    """Canvas' small letters without spaces, its id, the id in the course itself; names in quotes, in Chinese."""
    text = 'Student,name,canvas id\nstudent-01,"Surname, Name",12345\nstudent-02,李雷,67890\n'
    students = read_students(listed(tmp_path, text))
    for name, student in {
        "surnamename": "student-01",
        "SURNAME NAME": "student-01",
        "12345": "student-01",
        "student-01": "student-01",
        "李雷": "student-02",
    }.items():
        assert students.find([name]) == student
    assert students.find(["nobody"]) is None
    assert students.students == {"student-01", "student-02"}


@pytest.mark.parametrize("name", ["Middle Surname, Given", "Given Middle Surname", "Surname, Given Middle"])
def test_the_surname_may_stand_in_front_or_behind(tmp_path: Path, name: str) -> None:
    """Registers write it in front with a comma, Moodle behind, Canvas in front with everything in one word."""
    students = read_students(listed(tmp_path, f'student,name\nstudent-01,"{name}"\n'))
    spelled = "middlesurnamegiven" if name.startswith("Middle") else "surnamegivenmiddle"
    assert students.find([spelled]) == "student-01"
    assert students.find([name]) == "student-01"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_excel_in_any_country(tmp_path: Path, delimiter: str) -> None:
    """A byte-order mark, semicolons or tabs, carriage returns, empty lines."""
    text = "\ufeffstudent,name\r\n\r\nstudent-01,Name\r\n".replace(",", delimiter)
    assert read_students(listed(tmp_path, text)).find(["name"]) == "student-01"


def test_a_name_of_two_students_is_nobodys(tmp_path: Path) -> None:
    """Their other names still tell them apart, and a spelling of one's own counts before what only looks alike."""
    text = "student,name,id\ns_1,Same Name,1\ns1,Same Name,2\n"
    students = read_students(listed(tmp_path, text))
    assert students.find(["Same Name"]) is None
    assert students.find(["Same Name", "2"]) == "s1"
    assert students.find(["s_1"]) == "s_1"


BAD = {
    "no column": ("name,id\nx,1\n", "its columns are name, id"),
    "two columns": ("student,student\nx,1\n", "its columns are student, student"),
    "empty": ("\n\n", "it is empty"),
    "nobody": ("student,name\n", "it lists nobody"),
    "a field too many": ("student,name\nstudent-01,Surname, Name\n", "line 2 has 3 fields, the first line 2"),
    "no id": ("student,name\n,Name\n", "line 2 has the id ''"),
    "an id that leads elsewhere": ("student,name\na,b\n../x,Name\n", "line 3 has the id '../x'"),
    "a quote that never ends": ('student,name\n"x,y\n', "line 2: unexpected end"),
    "Latin-1": (b"student,name\nx,M\xfcller\n", "it is not UTF-8 (byte 16)"),
    "not text": (b"PK\x03\x04\xff\xfe", "it is not UTF-8"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_a_bad_list_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    """The message names the file and the line."""
    path = listed(tmp_path, text)
    with pytest.raises(BadStudentList) as caught:
        read_students(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_a_missing_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadStudentList, match=r"No such file"):
        read_students(tmp_path / "none.csv")
