"""Archives that strangers made. Each test says what is tried; nothing lands outside, the rest is unpacked."""

from __future__ import annotations

import contextlib
import io
import os
import random
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from autograder.errors import BadArchive
from autograder.intake.archives import unpack
from autograder.intake.bounds import CLASS, MIB, STUDENT, Bounds
from autograder.intake.writing import Unpacked
from tests.intake.makers import named_raw, notebook, patched, tar_bytes, write_zip, zip_bytes

GOOD = "student-01.ipynb"
NAME_FIELD, FLAGS, METHOD, SIZE, OFFSET = 28, 8, 10, 24, 42
"""Places in a zip's central header."""


def unpacked(tmp_path: Path, data: bytes, name: str = "class.zip", bounds: Bounds = CLASS) -> Unpacked:
    """Unpack these bytes, and look whether anything lies outside the folder."""
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / name).write_bytes(data)
    done = unpack(inside / name, tmp_path / "out" / "here", bounds)
    everything = {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if not path.is_dir()}
    assert everything <= {("in", name), ("out", "here")}
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))
    return done


def good(done: Unpacked) -> None:
    """The honest file beside is there, whole."""
    (entry,) = (entry for entry in done.entries if str(entry.path) == GOOD)
    assert entry.file is not None
    assert entry.file.read_bytes() == notebook()


def refused(done: Unpacked, name: str) -> str:
    (found,) = (one for one in done.refused if one.name == name)
    assert found.why.zh
    return found.why.en


EVIL = [
    "/tmp/evil.ipynb",
    "../evil.ipynb",
    "a/../../evil.ipynb",
    "..\\evil.ipynb",
    "C:\\evil.ipynb",
    "\\\\host\\evil.ipynb",
]


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_can_a_name_lead_outside(tmp_path: Path, name: str, kind: str) -> None:
    files = {name: notebook("evil"), GOOD: notebook()}
    done = unpacked(tmp_path, zip_bytes(files) if kind == "zip" else tar_bytes(files), f"class.{kind}")
    good(done)
    assert refused(done, name) in ("its path is absolute", "its path leads out of the archive (..)")
    assert len(done.entries) == 1


