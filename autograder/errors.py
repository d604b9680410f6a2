"""What can be wrong with the course or the command, as typed errors: each names the thing, its value, the remedy."""


class OrderMattersError(Exception):
    """Base of all errors that a person can mend; the command line prints the message and exits with status 2."""


class UnknownAssignment(OrderMattersError):
    def __init__(self, assignment: str, known: list[str]) -> None:
        super().__init__(f"there is no assignment {assignment!r}. Known assignments: {', '.join(known) or 'none'}.")


class UnknownExercise(OrderMattersError):
    def __init__(self, exercise: str, known: list[str]) -> None:
        super().__init__(f"there is no exercise {exercise!r}. Known exercises: {', '.join(known)}.")


class NoSubmissions(OrderMattersError):
    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"no submissions in {path!r}. Expected {expected}.")


class NoSuchDevice(OrderMattersError):
    def __init__(self, device: str) -> None:
        super().__init__(
            f"device {device!r} was asked for, but torch sees no GPU here. Use --device cpu or --device auto."
        )


class ExaminerUnavailable(OrderMattersError):
    def __init__(self, why: str) -> None:
        super().__init__(
            f"the examiner did not answer: {why}. Run the notebook again; if it persists, run `autograder doctor`."
        )


class ProtocolError(OrderMattersError):
    """A message between a kernel and the examiner that does not follow the protocol."""


class UnreadableNotebook(OrderMattersError):
    """A file that cannot be read as a notebook; the message says why."""


class BadArchive(OrderMattersError):
    """An archive of which nothing can be taken."""

    def __init__(self, name: str, why: str, remedy: str) -> None:
        self.name, self.why = name, why
        super().__init__(f"the archive {name!r} was not unpacked: {why}. {remedy}")


class BadStudentList(OrderMattersError):
    def __init__(self, path: str, why: str, remedy: str) -> None:
        super().__init__(f"--students {path} can't be used: {why}. {remedy}")
