"""The examiner as a process: one examination a window, nothing but questions leaves it, whatever connects."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import pytest
import torch

from autograder.examiner import client, grade, protocol
from autograder.examiner.address import ADDRESS_VARIABLE, KEY_VARIABLE
from autograder.examiner.judge import Examination, judge_here, seed_for
from autograder.examiner.process import ExaminerDied, ExaminerProcess
from autograder.exercises import EXERCISES

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("examiner")]

KEY = b"a course key for tests"
EXERCISE = "pair-frequencies"
RIGHT = EXERCISES[EXERCISE].reference["pair_frequencies"]


def twice_as_fast(d_model: int, base: float = 10000.0) -> torch.Tensor:
    RIGHT(d_model, base)
    return base ** (-2.0 * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


@pytest.fixture(scope="module")
def process() -> Iterator[ExaminerProcess]:
    examiner = ExaminerProcess(KEY, "cpu")
    examiner.admit()
    yield examiner
    examiner.stop()


@pytest.fixture
def examiner(process: ExaminerProcess, monkeypatch: pytest.MonkeyPatch) -> ExaminerProcess:
    """A running examiner without an open window; `grade` in this process asks it."""
    process.close()
    address, key = process.admit()
    monkeypatch.setenv(ADDRESS_VARIABLE, address)
    monkeypatch.setenv(KEY_VARIABLE, key)
    return process


def admission() -> tuple[str, str]:
    """Address and key, as the kernel that was admitted last has them."""
    return os.environ[ADDRESS_VARIABLE], os.environ[KEY_VARIABLE]


def connect(examiner: ExaminerProcess) -> Connection[Any, Any]:
    address, key = admission()
    return Client(address, authkey=bytes.fromhex(key))


def ask(connection: Connection[Any, Any], exercise: str = EXERCISE) -> bytes:
    connection.send_bytes(protocol.encode({"exercise": exercise, "answers": 1}))
    return connection.recv_bytes()


@pytest.mark.parametrize("answer", [RIGHT, twice_as_fast, lambda *_: None], ids=["right", "known mistake", "None"])
def test_the_verdict_is_the_same_as_in_process(examiner: ExaminerProcess, answer: Callable[..., Any]) -> None:
    """Through the socket or not: same cases, same judgement. `grade` itself returns nothing."""
    examiner.open("ada", EXERCISE)
    assert grade(EXERCISE, answer) is None
    closing = examiner.close()
    assert closing.verdict == judge_here(EXERCISES, EXERCISE, (answer,), seed_for(KEY, "ada", EXERCISE), "cpu")
    assert (closing.refusal, closing.fault) == (None, None)


def test_there_is_one_examination_in_a_window(examiner: ExaminerProcess) -> None:
    """The first counts; a second one, with a better answer, is refused and changes nothing."""
    examiner.open("ada", EXERCISE)
    grade(EXERCISE, twice_as_fast)
    with pytest.raises(RuntimeError, match="one examination"):
        grade(EXERCISE, RIGHT)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert verdict.score < verdict.max_score


def test_outside_a_window_there_is_no_examination(examiner: ExaminerProcess) -> None:
    """Before it opens and after it closed."""
    with pytest.raises(RuntimeError):
        grade(EXERCISE, RIGHT)
    examiner.open("ada", EXERCISE)
    assert examiner.close().verdict is None
    with pytest.raises(RuntimeError):
        grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is None


def test_another_exercise_is_refused(examiner: ExaminerProcess) -> None:
    """The window is for the exercise whose test cell runs, and stays open for it."""
    examiner.open("ada", EXERCISE)
    with pytest.raises(RuntimeError):
        grade("causal-mask", EXERCISES["causal-mask"].reference["causal_mask"])
    grade(EXERCISE, RIGHT)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert (verdict.exercise, verdict.score) == (EXERCISE, verdict.max_score)


def test_a_wrong_key_is_refused(examiner: ExaminerProcess) -> None:
    """Without the key there is not even a question, and the window is not used up."""
    examiner.open("ada", EXERCISE)
    address, _ = admission()
    with pytest.raises((AuthenticationError, OSError, EOFError)):
        Client(address, authkey=b"guessed")
    grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is not None


def test_the_key_of_an_earlier_kernel_opens_no_more(examiner: ExaminerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that one submission left behind cannot answer for the next one."""
    address, old = admission()
    _, new = examiner.admit()
    monkeypatch.setenv(KEY_VARIABLE, new)
    examiner.open("emmy", EXERCISE)
    with pytest.raises((AuthenticationError, OSError, EOFError)):
        Client(address, authkey=bytes.fromhex(old))
    grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is not None