def test_can_a_zip_hold_a_link(tmp_path: Path) -> None:
    """A link to a file, then one through it to write elsewhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("way")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/tmp")
        archive.writestr("way/evil.ipynb", notebook())
        pipe = zipfile.ZipInfo("pipe.ipynb")
        pipe.external_attr = (stat.S_IFIFO | 0o666) << 16
        archive.writestr(pipe, "")
        archive.writestr(GOOD, notebook())
    done = unpacked(tmp_path, buffer.getvalue())
    good(done)
    assert "link" in refused(done, "way")
    assert "pipe" in refused(done, "pipe.ipynb")
    assert "same name" in refused(done, "way/evil.ipynb")


TAR_KINDS = {
    "symbolic link": (tarfile.SYMTYPE, "link"),
    "hard link": (tarfile.LNKTYPE, "link"),
    "character device": (tarfile.CHRTYPE, "device"),
    "block device": (tarfile.BLKTYPE, "device"),
    "pipe": (tarfile.FIFOTYPE, "pipe"),
    "sparse file": (tarfile.GNUTYPE_SPARSE, "device"),
}


@pytest.mark.parametrize(("kind", "said"), TAR_KINDS.values(), ids=TAR_KINDS)
def test_can_a_tar_hold_anything_but_files(tmp_path: Path, kind: bytes, said: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("x.ipynb")
        info.type = kind
        info.linkname = "/etc/passwd"
        archive.addfile(info)
        honest = tarfile.TarInfo(GOOD)
        honest.size = len(notebook())
        archive.addfile(honest, io.BytesIO(notebook()))
    done = unpacked(tmp_path, buffer.getvalue(), "class.tar.gz")
    good(done)
    assert said in refused(done, "x.ipynb")


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_can_a_small_archive_fill_the_disk(tmp_path: Path, kind: str) -> None:
    """40 MiB of zeros in 40 KiB: refused in a zip, where each file is packed alone; a tar.gz ends there."""
    files = {"a/" + GOOD: notebook(), "bomb.ipynb": bytes(40 * MIB)}
    data = zip_bytes(files) if kind == "zip" else tar_bytes(files)
    assert len(data) < MIB / 8
    done = unpacked(tmp_path, data, f"class.{kind}")
    assert any(str(entry.path) == "a/" + GOOD and entry.file for entry in done.entries)
    assert any("unpacks to more than" in one.why.en for one in done.refused)
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.ipynb")) < MIB


def test_can_a_zip_lie_about_its_sizes(tmp_path: Path) -> None:
    """A file that says it has 10 bytes and has 40 MiB: no more than what it says is ever unpacked."""
    data = patched(zip_bytes({"bomb.ipynb": bytes(40 * MIB)}), (SIZE, "<I", 10))
    done = unpacked(tmp_path, data)
    assert "damaged" in refused(done, "bomb.ipynb")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.ipynb")) == 0


def test_can_many_files_together_fill_the_disk(tmp_path: Path) -> None:
    """Each is allowed, all are not: the last are refused."""
    files = {f"{number}.ipynb": os.urandom(MIB // 2) for number in range(5)}
    done = unpacked(tmp_path, zip_bytes(files), bounds=Bounds(total_bytes=MIB))
    assert [entry.file is not None for entry in done.entries] == [True, True, False, False, False]
    assert "use up the space" in refused(done, "4.ipynb")


def test_can_a_notebook_be_larger_than_any(tmp_path: Path) -> None:
    done = unpacked(tmp_path, zip_bytes({"x.ipynb": os.urandom(51 * MIB), GOOD: notebook()}))
    good(done)
    assert "more than 52428800 bytes" in refused(done, "x.ipynb")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_can_there_be_too_many_files(tmp_path: Path, kind: str) -> None:
    files = {f"{number}.txt": b"" for number in range(STUDENT.members + 1)}
    data = zip_bytes(files) if kind == "zip" else tar_bytes(files, "w")
    with pytest.raises(BadArchive, match="more than 2000 files"):
        unpacked(tmp_path, data, f"work.{kind}", STUDENT)


def test_can_the_list_of_members_fill_the_memory(tmp_path: Path) -> None:
    """It is measured before anything reads it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(900):
            info = zipfile.ZipInfo(f"{number}.txt")
            info.comment = bytes(2000)
            archive.writestr(info, b"")
    with pytest.raises(BadArchive, match="its list of members has 1"):
        unpacked(tmp_path, buffer.getvalue(), "work.zip", STUDENT)


