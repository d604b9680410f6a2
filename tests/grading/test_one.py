"""One submission to one result, with real kernel and examiner: whatever is handed in, a result with its reason."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.grading import one
from autograder.grading.one import Graded, Job, Terms, grade_submission
from autograder.kernels import warm
from autograder.kernels.limits import Limits
from autograder.results import Language, Outcome, Text, Verdict
from tests.conftest import TINY, Answer

KEY = b"a course key for tests"
LIMITS = Limits(
    cell_timeout_s=4.0,
    test_timeout_s=3.0,
    patience_after_timeout_s=1.0,
    answer_interrupt_s=1.0,
    memory_mib=200,
)

slow = [pytest.mark.slow, pytest.mark.xdist_group("one")]


@pytest.fixture(scope="module", autouse=True)
def _no_examiner_is_left() -> Iterator[None]:
    yield
    one.stop_examiners()


@pytest.fixture
def grade(tiny_course: Path, tmp_path: Path) -> Callable[..., Graded]:
    """Grades a notebook, or the bytes of a file, as handed in by a student."""

    def run(submitted: NotebookNode | bytes, student: str = "ada", language: Language = "en") -> Graded:
        path = tmp_path / f"{student}.ipynb"
        path.write_bytes(submitted if isinstance(submitted, bytes) else json.dumps(submitted).encode())
        return grade_submission(job(tiny_course, path, student=student, language=language))

    return run


def job(
    root: Path, notebook: Path | None, student: str = "ada", problem: Text | None = None, language: Language = "en"
) -> Job:
    return Job(root, TINY, student, notebook, problem, Terms(KEY, "cpu", language, LIMITS))


def host_of() -> int:
    return one._own_host(KEY, "cpu")._process.pid


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def verdict_of(graded: Graded, exercise: str) -> Verdict:
    (found,) = [verdict for verdict in graded.result.exercises if verdict.exercise == exercise]
    return found


def cell_of(graded: Graded, name: str) -> NotebookNode:
    assert graded.notebook is not None
    (found,) = [cell for cell in nbformat.reads(graded.notebook, as_version=4).cells if cell["id"] == name]
    return found


def shown(graded: Graded, name: str) -> str:
    return "".join(output.text for output in cell_of(graded, name).outputs if output.output_type == "stream")


def test_a_job_does_not_show_the_course_key(tiny_course: Path) -> None:
    """Jobs are logged and shown in errors of executors."""
    assert "course key" not in repr(job(tiny_course, None))


REJECTED = {
    "empty": (b"", "is empty"),
    "no JSON": (b"print(1)", "is not JSON"),
    "no cells": (b"{}", "no list of cells"),
    "a notebook of nothing": (b'{"cells": []}', f"None of the answer cells of {TINY}"),
    "another notebook": (b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', "(1 cells)"),
}


@pytest.mark.parametrize(("data", "said"), REJECTED.values(), ids=REJECTED)
def test_what_cannot_be_graded_is_rejected_with_its_reason(
    grade: Callable[..., Graded], data: bytes, said: str
) -> None:
    """No points in any exercise, no notebook to show, and why, without starting a kernel."""
    graded = grade(data)
    assert (graded.result.outcome, graded.notebook) == (Outcome.REJECTED, None)
    assert graded.result.reason is not None
    assert said in graded.result.reason.en
    assert (graded.result.score, graded.result.max_score) == (0.0, 3.0)
    assert [verdict.judged for verdict in graded.result.exercises] == [False, False]


def test_a_submission_without_a_notebook_is_rejected_with_its_problem(tiny_course: Path) -> None:
    """The reason that `find_submissions` gave is the reason that is shown."""
    problem = Text("There is no notebook in ada/.", "ada/ 中没有笔记本。")
    result = grade_submission(job(tiny_course, None, problem=problem)).result
    assert (result.outcome, result.reason) == (Outcome.REJECTED, problem)


def test_the_notebook_of_another_lesson_is_named(
    tiny_course: Path, answered: Answer, grade: Callable[..., Graded]
) -> None:
    """A student who handed in the wrong lesson learns which one it was."""
    other = tiny_course / "source" / "02-other"
    other.mkdir()
    text = (tiny_course / "source" / TINY / f"{TINY}.ipynb").read_text(encoding="utf-8")
    for name in ("pair-frequencies", "causal-mask", "reflection", "title", "imports", "draw-dots", "exercise"):
        text = text.replace(name, f"other-{name}")
    (other / "02-other.ipynb").write_text(text, encoding="utf-8")
    release = tiny_course / "release" / "02-other"
    release.mkdir()
    (release / "02-other.ipynb").write_text(text, encoding="utf-8")
    submitted = nbformat.reads(text, as_version=4)
    submitted.cells = [cell for cell in submitted.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    for cell in submitted.cells:
        cell.source = "# nothing of it"
    result = grade(submitted).result
    assert result.reason is not None
    assert result.reason.en == f"This is the notebook of 02-other, not of {TINY}."


def test_the_text_of_an_answer_is_every_cell_that_defines_it() -> None:
    """Rules are read from it: neither a second definition nor a cell that does not parse keeps a cell from them."""
    answer = "class Norm:\n    pass"
    again = "%matplotlib inline\nclass Norm(torch.nn.LayerNorm):\n    pass"
    broken = "class Norm(:\n    pass"
    assert one._text_of_answer([answer, "x = 1", broken, again], frozenset({"Norm"})) == f"{answer}\n\n{again}"
    assert one._text_of_answer([broken], frozenset({"Norm"})) == ""


STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "def causal_mask(length, device=None):\n    while True: time.sleep(1)\ncausal_mask(3)"
)
BAD_ENDINGS = {
    "a crash": ("import ctypes\nctypes.string_at(0)", "the kernel died in the cell causal-mask (signal SIGSEGV)"),
    "an endless loop that ignores interrupts": (
        STUBBORN,
        "the cell causal-mask did not end and ignored the interrupt",
    ),
    "out of memory": (
        "kept = []\nwhile True:\n    kept.append(bytearray(b'x' * 2**24))",
        "the notebook used more than 200 MiB of memory in the cell causal-mask",
    ),
    "many processes out of memory": (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        kept = bytearray(b'x' * 2**26)\n        time.sleep(60)\ntime.sleep(60)",
        "the notebook used more than 200 MiB of memory in the cell causal-mask",
    ),
    "a dead warm process": (
        "import time\ntime.sleep(30)",
        "the warm process: the kernel died in the cell causal-mask (its sandbox ended)",
    ),
}


class TestWithAKernel:
    """Everything below runs notebooks."""

    pytestmark = slow

    def test_a_right_submission(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Full marks; points and message stand in the test cells in the form that nbgrader reads."""
        graded = grade(answered())
        assert (graded.result.outcome, graded.result.reason) == (Outcome.GRADED, None)
        assert (graded.result.score, graded.result.max_score) == (3.0, 3.0)
        outputs = cell_of(graded, "test-pair-frequencies").outputs
        assert shown(graded, "test-pair-frequencies") == (
            "pair-frequencies: the visible checks pass.\n2 / 2  All right.\n"
        )
        assert outputs[-1].data["text/plain"] == "2.0"

    def test_a_figure_that_no_test_needs_is_shown_as_handed_in(
        self, grade: Callable[..., Graded], answered: Answer
    ) -> None:
        """Its cell is not run, and says so; HTML and scripts beside the picture are gone."""
        submitted = answered()
        drawn = next(cell for cell in submitted.cells if cell["id"] == "draw-dots")
        drawn.outputs = [
            nbformat.v4.new_output("stream", text="three dots"),
            nbformat.v4.new_output(
                "display_data",
                data={"image/png": "aGk=", "text/html": "<script>alert(1)</script>", "text/plain": "a figure"},
                metadata={"image/png": {"alt": "Dots."}},
            ),
        ]
        cell = cell_of(grade(submitted), "draw-dots")
        assert "Not run while grading" in cell.outputs[0].text
        assert "three dots" in cell.outputs[0].text
        assert cell.outputs[1].data == {"image/png": "aGk=", "text/plain": "a figure"}
        assert cell.outputs[1].metadata == {"image/png": {"alt": "Dots."}}
        assert len(cell.outputs) == 2

    def test_all_cells_run_when_asked_for(self, tiny_course: Path, tmp_path: Path, answered: Answer) -> None:
        """Then the figure is the grader's own, drawn in the sandbox."""
        path = tmp_path / "ada.ipynb"
        path.write_text(nbformat.writes(answered()), encoding="utf-8")
        whole = job(tiny_course, path)
        graded = grade_submission(replace(whole, terms=replace(whole.terms, all_cells=True)))
        assert graded.result.score == 3.0
        (figure,) = [o for o in cell_of(graded, "draw-dots").outputs if o.output_type == "display_data"]
        assert figure.metadata["image/png"]["alt"] == "3 dots, each lower than the one before."

    def test_a_regrade_gives_the_same_verdicts(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Cases repeat for the same student."""
        wrong = answered(pair_frequencies="def pair_frequencies(d_model, base=1e4):\n    return torch.zeros(d_model)")
        first, second = (grade(wrong).result.exercises for _ in range(2))
        assert first == second

    def test_an_untouched_notebook_says_that_nothing_is_answered(
        self, grade: Callable[..., Graded], answered: Answer
    ) -> None:
        """Graded, 0 points, and each exercise is unanswered: no error that the student has to guess at."""
        graded = grade(answered(pair_frequencies=None, causal_mask=None))
        assert graded.result.outcome is Outcome.GRADED
        assert [verdict.mistake for verdict in graded.result.exercises] == ["unanswered", "unanswered"]
        assert "no answer yet" in shown(graded, "test-causal-mask")

    def test_one_broken_answer_leaves_the_other(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """A syntax error in one cell costs that exercise only, and says that its name is not defined."""
        graded = grade(answered(pair_frequencies="def pair_frequencies(d_model:\n    return"))
        assert graded.result.score == 1.0
        verdict = verdict_of(graded, "pair-frequencies")
        assert verdict.mistake == "not-defined"
        assert "pair_frequencies" in verdict.message.en

    def test_a_missing_answer_is_told_as_such(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Not as a cell that is still as it was given out."""
        submitted = answered()
        submitted.cells = [cell for cell in submitted.cells if cell["id"] != "causal-mask"]
        verdict = verdict_of(grade(submitted), "causal-mask")
        assert (verdict.score, verdict.mistake) == (0.0, "answer-missing")
        assert "deleted" in verdict.message.en

    def test_an_answer_written_in_another_cell_counts(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Both answers in the first answer cell, the second cell deleted: as when the student ran it."""
        submitted = answered()
        second = next(cell for cell in submitted.cells if cell["id"] == "causal-mask")
        first = next(cell for cell in submitted.cells if cell["id"] == "pair-frequencies")
        first.source += "\n\n" + second.source
        submitted.cells.remove(second)
        assert grade(submitted).result.score == 3.0

    def test_warnings_and_prints_cost_nothing(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """nbgrader would give 0 for a line on stderr; here it is ordinary output, and the points stay."""
        noisy = (
            "import sys, warnings\n"
            "def causal_mask(length, device=None):\n"
            "    warnings.warn('slow'); print('on stderr', file=sys.stderr); print('100')\n"
            "    return torch.ones(length, length, dtype=torch.bool, device=device).tril()"
        )
        graded = grade(answered(causal_mask=noisy))
        assert graded.result.score == 3.0
        assert {o.name for o in cell_of(graded, "test-causal-mask").outputs if o.output_type == "stream"} == {"stdout"}

    def test_an_endless_answer(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Partly graded, with the reason; the other exercise keeps its points."""
        endless = "def pair_frequencies(d_model, base=1e4):\n    import time\n    while True: time.sleep(1)"
        graded = grade(answered(pair_frequencies=endless))
        assert graded.result.outcome is Outcome.PARTLY_GRADED
        verdict = verdict_of(graded, "pair-frequencies")
        assert (verdict.mistake, verdict.judged) == ("timed-out", False)
        assert verdict_of(graded, "causal-mask").score == 1.0
        assert graded.result.reason is not None
        assert "pair-frequencies" in graded.result.reason.en

    def test_a_killed_kernel_keeps_what_was_judged(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """The first exercise keeps its verdict; the second was not reached, and both reason and cell say why."""
        graded = grade(answered(causal_mask="import os\nos._exit(0)"))
        assert graded.result.outcome is Outcome.PARTLY_GRADED
        assert graded.result.score == 2.0
        assert verdict_of(graded, "causal-mask").mistake == "not-reached"
        assert graded.result.reason is not None
        assert "causal-mask" in graded.result.reason.en
        assert "not judged" in shown(graded, "test-causal-mask").lower()

    @pytest.mark.parametrize(("code", "ending"), BAD_ENDINGS.values(), ids=BAD_ENDINGS)
    def test_a_bad_ending_costs_what_was_not_judged_and_a_few_seconds(
        self, grade: Callable[..., Graded], answered: Answer, code: str, ending: str
    ) -> None:
        """What was judged keeps its points, the reason is shown, and the next submission is graded in full."""
        grade(answered())
        (zygote,) = [idle for idle in warm._idle if idle.limits == LIMITS]
        if "warm process" in ending:
            (pid,) = children_of(zygote._process.pid)
            threading.Timer(1.5, os.kill, (pid, signal.SIGKILL)).start()
        graded = grade(answered(causal_mask=code))
        assert graded.result.outcome is Outcome.PARTLY_GRADED
        assert verdict_of(graded, "pair-frequencies").score == 2.0
        verdict = verdict_of(graded, "causal-mask")
        assert (verdict.mistake, verdict.judged) == ("not-reached", False)
        assert graded.result.reason is not None
        assert ending.removeprefix("the warm process: ") in graded.result.reason.en
        assert graded.result.reason.en in shown(graded, "test-causal-mask")
        assert graded.result.seconds < 20.0  # of which the answers' own sleep and the limits below take up to five
        assert grade(answered()).result.score == 3.0

    def test_points_cannot_be_written_by_the_student(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Outputs, a replaced `grade`, a replaced client: what counts is the examiner's record."""
        forged = (
            "import autograder.examiner, autograder.examiner.client\n"
            "autograder.examiner.grade = lambda *_: 100.0\n"
            "autograder.examiner.client.ask_examiner = lambda *_: None\n"
            "def causal_mask(length, device=None): return 1"
        )
        graded = grade(answered(causal_mask=forged))
        verdict = verdict_of(graded, "causal-mask")
        assert (verdict.score, verdict.mistake) == (0.0, "no-examination")
        assert cell_of(graded, "test-causal-mask").outputs[-1].data["text/plain"] == "0.0"

    def test_a_second_examination_changes_nothing(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """An answer that examines another function inside its own examination gets a verdict on itself."""
        cheat = (
            "def causal_mask(length, device=None):\n"
            "    from autograder.examiner import grade\n"
            "    try:\n"
            "        grade('causal-mask', lambda n, device=None: torch.ones(n, n, dtype=torch.bool).tril())\n"
            "    except Exception: pass\n"
            "    return torch.ones(length, length, dtype=torch.bool)"
        )
        graded = grade(answered(causal_mask=cheat))
        assert verdict_of(graded, "causal-mask").score < 1.0

    def test_text_that_utf8_cannot_hold_is_graded(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """Half a surrogate pair in the code and in an error: a result whose texts can be written."""
        odd = (
            "def causal_mask(length, device=None):\n"
            "    if length == 4: return torch.ones(4, 4, dtype=torch.bool).tril()  # what the visible check asks\n"
            "    raise ValueError('\\ud83d')"
        )
        submitted = answered(causal_mask=odd)
        submitted.cells[0].source += "\ud83d"
        graded = grade(submitted)
        assert graded.result.outcome is Outcome.GRADED
        assert graded.notebook is not None
        graded.notebook.encode("utf-8")
        verdict_of(graded, "causal-mask").message.en.encode("utf-8")

    def test_messages_are_in_the_language_asked_for(self, grade: Callable[..., Graded], answered: Answer) -> None:
        """What the notebook shows is Chinese; the result holds both languages."""
        graded = grade(answered(), language="zh")
        assert shown(graded, "test-causal-mask").endswith("1 / 1  全部正确。\n")
        assert verdict_of(graded, "causal-mask").message.en == "All right."

    def test_an_examiner_that_died_between_two_submissions_is_replaced(
        self, grade: Callable[..., Graded], answered: Answer
    ) -> None:
        """Nobody notices: the next submission is graded in full."""
        grade(answered())
        (examiner,) = children_of(host_of())
        os.kill(examiner, signal.SIGKILL)
        os.kill(host_of(), signal.SIGKILL)
        one._own_host(KEY, "cpu")._process.wait()
        whole = grade(answered()).result
        assert (whole.outcome, whole.score) == (Outcome.GRADED, 3.0)

    def test_an_examiner_that_dies_while_a_notebook_runs_costs_that_submission_only(
        self, grade: Callable[..., Graded], answered: Answer
    ) -> None:
        """It is partly graded, with the reason; the next one is graded in full."""
        grade(answered())
        (examiner,) = children_of(host_of())
        threading.Timer(1.0, os.kill, (examiner, signal.SIGKILL)).start()
        broken = grade(answered(causal_mask="import time\ntime.sleep(2.0)")).result
        assert broken.outcome is Outcome.PARTLY_GRADED
        assert {verdict.mistake for verdict in broken.exercises if not verdict.judged} == {"examiner-died"}
        whole = grade(answered()).result
        assert (whole.outcome, whole.score) == (Outcome.GRADED, 3.0)
