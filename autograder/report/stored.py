"""The results of the last run of each assignment, kept in full so that reports and exports can be made at any time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.errors import OrderMattersError
from autograder.results import ByHand, CriterionResult, Outcome, SubmissionResult, Text, Verdict

STORED_VERSION = 1


def reports_folder(root: Path) -> Path:
    """Where class reports and the results behind them lie."""
    return root / "reports"


def store_results(root: Path, assignment: str, results: Iterable[SubmissionResult], *, sandbox: bool = True) -> Path:
    """Keep the results of a run, every language included. The file is replaced as a whole or not at all.

    Args:
        sandbox: whether the submissions ran in one.
    """
    path = reports_folder(root) / f"{assignment}.json"
    path.parent.mkdir(exist_ok=True)
    document = {
        "stored_version": STORED_VERSION,
        "assignment": assignment,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "sandbox": sandbox,
    }
    whole = path.with_suffix(".json.part")
    with whole.open("w", encoding="utf-8") as file:  # one by one: the text of a large class need not be in memory
        file.write(json.dumps(document).removesuffix("}") + ', "results": [')
        for number, result in enumerate(results):
            file.write(",\n" * bool(number) + json.dumps(result.to_json()))
        file.write("]}\n")
    os.replace(whole, path)
    return path


def last_run(root: Path, assignment: str) -> Path:
    """The file with the results of the last run. Raises OrderMattersError when there was none."""
    path = reports_folder(root) / f"{assignment}.json"
    if not path.exists():
        raise OrderMattersError(
            f"there are no results of {assignment}: {path} is missing. Grade it first "
            f"(autograder grade {assignment} …) or name a file of results with --json FILE."
        )
    return path


@dataclass(frozen=True)
class Run:
    """What a file of `store_results` says of its run; another file does not say it.

    Attributes:
        made: when the results were made.
        sandbox: whether the submissions ran in one.
    """

    made: datetime | None = None
    sandbox: bool = True


def run_of(path: Path) -> Run:
    """The run that a file of results is of."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Run(datetime.fromisoformat(document["made"]), document.get("sandbox") is not False)
    except (OSError, ValueError, KeyError, TypeError):
        return Run()


def read_results(paths: Iterable[Path], assignment: str) -> list[SubmissionResult]:
    """Results from files: what a run kept, or what `autograder grade --json` wrote; of one student the last one counts.

    A file of `--json` holds one language and no criterion titles: its texts then stand for both languages, and a
    criterion's name for its title.

    Raises:
        OrderMattersError: a file can't be read, is no such file, or has the results of another assignment.
    """
    found: dict[str, SubmissionResult] = {}
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["assignment"] != assignment:
                raise OrderMattersError(f"{path} has the results of {document['assignment']}, not of {assignment}.")
            results = (
                [SubmissionResult.from_json(item) for item in document["results"]]
                if ("stored_version" in document)
                else [_public(item) for item in document["submissions"]]
            )
        except OSError as error:
            raise OrderMattersError(f"{path} can't be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OrderMattersError(
                f"{path} holds no results of autograder grade ({type(error).__name__}: {error})."
            ) from error
        found.update({result.student: result for result in results})
    return [found[student] for student in sorted(found)]


def _text(text: str | None) -> Text | None:
    return None if text is None else Text(en=text, zh=text)


def _public(item: dict[str, Any]) -> SubmissionResult:
    """A submission of `class_to_json`. What was not judged shows there by its mistake and by having no criteria."""
    outcome = Outcome(item["outcome"])
    return SubmissionResult(
        student=item["student"],
        outcome=outcome,
        reason=_text(item["reason"]),
        seconds=float(item["seconds"]),
        exercises=tuple(
            Verdict(
                exercise=exercise["id"],
                score=float(exercise["score"]),
                max_score=float(exercise["max_score"]),
                mistake=exercise["mistake"],
                message=Text(en=exercise["message"], zh=exercise["message"]),
                criteria=tuple(
                    CriterionResult(
                        name=part["name"],
                        title=Text(en=part["name"], zh=part["name"]),
                        score=float(part["score"]),
                        max_score=float(part["max_score"]),
                        message=_text(part["message"]),
                    )
                    for part in exercise["criteria"]
                ),
                judged=outcome is Outcome.GRADED or bool(exercise["criteria"]),
            )
            for exercise in item["exercises"]
        ),
        by_hand=tuple(ByHand(entry["id"], float(entry["max_score"])) for entry in item["by_hand"]),
        repairs=tuple(Text(en=repair, zh=repair) for repair in item.get("repairs", ())),
    )
