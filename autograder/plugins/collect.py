"""nbgrader's zip collector for what learning platforms export; `nbgrader_config.py` puts both parts in place.

`nbgrader zip_collect ASSIGNMENT` then takes archives and files of any platform from `downloaded/ASSIGNMENT/archive/`,
and one notebook a student, the one that `autograder grade` would take, lands in `submitted/`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import Unicode

from autograder.errors import BadArchive, OrderMattersError
from autograder.intake.archives import is_archive, unpack
from autograder.intake.bounds import CLASS, STUDENT, Bounds
from autograder.intake.entries import ARCHIVES
from autograder.intake.taking import take_in


class CarefulExtractor(ExtractorPlugin):  # type: ignore[misc]
    """Unpacks downloads as `autograder grade` does: nothing lands outside the folder, and there are bounds."""

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Unpack each archive into a folder of its own, and those in it that students handed in; copy other files."""
        for source in sorted(Path(archive_path).rglob("*")):
            if source.is_symlink() or not source.is_file():
                continue
            target = Path(extracted_path) / source.relative_to(archive_path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if is_archive(source):
                self._unpack(source, target, CLASS)
            else:
                shutil.copyfile(source, target)

    def _unpack(self, archive: Path, target: Path, bounds: Bounds) -> None:
        self.log.info("Unpacking %s", archive)
        try:
            unpacked = unpack(archive, target, bounds)
        except BadArchive as error:
            self.log.error("%s", error)
            return
        for refused in unpacked.refused:
            self.log.warning("%s: %s refused: %s", archive.name, refused.name, refused.why.en)
        for entry in unpacked.entries if bounds is CLASS else ():
            if entry.is_archive and entry.file is not None:
                packed = entry.file.rename(
                    entry.file.with_name(f".packed-{len(unpacked.entries)}{_suffix(entry.name)}")
                )
                self._unpack(packed, entry.file, STUDENT)
                packed.unlink()


class PlatformCollector(FileNameCollectorPlugin):  # type: ignore[misc]
    """Knows whose a file is by the platform's naming; takes each student's latest notebook that can be read."""

    students = Unicode("", help="CSV file that maps what the platform calls students to their ids.").tag(config=True)

    _found: dict[Path, str] | None = None

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """The student of the file at this path; None for every file that does not count.

        An instructor's own `FileNameCollectorPlugin.named_regexp` has precedence.
        """
        if self.named_regexp:
            named: dict[str, str] | None = super().collect(submitted_file)
            return named
        if self._found is None:
            self._found = self._take_in()
        student = self._found.get(Path(submitted_file).resolve())
        if student is None:
            return None
        return {"student_id": student, "file_id": f"{self.parent.coursedir.assignment_id}.ipynb"}

    def _take_in(self) -> dict[Path, str]:
        app = self.parent
        folder = Path(app._format_collect_path(app.extracted_directory))
        try:
            intake = take_in(
                folder, app.coursedir.assignment_id, students=Path(self.students) if self.students else None
            )
        except OrderMattersError as error:
            app.fail(str(error))
        for line in intake.lines():
            self.log.warning("%s", line)
        found: dict[Path, str] = {}
        for submission in intake.submissions:
            if submission.notebook is None:
                assert submission.problem is not None
                self.log.warning("%s: %s", submission.student, submission.problem.en)
            elif (place := submission.notebook.resolve()) in found:
                self.log.warning("%s handed in together with %s: collected once", submission.student, found[place])
            else:
                found[place] = submission.student
        return found


def _suffix(name: str) -> str:
    return next((suffix for suffix in ARCHIVES if name.lower().endswith(suffix)), Path(name).suffix)
