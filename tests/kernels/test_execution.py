"""Real kernels: whatever a notebook does, execution returns in bounded time and says where and why it stopped."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.kernels import sandbox, warm
from autograder.kernels.execution import Ending, Execution, Place, execute
from autograder.kernels.limits import Limits

pytestmark = pytest.mark.slow

PLACES = {"sandbox": Place(), "no sandbox": Place(contained=False), "fresh process": Place(contained=False)}
where: ContextVar[str] = ContextVar("where", default="sandbox")

LIMITS = Limits(
    cell_timeout_s=30.0,
    test_timeout_s=2.0,
    patience_after_timeout_s=1.0,
    total_timeout_s=120.0,
    answer_interrupt_s=2.0,
)


class Run:
    """A notebook of these code cells, executed; the cells of `tests` have the test cells' limit."""

    def __init__(
        self,
        *sources: str,
        tests: tuple[int, ...] = (),
        limits: Limits = LIMITS,
        environment: dict[str, str] | None = None,
        change: Callable[[NotebookNode], object] = lambda notebook: None,
    ) -> None:
        self.notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        change(self.notebook)
        self.before: list[int] = []
        self.after: list[int] = []
        test_cells = [self.notebook.cells[index] for index in tests]
        started = time.monotonic()
        self.execution: Execution = execute(
            self.notebook,
            place=PLACES[where.get()],
            limits=limits,
            environment=environment or {},
            is_test=lambda cell: any(cell is test for test in test_cells),
            before_cell=lambda cell: self.before.append(self._index(cell)),
            after_cell=lambda cell: self.after.append(self._index(cell)),
        )
        self.seconds = time.monotonic() - started

    def _index(self, cell: NotebookNode) -> int:
        return next(index for index, own in enumerate(self.notebook.cells) if own is cell)

    def text(self, index: int) -> str:
        return "".join(output.text for output in self.notebook.cells[index].outputs if output.output_type == "stream")

    def error(self, index: int) -> str:
        outputs = self.notebook.cells[index].outputs
        return "".join(output.ename for output in outputs if output.output_type == "error")


def leftovers() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("om-")}


SLEEP_S = f"98765.{os.getpid()}"
"""An argument by which this test run's processes are found among all others."""


def sleepers() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            if SLEEP_S.encode() in command:
                found.append(entry.name)
    return found


@pytest.fixture(params=["sandbox", "no sandbox"])
def start(request: pytest.FixtureRequest) -> Iterator[None]:
    """A kernel in a sandbox, and one of this user."""
    token = where.set(request.param)
    yield
    where.reset(token)


@pytest.fixture(params=["sandbox", "no sandbox", "fresh process"])
def any_start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And one started anew, as on systems where forking is not safe; each takes as long as loading torch."""
    if request.param == "fresh process":
        monkeypatch.setattr(warm, "FORKING_IS_SAFE", False)
    token = where.set(request.param)
    yield
    where.reset(token)


@pytest.fixture(autouse=True)
def _own_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Short, for a socket's path may have 107 characters only; of this test alone, to see what is left in it."""
    tmp_path_factory.getbasetemp()  # pytest's own folder stays where it is
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.mark.usefixtures("any_start")
def test_outputs_are_written_and_an_error_does_not_stop_the_notebook() -> None:
    """Streams, results and errors stand in their cells; later cells run and share the state."""
    run = Run("x = 40\nprint('said')", "x + 2", "1 / 0", "print(x)", "", "x = (", "print('end')")
    assert run.execution.ending is Ending.FINISHED
    assert (run.execution.stopped_at, run.execution.timed_out) == (None, [])
    assert run.text(0) == "said\n"
    assert run.notebook.cells[1].outputs[0].data["text/plain"] == "42"
    assert (run.error(2), run.error(5)) == ("ZeroDivisionError", "SyntaxError")
    assert (run.text(3), run.text(6)) == ("40\n", "end\n")
    assert run.before == run.after == [0, 1, 2, 3, 5, 6]  # an empty cell is not run


def test_old_outputs_are_gone() -> None:
    """What was submitted as output is never taken for one; also in cells that do not run."""

    def submitted_outputs(notebook: NotebookNode) -> None:
        for cell in notebook.cells:
            cell.outputs = [nbformat.v4.new_output("execute_result", data={"text/plain": "100"}, execution_count=1)]
            cell.execution_count = 9

    run = Run("x = 1", "", "import os; os._exit(0)", "x", change=submitted_outputs)
    assert [cell.outputs for cell in run.notebook.cells] == [[], [], [], []]


def test_an_empty_notebook_finishes() -> None:
    """No cells, and only markdown."""
    assert Run().execution.ending is Ending.FINISHED