def test_whoever_connects_and_stays_silent_keeps_nobody_waiting(examiner: ExaminerProcess) -> None:
    """One connection that never proves its key, one that never asks: others are examined."""
    address, _ = admission()
    examiner.open("ada", EXERCISE)
    with Client(address), connect(examiner):
        grade(EXERCISE, RIGHT)
        assert examiner.close().verdict is not None


@pytest.mark.parametrize("request_", [b"", b"junk", b"\0\0\0\4null", b"\0\0\0\2[]"], ids=repr)
def test_garbage_instead_of_a_request_is_dropped(examiner: ExaminerProcess, request_: bytes) -> None:
    """It gets no answer and takes no window."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as connection:
        connection.send_bytes(request_)
        with pytest.raises((EOFError, OSError)):
            connection.recv_bytes()
    grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is not None


GARBAGE = {
    "junk": b"junk",
    "nothing": b"",
    "a verdict": protocol.encode({"score": 2.0, "max_score": 2.0}),
    "too few": protocol.encode([]),
    "an endless shape": b"\0\0\0\x40" + b'[{"tensor": "float32", "shape": [2147483647], "device": "cpu"}]   ',
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
def test_garbage_instead_of_observations_is_a_refusal(examiner: ExaminerProcess, answer: bytes) -> None:
    """No points, with the reason; the examiner goes on."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as connection:
        ask(connection)
        connection.send_bytes(answer)
        assert protocol.decode(connection.recv_bytes()) == "received"
    closing = examiner.close()
    assert closing.verdict is None
    assert closing.refusal
    assert closing.fault is None


def test_a_wrong_number_of_answers_is_a_refusal(examiner: ExaminerProcess) -> None:
    """Said at once, before any question."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as connection:
        connection.send_bytes(protocol.encode({"exercise": EXERCISE, "answers": 3}))
        connection.recv_bytes()
    assert examiner.close().refusal == f"{EXERCISE} takes 1 answers"


def test_a_client_that_goes_away_leaves_no_verdict(examiner: ExaminerProcess) -> None:
    """Its window is used up: seeing the questions and coming back with other code is no way."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as connection:
        ask(connection)
    with pytest.raises(RuntimeError):
        grade(EXERCISE, RIGHT)
    closing = examiner.close()
    assert (closing.verdict, closing.refusal, closing.fault) == (None, None, None)


def test_a_second_client_is_refused_while_the_first_is_examined(examiner: ExaminerProcess) -> None:
    """The first client's verdict is the one that counts."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as first:
        questions = ask(first)
        with pytest.raises(RuntimeError):
            grade(EXERCISE, twice_as_fast)
        first.send_bytes(client.observe_all(questions, (RIGHT,)))
        first.recv_bytes()
    verdict = examiner.close().verdict
    assert verdict is not None
    assert verdict.score == verdict.max_score


def test_an_examination_that_ends_after_its_window_counts_for_nobody(examiner: ExaminerProcess) -> None:
    """Neither for its own student, nor for the next one's window."""
    examiner.open("ada", EXERCISE)
    with connect(examiner) as late:
        questions = ask(late)
        assert examiner.close().verdict is None
        examiner.open("emmy", EXERCISE)
        late.send_bytes(client.observe_all(questions, (RIGHT,)))
        late.recv_bytes()
    assert examiner.close().verdict is None