def test_can_a_tars_own_record_fill_the_memory(tmp_path: Path) -> None:
    """A "long name" of 200 MiB that packs to nothing."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 200 * MIB
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        good_one = tarfile.TarInfo(GOOD)
        good_one.size = len(notebook())
        archive.addfile(good_one, io.BytesIO(notebook()))
        assert archive.fileobj is not None
        archive.fileobj.write(header.tobuf(tarfile.GNU_FORMAT))
        archive.fileobj.write(bytes(200 * MIB))
    tracemalloc.start()
    done = unpacked(tmp_path, buffer.getvalue(), "class.tar.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    good(done)
    assert any("a record of 209715200 bytes" in one.why.en for one in done.refused)
    assert peak < 20 * MIB


def test_do_files_that_overlap_count_many_times(tmp_path: Path) -> None:
    """Five hundred entries of the list point to the same packed bytes: none of them is another file."""
    data = zip_bytes({"000.ipynb": bytes(MIB)})
    start, end = data.index(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    count = 500
    central = b"".join(data[start:end].replace(b"000.ipynb", b"%03d.ipynb" % number) for number in range(count))
    tail = bytearray(data[end:])
    struct.pack_into("<HH", tail, 8, count, count)
    struct.pack_into("<I", tail, 12, len(central))
    done = unpacked(tmp_path, data[:start] + central + bytes(tail))
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.ipynb")) <= MIB
    assert len(done.refused) >= count - 1
    assert all("damaged" in one.why.en for one in done.refused)


@pytest.mark.parametrize(
    "names", [("A.ipynb", "a.ipynb"), ("x/Jos\u00e9.ipynb", "x/Jose\u0301.ipynb"), ("A/x.ipynb", "a/X.ipynb")]
)
def test_can_a_name_that_differs_by_case_replace_another(tmp_path: Path, names: tuple[str, str]) -> None:
    """Some disks take both for one file: the first stays, on every disk."""
    first, second = names
    done = unpacked(tmp_path, zip_bytes({first: notebook("first"), second: notebook("second"), GOOD: notebook()}))
    good(done)
    assert "same name" in refused(done, second)
    (entry,) = (entry for entry in done.entries if str(entry.path) == first)
    assert entry.file is not None
    assert b"first" in entry.file.read_bytes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_can_one_name_come_twice(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(GOOD, notebook())
        archive.writestr(GOOD, notebook("second"))
        archive.writestr(GOOD + "/below.ipynb", notebook("third"))
    done = unpacked(tmp_path, buffer.getvalue())
    good(done)
    assert [one.name for one in done.refused] == [GOOD, GOOD + "/below.ipynb"]


@pytest.mark.parametrize("flags", [0x1, 0x41, 0x2001])
def test_an_encrypted_file_is_told(tmp_path: Path, flags: int) -> None:
    """It stays a file of its student's, without content, with the reason."""
    done = unpacked(tmp_path, patched(zip_bytes({"secret.ipynb": notebook()}), (FLAGS, "<H", flags)))
    assert "encrypted" in refused(done, "secret.ipynb")
    (entry,) = done.entries
    assert entry.file is None
    assert entry.refusal is not None


@pytest.mark.parametrize("method", [12, 14, 93, 97])
def test_a_method_that_no_platform_uses_is_told(tmp_path: Path, method: int) -> None:
    """bzip2 and LZMA among them: their unpacking cannot be stopped in time."""
    done = unpacked(tmp_path, patched(zip_bytes({"x.ipynb": notebook()}), (METHOD, "<H", method)))
    assert "method" in refused(done, "x.ipynb")


def test_damaged_content_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"broken.ipynb": notebook("broken" * 50), GOOD: notebook()}))
    at = data.index(b"broken.ipynb") + len(b"broken.ipynb") + 10
    data[at : at + 8] = b"\xff" * 8
    done = unpacked(tmp_path, bytes(data))
    good(done)
    assert "damaged" in refused(done, "broken.ipynb")


BROKEN = {
    "not an archive": b"hello",
    "empty": b"",
    "cut off": zip_bytes({GOOD: notebook()})[:-30],
    "its list elsewhere": patched(zip_bytes({GOOD: notebook()}))[:40]
    + b"PK\x05\x06"
    + bytes(8)
    + b"\xff" * 8
    + bytes(2),
}


