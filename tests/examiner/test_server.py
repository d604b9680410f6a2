"""The examiner as a process: one examination a window, nothing but questions leaves it, whatever connects."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.examiner import client, grade, protocol
from autograder.examiner.address import EXAMINER_VARIABLE
from autograder.examiner.judge import Examination, judge_here, seed_for
from autograder.examiner.process import Closing, Examiner, ExaminerDied, ExaminerHost
from autograder.exercises import EXERCISES

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("examiner")]

KEY = b"a course key for tests"
EXERCISE = "pair-frequencies"
RIGHT = EXERCISES[EXERCISE].reference["pair_frequencies"]


def twice_as_fast(d_model: int, base: float = 10000.0) -> torch.Tensor:
    RIGHT(d_model, base)
    return base ** (-2.0 * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


@pytest.fixture(scope="module")
def host() -> Iterator[ExaminerHost]:
    running = ExaminerHost(KEY, "cpu")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def process(host: ExaminerHost) -> Iterator[Examiner]:
    examiner = Examiner(host.address)
    yield examiner
    examiner.stop()


@pytest.fixture
def examiner(process: Examiner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Examiner]:
    """A running examiner without an open window, and a kernel admitted; `grade` in this process asks it."""
    with process.admit() as kernel:
        process.close()
        monkeypatch.setenv(EXAMINER_VARIABLE, str(kernel.fileno()))
        yield process


def connect() -> Connection[Any, Any]:
    """The kernel's end of its connection, for what `grade` would not send."""
    return Connection(os.dup(int(os.environ[EXAMINER_VARIABLE])))


def ask(connection: Connection[Any, Any], exercise: str = EXERCISE) -> bytes:
    """The answer to a request: nonce and questions, or what comes in place of them."""
    connection.send_bytes(protocol.encode({"exercise": exercise, "answers": 1}))
    return connection.recv_bytes().removeprefix(protocol.QUESTIONS)


@pytest.mark.parametrize("answer", [RIGHT, twice_as_fast, lambda *_: None], ids=["right", "known mistake", "None"])
def test_the_verdict_is_the_same_as_in_process(examiner: Examiner, answer: Callable[..., Any]) -> None:
    """Through the socket or not: same cases, same judgement. `grade` itself returns nothing."""
    examiner.open("ada", EXERCISE)
    assert grade(EXERCISE, answer) is None
    closing = examiner.close()
    assert closing.verdict == judge_here(EXERCISES, EXERCISE, (answer,), seed_for(KEY, "ada", EXERCISE), "cpu")
    assert (closing.refusal, closing.fault) == (None, None)


def test_there_is_one_examination_in_a_window(examiner: Examiner) -> None:
    """The first counts; a second one, with a better answer, is refused and changes nothing."""
    examiner.open("ada", EXERCISE)
    grade(EXERCISE, twice_as_fast)
    with pytest.raises(RuntimeError, match="one examination"):
        grade(EXERCISE, RIGHT)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert verdict.score < verdict.max_score


def test_outside_a_window_there_is_no_examination(examiner: Examiner) -> None:
    """Before it opens and after it closed."""
    with pytest.raises(RuntimeError):
        grade(EXERCISE, RIGHT)
    examiner.open("ada", EXERCISE)
    assert examiner.close().verdict is None
    with pytest.raises(RuntimeError):
        grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is None


def test_another_exercise_is_refused(examiner: Examiner) -> None:
    """The window is for the exercise whose test cell runs, and stays open for it."""
    examiner.open("ada", EXERCISE)
    with pytest.raises(RuntimeError):
        grade("causal-mask", EXERCISES["causal-mask"].reference["causal_mask"])
    grade(EXERCISE, RIGHT)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert (verdict.exercise, verdict.score) == (EXERCISE, verdict.max_score)


