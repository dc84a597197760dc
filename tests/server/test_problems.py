"""
Every error has one code, one status and one line in the reference.
"""

import ast
import json
import re
from pathlib import Path

import pytest

import vidrelay
from vidrelay.core.errors import (
    DiskFull,
    InvalidRequest,
    StoreBusy,
    TransportError,
    UnknownAccount,
    UnknownAsset,
    UnknownTask,
    VidrelayError,
)
from vidrelay.server.errors import STATUSES, Refusal, problem_answer, problem_of

REFERENCE = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text()
ROW = re.compile(r"^\| `([a-z_]+)` \| (\d{3}) \|", re.MULTILINE)


def family(kind: type[VidrelayError]) -> set[type[VidrelayError]]:
    return {kind}.union(*(family(child) for child in kind.__subclasses__()))


def test_every_error_of_the_tree_has_a_status():
    """
    Each code in the tree of errors has its row in the table of statuses.
    """
    codes = {kind.code for kind in family(VidrelayError) if kind.__module__ == "vidrelay.core.errors"}
    assert codes <= STATUSES.keys()


def test_the_reference_lists_every_code_with_its_status():
    """
    The reference's table of codes equals the table of statuses.
    """
    section = REFERENCE.split("## Codes of answers")[1].split("\n## ")[0]
    told = {code: int(status) for code, status in ROW.findall(section)}
    assert told == {code: status for code, (status, _) in STATUSES.items()}


def test_the_reference_lists_every_code_that_ends_a_task():
    """
    Each code of a Problem that scheduler or adapters make is in the reference. What a door makes is an answer in the
    provider's own codes, and ends no task.
    """
    section = REFERENCE.split("## Codes of a task's `error`")[1]
    told = set(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE))
    source = Path(vidrelay.__file__).parent
    found = {
        keyword.value.value
        for room in ("scheduler", "providers")
        for path in (source / room).rglob("*.py")
        if not path.stem.endswith("door")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Problem"
        for keyword in call.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }
    assert found <= told


def test_an_unknown_picture_names_its_field():
    """
    Whoever names a reference that is not there is told which field that was.
    """
    assert json.loads(bytes(problem_answer(UnknownAsset()).body))["field"] == "references"


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        (InvalidRequest(field="seed"), 422, False),
        (UnknownTask(), 404, False),
        (UnknownAccount(), 422, False),
        (StoreBusy(), 503, True),
        (DiskFull(), 507, True),
        (TransportError(maybe_sent=True), 502, True),
        (Refusal("invalid_json", "no"), 400, False),
        (Refusal("shutting_down", "no"), 503, True),
        (VidrelayError(), 500, False),
    ],
)
def test_an_error_tells_its_status_and_whether_to_try_again(error, status, retryable):
    """
    Status, code and retryable of an answer are those of the error's class.
    """
    problem = problem_of(error)
    assert (problem.status, problem.retryable, problem.code) == (status, retryable, error.code)


def test_a_passing_trouble_says_when_to_ask_again_in_body_and_header():
    """
    The header has whole seconds rounded up, and the body the exact ones.
    """
    answer = problem_answer(StoreBusy(retry_after=1.2))
    assert (b"retry-after", b"2") in answer.raw_headers
    assert b'"retryAfter":1.2' in answer.body


def test_a_503_always_says_when_to_ask_again():
    """
    A busy store that names no time is told with one second.
    """
    assert problem_of(StoreBusy()).retry_after == 1.0


def test_field_and_hint_are_told():
    """
    The field and the hint of an error stand in the body of its answer.
    """
    body = problem_answer(InvalidRequest("seed must be a whole number", field="seed", hint="leave it out")).body
    assert b'"field":"seed"' in body
    assert b'"hint":"leave it out"' in body