@pytest.mark.usefixtures("start")
def test_a_timeout_interrupts_and_the_notebook_goes_on() -> None:
    """The cell says so in one line, the state survives, and what follows gets less patience."""
    limits = Limits(cell_timeout_s=30.0, test_timeout_s=3.0, patience_after_timeout_s=1.0, answer_interrupt_s=5.0)
    run = Run("x = 1", "print('before')\nwhile True: pass", "print(x)", "import time; time.sleep(25)", "print('end')",
              tests=(1,), limits=limits)  # fmt: skip
    assert run.execution.ending is Ending.FINISHED
    assert run.execution.timed_out == [1, 3]
    assert run.text(1) == "before\n"
    assert run.error(1) == run.error(3) == "CellTimeoutError"
    assert (run.text(2), run.text(4)) == ("1\n", "end\n")
    assert run.after == [0, 1, 2, 3, 4]


def test_a_timeout_error_of_the_students_own_is_no_timeout() -> None:
    """A class of the same name, raised in time, is an error like any other."""
    run = Run("class CellTimeoutError(Exception): pass\nraise CellTimeoutError", "print(1)")
    assert run.execution.ending is Ending.FINISHED
    assert run.text(1) == "1\n"


def test_an_ignored_interrupt_is_stuck() -> None:
    """The kernel is killed after its patience: later cells do not run, and it does not last until the total time."""
    stubborn = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except KeyboardInterrupt:\n        pass"
    run = Run("print('first')", stubborn, "print('never')", tests=(1,))
    assert (run.execution.ending, run.execution.stopped_at) == (Ending.STUCK, 1)
    assert run.text(0) == "first\n"
    assert (run.before, run.after) == ([0, 1], [0, 1])
    assert run.notebook.cells[2].outputs == []
    assert run.seconds < 60.0  # a bound of safety, far above 2 + 2 s and below the total of 120 s


DEATHS = {
    "os._exit": ("import os; os._exit(3)", "exit status 3"),
    "SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
}


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(("code", "how"), DEATHS.values(), ids=DEATHS)
def test_a_dead_kernel_is_noticed(code: str, how: str) -> None:
    """Where and how it died; the cells before keep their outputs."""
    run = Run("print('first')", code, "print('never')")
    assert (run.execution.ending, run.execution.stopped_at) == (Ending.KERNEL_DIED, 1)
    assert how in run.execution.detail
    assert run.text(0) == "first\n"
    assert (run.before, run.after) == ([0, 1], [0, 1])