@pytest.mark.parametrize("name", ["class.zip", "class.tar", "class.tar.gz", "class.tgz"])
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_archive_is_an_error_that_says_so(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(BadArchive, match=name.replace(".", r"\.")):
        unpacked(tmp_path, data, name)


def test_a_corrupt_list_of_members_is_an_error_that_says_so(tmp_path: Path) -> None:
    data = zip_bytes({GOOD: notebook()}).replace(b"PK\x01\x02", b"PK\x00\x00")
    with pytest.raises(BadArchive, match=r"it can't be opened.*Download it again"):
        unpacked(tmp_path, data)


def test_a_tar_that_ends_too_early_gives_what_came_before(tmp_path: Path) -> None:
    data = tar_bytes({GOOD: notebook(), "late.ipynb": os.urandom(MIB)})
    done = unpacked(tmp_path, data[: len(data) // 2], "class.tar.gz")
    good(done)
    assert any("damaged" in one.why.en for one in done.refused)


@pytest.mark.parametrize("name", ["class.7z", "class.rar", "renamed.zip"])
def test_other_archives_are_an_error_with_a_remedy(tmp_path: Path, name: str) -> None:
    magic = b"Rar!\x1a\x07\x01\x00" if name != "class.7z" else b"7z\xbc\xaf\x27\x1c\x00\x04"
    with pytest.raises(BadArchive, match="Unpack it yourself and give the folder"):
        unpacked(tmp_path, magic + bytes(100), name)


def test_archives_within_are_left_for_their_student(tmp_path: Path) -> None:
    """One level: within a student's archive, another one is refused; a 7z anywhere."""
    inner = zip_bytes({"x.ipynb": notebook()})
    done = unpacked(tmp_path, zip_bytes({"a/work.zip": inner, "a/work.7z": b"7z", GOOD: notebook()}))
    good(done)
    assert "7z and rar" in refused(done, "a/work.7z")
    within = unpack(
        write_zip(tmp_path / "in" / "w.zip", {"deep.zip": inner, GOOD: notebook()}),
        tmp_path / "out" / "here" / "w",
        STUDENT,
    )
    good(within)
    assert "within an archive" in refused(within, "deep.zip")


def test_other_files_are_kept_by_name_only(tmp_path: Path) -> None:
    """Programs, pictures and what systems leave behind never reach the disk."""
    files = {"run.exe": b"MZ", "a/report.pdf": b"%PDF", "__MACOSX/._x.ipynb": b"x", ".DS_Store": b"x", GOOD: notebook()}
    done = unpacked(tmp_path, zip_bytes(files))
    good(done)
    assert {str(entry.path) for entry in done.entries} == {"run.exe", "a/report.pdf", GOOD}
    assert {path.name: path.stat().st_size for path in done.folder.rglob("*.*")}["run.exe"] == 0
    assert not done.refused


def test_a_member_without_a_name(tmp_path: Path) -> None:
    """Python's zipfile itself stumbles over one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = ""
        archive.writestr(info, b"")
        archive.writestr(GOOD, notebook())
    done = unpacked(tmp_path, buffer.getvalue())
    good(done)
    assert "no name" in refused(done, "")


@pytest.mark.parametrize("seed", range(8))
def test_no_damage_is_more_than_a_refusal(tmp_path: Path, seed: int) -> None:
    """Bytes changed, cut out, doubled, anywhere: the archive is refused, or some of its members are."""
    chance = random.Random(seed)
    inner = {"s_1_2_w.zip": zip_bytes({GOOD: notebook()}), "s_2_3_w.tgz": tar_bytes({GOOD: notebook()})}
    whole = {"c.zip": zip_bytes(inner | {GOOD: notebook()}), "c.tar": tar_bytes(inner, "w"), "c.tgz": tar_bytes(inner)}
    for number in range(100):
        name = chance.choice(list(whole))
        data = bytearray(whole[name])
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            at, other = chance.randrange(len(data)), chance.randrange(len(data))
            kind = chance.random()
            if kind < 0.6:
                data[at] = chance.choice((0, 255, 1, 0x2E, 0x2F, chance.randrange(256)))
            elif kind < 0.8:
                del data[at : at + chance.randrange(1, 50)]
            else:
                data[at:at] = data[other : other + chance.randrange(1, 80)]
        place = tmp_path / str(number)
        place.mkdir()
        with contextlib.suppress(BadArchive):
            unpacked(place, bytes(data), name)


@pytest.mark.parametrize("encoding", ["gbk", "utf-8"])
def test_names_in_no_declared_encoding(tmp_path: Path, encoding: str) -> None:
    """As Windows in Chinese packs them, and as programs do that forget the flag."""
    name = "李雷_12345_67890_作业.ipynb"
    plain = "x" * len(name.encode(encoding))
    done = unpacked(tmp_path, named_raw(zip_bytes({plain: notebook()}), plain.encode(), name.encode(encoding)))
    assert [str(entry.path) for entry in done.entries] == [name]


def test_long_names_are_whole_in_the_list(tmp_path: Path) -> None:
    """On disk they are short; what they say of the student counts."""
    name = "李" * 90 + "_12345_67890_x.ipynb"
    done = unpacked(tmp_path, zip_bytes({name: notebook()}))
    (entry,) = done.entries
    assert str(entry.path) == name
    assert entry.file is not None
    assert entry.file.read_bytes() == notebook()