def questions_for(examiner: ExaminerProcess, student: str) -> bytes:
    examiner.open(student, EXERCISE)
    with connect(examiner) as connection:
        questions = ask(connection)
    examiner.close()
    return questions


def test_cases_repeat_for_a_student_and_differ_between_students(examiner: ExaminerProcess) -> None:
    """A regrade asks the same; copying numbers from a neighbour does not help."""
    ada, emmy, again = (questions_for(examiner, student) for student in ("ada", "emmy", "ada"))
    assert ada == again
    assert ada != emmy


class Recorder:
    """Stands between a client and the examiner and keeps every byte that goes to the client."""

    def __init__(self, address: str, key: bytes) -> None:
        self._server = Client(address, authkey=key)
        self._listener = Listener(authkey=key)
        self.address = str(self._listener.address)
        self.sent_to_client = b""
        self._thread = threading.Thread(target=self._run, args=(self._listener,), daemon=True)
        self._thread.start()

    def finish(self) -> bytes:
        """Everything that went to the client, once it has gone."""
        self._thread.join(10)
        return self.sent_to_client

    def _run(self, listener: Listener) -> None:
        with listener, listener.accept() as student, self._server, contextlib.suppress(EOFError, OSError):
            while True:
                self._server.send_bytes(student.recv_bytes())
                reply = self._server.recv_bytes()
                self.sent_to_client += reply
                student.send_bytes(reply)


@pytest.mark.parametrize("exercise", [EXERCISE, "causal-mask", "attention"])
def test_nothing_but_questions_goes_to_the_kernel(
    examiner: ExaminerProcess, monkeypatch: pytest.MonkeyPatch, exercise: str
) -> None:
    """All that a client receives are its questions and a receipt: no expected value, score, message or mistake."""
    address, key = admission()
    recorder = Recorder(address, bytes.fromhex(key))
    monkeypatch.setenv(ADDRESS_VARIABLE, recorder.address)
    answers = [EXERCISES[exercise].reference[name] for name in EXERCISES[exercise].functions]
    examiner.open("ada", exercise)
    grade(exercise, *answers)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert verdict.score == verdict.max_score

    examination = Examination(EXERCISES[exercise], seed_for(KEY, "ada", exercise), "cpu")
    sent = recorder.finish()
    assert sent == examination.questions + protocol.encode("received")
    expected = protocol.decode(client.observe_all(examination.questions, answers))
    for item in expected:
        values = item.get("returned")
        for tensor in values if isinstance(values, tuple) else (values,):
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta and tensor.numel() > 3:
                assert tensor.contiguous().view(torch.uint8).numpy().tobytes() not in sent
    for word in (*(mistake.slug for mistake in EXERCISES[exercise].mistakes), verdict.message.en, "score"):
        assert word.encode() not in sent


def test_a_fault_of_the_examiner_is_told_as_such(examiner: ExaminerProcess) -> None:
    """A window for an exercise that does not exist: no verdict, the fault by name, and the examiner lives."""
    examiner.open("ada", "no-such-exercise")
    with connect(examiner) as connection, contextlib.suppress(EOFError):
        ask(connection, "no-such-exercise")
    assert "KeyError" in str(examiner.close().fault)
    examiner.open("ada", EXERCISE)
    grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is not None


def test_a_killed_examiner_is_noticed() -> None:
    """Every command then says so, at once; stopping what is dead is no error."""
    examiner = ExaminerProcess(KEY, "cpu")
    examiner.admit()
    pid = examiner._process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    examiner._process.join()
    with pytest.raises(ExaminerDied):
        examiner.open("ada", EXERCISE)
    with pytest.raises(ExaminerDied):
        examiner.close()
    examiner.stop()


def test_an_examiner_ends_with_its_grader() -> None:
    """A stopped examiner leaves no process behind."""
    examiner = ExaminerProcess(KEY, "cpu")
    examiner.stop()
    assert examiner._process.exitcode is not None
    with pytest.raises(ExaminerDied):
        examiner.open("ada", EXERCISE)