def test_a_kernel_admitted_earlier_is_cut_off(examiner: Examiner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that one submission left behind cannot answer for the next one."""
    with connect() as old, examiner.admit() as kernel:
        monkeypatch.setenv(EXAMINER_VARIABLE, str(kernel.fileno()))
        examiner.open("emmy", EXERCISE)
        with pytest.raises((OSError, EOFError)):
            ask(old)
        grade(EXERCISE, RIGHT)
        assert examiner.close().verdict is not None


def test_a_worker_without_the_key_gets_no_examiner(host: ExaminerHost) -> None:
    """Commands are taken from whoever was given the key, and from nobody else."""
    stranger = Examiner(replace(host.address, key=b"guessed"))
    with pytest.raises(ExaminerDied):
        stranger.admit()
    stranger.stop()


def test_workers_have_examiners_of_their_own(host: ExaminerHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of one is none of another's."""
    first, second = Examiner(host.address), Examiner(host.address)
    with first.admit(), second.admit() as kernel:
        first.open("ada", EXERCISE)
        monkeypatch.setenv(EXAMINER_VARIABLE, str(kernel.fileno()))
        with pytest.raises(RuntimeError):
            grade(EXERCISE, RIGHT)
        second.open("emmy", EXERCISE)
        grade(EXERCISE, RIGHT)
        assert second.close().verdict is not None
        assert first.close().verdict is None
    first.stop()
    second.stop()


@pytest.mark.parametrize("request_", [b"", b"junk", b"\0\0\0\4null", b"\0\0\0\2[]"], ids=repr)
def test_garbage_instead_of_a_request_is_dropped(examiner: Examiner, request_: bytes) -> None:
    """It is refused or ends the connection, takes no window, and the next kernel is examined."""
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        connection.send_bytes(request_)
        with contextlib.suppress(EOFError, OSError):
            assert connection.recv_bytes() == protocol.REFUSED
    assert examiner.close() == Closing(None)
    with examiner.admit() as kernel:
        os.environ[EXAMINER_VARIABLE] = str(kernel.fileno())
        examiner.open("ada", EXERCISE)
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
def test_garbage_instead_of_observations_is_a_refusal(examiner: Examiner, answer: bytes) -> None:
    """No points, with the reason; the examiner goes on."""
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        nonce = ask(connection)[: protocol.NONCE_BYTES]
        connection.send_bytes(nonce + answer)
        assert connection.recv_bytes() == protocol.RECEIPT
    closing = examiner.close()
    assert closing.verdict is None
    assert closing.refusal
    assert closing.fault is None


def test_a_wrong_number_of_answers_is_a_refusal(examiner: Examiner) -> None:
    """Said at once, before any question."""
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        connection.send_bytes(protocol.encode({"exercise": EXERCISE, "answers": 3}))
        connection.recv_bytes()
    assert examiner.close().refusal == f"{EXERCISE} takes 1 answers"


def test_a_client_that_goes_away_leaves_no_verdict(examiner: Examiner) -> None:
    """Its window is used up: seeing the questions and coming back with other code is no way."""
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        ask(connection)
        assert ask(connection) == protocol.REFUSED
        assert ask(connection) == protocol.REFUSED
    assert examiner.close() == Closing(None)
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        ask(connection)
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
    closing = examiner.close()
    assert (closing.verdict, closing.refusal, closing.fault) == (None, None, None)


def test_an_examination_that_ends_after_its_window_counts_for_nobody(examiner: Examiner) -> None:
    """Neither for its own student, nor for the next one's window."""
    examiner.open("ada", EXERCISE)
    with connect() as late:
        message = ask(late)
        assert examiner.close().verdict is None
        examiner.open("emmy", EXERCISE)
        late.send_bytes(answer_to(message))
        late.recv_bytes()
    assert examiner.close().verdict is None


def answer_to(message: bytes) -> bytes:
    """What an honest client sends for the questions in this message."""
    nonce, questions = message[: protocol.NONCE_BYTES], message[protocol.NONCE_BYTES :]
    return nonce + client.observe_all(questions, (RIGHT,))


def test_an_interrupted_examination_does_not_spoil_the_next(examiner: Examiner) -> None:
    """Cut off after its request, or in the middle of its answers: what is left on the line is nobody's."""
    for left in ({"exercise": EXERCISE, "answers": 1, "token": "00" * 16}, None):
        examiner.open("ada", EXERCISE)
        if left:
            with connect() as connection:
                connection.send_bytes(protocol.encode(left))
        else:
            with pytest.raises(KeyboardInterrupt):
                grade(EXERCISE, interrupted)
        assert examiner.close().verdict is None
        examiner.open("ada", "causal-mask")
        grade("causal-mask", EXERCISES["causal-mask"].reference["causal_mask"])
        verdict = examiner.close().verdict
        assert verdict is not None
        assert verdict.score == verdict.max_score


def interrupted(d_model: int, base: float = 10000.0) -> torch.Tensor:
    raise KeyboardInterrupt


def test_an_answer_from_an_earlier_examination_is_refused(examiner: Examiner) -> None:
    """The questions of a student repeat; the number that binds an answer to its examination does not."""
    examiner.open("ada", EXERCISE)
    with connect() as connection:
        recorded = answer_to(ask(connection))
        connection.send_bytes(recorded)
        connection.recv_bytes()
        assert examiner.close().verdict is not None
        examiner.open("ada", EXERCISE)
        ask(connection)
        connection.send_bytes(recorded)
        connection.recv_bytes()
    assert examiner.close() == Closing(None, refusal="it belongs to another examination")


def questions_for(examiner: Examiner, student: str) -> bytes:
    examiner.open(student, EXERCISE)
    with connect() as connection:
        message = ask(connection)
        connection.send_bytes(answer_to(message))
        connection.recv_bytes()
    examiner.close()
    return message[protocol.NONCE_BYTES :]


def test_cases_repeat_for_a_student_and_differ_between_students(examiner: Examiner) -> None:
    """A regrade asks the same; copying numbers from a neighbour does not help."""
    ada, emmy, again = (questions_for(examiner, student) for student in ("ada", "emmy", "ada"))
    assert ada == again
    assert ada != emmy


class Recorder:
    """Stands between a client and the examiner and keeps every byte that goes to the client."""

    def __init__(self, examiner: int) -> None:
        self._examiner: Connection[Any, Any] = Connection(os.dup(examiner))
        self.client, ours = socket.socketpair()
        self._client: Connection[Any, Any] = Connection(ours.detach())
        self.sent_to_client: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> list[bytes]:
        """Every message that went to the client, once it has gone."""
        self.client.close()
        self._thread.join(10)
        return self.sent_to_client

    def _run(self) -> None:
        with self._client, self._examiner, contextlib.suppress(EOFError, OSError):
            while True:
                self._examiner.send_bytes(self._client.recv_bytes())
                reply = self._examiner.recv_bytes()
                self.sent_to_client.append(reply)
                self._client.send_bytes(reply)


@pytest.mark.parametrize("exercise", [EXERCISE, "causal-mask", "attention"])
def test_nothing_but_questions_goes_to_the_kernel(
    examiner: Examiner, monkeypatch: pytest.MonkeyPatch, exercise: str
) -> None:
    """All that a client receives are its questions and a receipt: no expected value, score, message or mistake."""
    recorder = Recorder(int(os.environ[EXAMINER_VARIABLE]))
    monkeypatch.setenv(EXAMINER_VARIABLE, str(recorder.client.fileno()))
    answers = [EXERCISES[exercise].reference[name] for name in EXERCISES[exercise].functions]
    examiner.open("ada", exercise)
    grade(exercise, *answers)
    verdict = examiner.close().verdict
    assert verdict is not None
    assert verdict.score == verdict.max_score

    examination = Examination(EXERCISES[exercise], seed_for(KEY, "ada", exercise), "cpu")
    first, last = (
        message[protocol.NONCE_BYTES :] for message in recorder.finish()
    )  # each begins with the client's token
    start = len(protocol.QUESTIONS) + protocol.NONCE_BYTES
    assert first[:1] == protocol.QUESTIONS
    assert first[start:] == examination.questions
    assert last == protocol.RECEIPT
    sent = first[start:] + last
    expected = protocol.decode(client.observe_all(examination.questions, answers))
    for item in expected:
        values = item.get("returned")
        for tensor in values if isinstance(values, tuple) else (values,):
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta and tensor.numel() > 3:
                assert tensor.contiguous().view(torch.uint8).numpy().tobytes() not in sent
    for word in (*(mistake.slug for mistake in EXERCISES[exercise].mistakes), verdict.message.en, "score"):
        assert word.encode() not in sent


def test_a_fault_of_the_examiner_is_told_as_such(examiner: Examiner) -> None:
    """A window for an exercise that does not exist: no verdict, the fault by name, and the examiner lives."""
    examiner.open("ada", "no-such-exercise")
    with connect() as connection:
        assert ask(connection, "no-such-exercise") == protocol.RECEIPT
    assert "KeyError" in str(examiner.close().fault)
    examiner.open("ada", EXERCISE)
    grade(EXERCISE, RIGHT)
    assert examiner.close().verdict is not None


def children_of(host: ExaminerHost) -> set[int]:
    pid = host._process.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_a_killed_examiner_is_noticed(host: ExaminerHost) -> None:
    """Every command then says so, at once; stopping what is dead is no error, and a new one is to be had."""
    before = children_of(host)
    examiner = Examiner(host.address)
    examiner.admit().close()
    (pid,) = children_of(host) - before
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ExaminerDied):
        examiner.open("ada", EXERCISE)
    with pytest.raises(ExaminerDied):
        examiner.close()
    examiner.stop()
    another = Examiner(host.address)
    another.admit().close()
    another.stop()


def test_examiners_end_with_their_host() -> None:
    """A stopped host leaves no process and no folder behind, and nobody can reach it any more."""
    host = ExaminerHost(KEY, "cpu")
    assert Path(host.address.path).exists()
    host.stop()
    assert host._process.returncode is not None
    assert not Path(host.address.path).parent.exists()
    with pytest.raises(ExaminerDied):
        Examiner(host.address)