@pytest.mark.parametrize("code", ["import sys; sys.exit()", "raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_leaving_a_cell_is_an_error_of_that_cell(code: str) -> None:
    """sys.exit ends a cell, not the notebook."""
    run = Run(code, "print('after')")
    assert run.execution.ending is Ending.FINISHED
    assert run.error(0) in ("SystemExit", "KeyboardInterrupt")
    assert run.text(1) == "after\n"


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize("code", ["exit()", "quit()", "exit"])
def test_asking_the_kernel_to_quit_ends_nothing(code: str) -> None:
    """A forgotten exit() costs no later cell."""
    run = Run("print('first')", code, "print('after')")
    assert run.execution.ending is Ending.FINISHED
    assert (run.text(0), run.text(2)) == ("first\n", "after\n")


def test_the_total_time_is_a_limit_too() -> None:
    """Checked before each cell: the first one past it does not run."""
    limits = Limits(cell_timeout_s=30.0, total_timeout_s=0.001)
    run = Run("print('never')", limits=limits)
    assert (run.execution.ending, run.execution.stopped_at) == (Ending.OUT_OF_TIME, 0)
    assert (run.before, run.after) == ([], [])


def test_a_skip_execution_tag_skips_nothing() -> None:
    """nbclient would leave such a cell out, and nbgrader would give it full marks."""
    run = Run("print('ran')", change=lambda notebook: notebook.cells[0].metadata.update(tags=["skip-execution"]))
    assert run.text(0) == "ran\n"


def test_a_line_of_20_mb_does_not_stop_the_notebook() -> None:
    """One print without end of line; the next cell runs."""
    run = Run("print('x' * 20_000_000)", "print('after')")
    assert run.execution.ending is Ending.FINISHED
    assert run.text(1) == "after\n"


def test_text_that_utf8_cannot_hold_ends_in_a_result() -> None:
    """Half a surrogate pair, raised and printed: the notebook goes on and can be written afterwards."""
    run = Run("raise ValueError('half \\ud83d')", "print('half \\ud83d')", "print('after')")
    assert run.execution.ending is Ending.FINISHED
    assert (run.text(1), run.text(2)) == ("half ?\n", "after\n")
    nbformat.writes(run.notebook).encode("utf-8")


@pytest.mark.usefixtures("start")
def test_a_notebook_runs_in_a_folder_of_its_own_and_leaves_nothing() -> None:
    """Empty at the start, gone at the end."""
    code = (
        "import os\nprint(os.getcwd(), os.listdir())\nopen('left.txt', 'w').write('x')\n"
        "os.makedirs('deep/er'); os.chmod('deep', 0o500)"
    )
    before = leftovers()
    for _ in range(2):
        folder, files = Run(code).text(0).split()
        assert files == "[]"
        assert folder not in (os.getcwd(), str(Path.home()))
    assert leftovers() == before


@pytest.mark.usefixtures("any_start")
@pytest.mark.parametrize("code", ["import os; os._exit(0)", "while True: pass"], ids=["died", "timed out"])
def test_nothing_is_left_after_a_bad_end(code: str) -> None:
    """Neither folders nor processes, also ones that the kernel started."""
    before = leftovers()
    Run(f"import subprocess\nsubprocess.Popen(['sleep', '{SLEEP_S}'])", code, tests=(1,))
    assert leftovers() == before
    deadline = time.monotonic() + 10.0
    while sleepers() and time.monotonic() < deadline:  # without a sandbox, a killed process may take a moment to end
        time.sleep(0.01)
    assert not sleepers()


@pytest.mark.usefixtures("any_start")
def test_what_the_graders_user_has_set_up_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither IPython's start-up files, nor PYTHONPATH, nor PYTHONSTARTUP of whoever grades."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-own.py").write_text("loaded = True\n", encoding="utf-8")
    (tmp_path / "ipython" / "profile_default" / "ipython_config.py").write_text(
        "c = get_config()\nc.InteractiveShellApp.exec_lines = ['configured = True']\n", encoding="utf-8"
    )
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "only_mine.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.setenv("PYTHONSTARTUP", str(startup / "00-own.py"))
    run = Run("print('loaded' in globals(), 'configured' in globals())", "import only_mine")
    assert run.text(0) == "False False\n"
    assert run.error(1) == "ModuleNotFoundError"


def test_each_kernel_draws_its_own_random_numbers() -> None:
    """A fork must not repeat its parent's random state: ten numbers each, in two kernels, all different."""
    code = "import random, numpy\nprint(*[random.random() for _ in range(5)], *numpy.random.random(5))"
    drawn = [Run(code).text(0).split() for _ in range(2)]
    assert len({*drawn[0], *drawn[1]}) == 20


def test_a_figure_is_shown_as_a_picture() -> None:
    """matplotlib finds the notebook's backend, with the fonts and layout that it has anywhere else."""
    run = Run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    (output,) = [output for output in run.notebook.cells[0].outputs if output.output_type == "display_data"]
    assert output.data["image/png"].startswith("iVBORw0KGgo")


MAGICS = [
    "%matplotlib inline",
    "%matplotlib",
    "%matplotlib notebook",
    "%matplotlib widget",
    "%matplotlib qt",
    "%pylab inline",
    "%gui qt",
    "%config InlineBackend.figure_format = 'retina'",
    "%load_ext autoreload\n%autoreload 2",
    "%%time",
    "%reload_ext autoreload",
]


@pytest.mark.usefixtures("start")
def test_magics_of_other_machines_do_not_end_their_cell() -> None:
    """The code below each of them runs, and figures are still pictures."""
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    done = Run(*(f"{magic}\nprint('reached')\n{draw}" for magic in MAGICS), "x = 1")
    assert done.execution.ending is Ending.FINISHED
    for index, magic in enumerate(MAGICS):
        assert "reached" in done.text(index), (magic, done.error(index))
        assert any("image/png" in output.get("data", {}) for output in done.notebook.cells[index].outputs), magic


def test_the_kernel_has_the_variables_it_was_given() -> None:
    """And the address of the examiner is one of them."""
    run = Run("import os; print(os.environ['OF_THE_GRADER'])", environment={"OF_THE_GRADER": "said 文字"})
    assert run.text(0) == "said 文字\n"


def test_history_is_not_written_for_the_next_notebook() -> None:
    """What one student ran cannot be read by another through IPython's history; one's own is there."""
    Run("secret_of_ada = 1")
    run = Run("x = 1", "print(In[1], len(In), len(Out))")
    assert run.text(1) == "x = 1 3 0\n"


def test_without_a_sandbox_nothing_starts_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap: an error that says what to install, and the way around for trusted notebooks."""
    monkeypatch.setenv("PATH", "/nowhere")
    sandbox._problem.cache_clear()
    warm.stop_all()
    try:
        with pytest.raises(sandbox.NoSandbox, match=r"bubblewrap is not installed.*apt install.*--no-sandbox"):
            Run("print(1)")
    finally:
        sandbox._problem.cache_clear()


def test_a_sandbox_that_cannot_start_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what its start-up said, instead of an exception."""
    warm.stop_all()
    monkeypatch.setattr(sandbox, "OURS", ("autograder/kernels/zygote.py",))
    run = Run("print(1)")
    assert (run.execution.ending, run.execution.stopped_at) == (Ending.NO_KERNEL, 0)
    assert "No module named" in run.execution.detail
    assert (run.before, run.after) == ([], [])
    warm.stop_all()
