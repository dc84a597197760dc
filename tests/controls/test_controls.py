"""
Deliberate bugs are caught. A few here; `python tests/controls/proof.py` plants them all.
"""

import ast

import pytest

from controls.bugs import BUGS
from controls.controls import TESTS, unplantable, with_bug

pytestmark = pytest.mark.process


def test_there_are_bugs_enough_and_each_says_what_it_is() -> None:
    """At least twenty, each with the tests that must notice it."""
    assert len(BUGS) >= 20
    for bug in BUGS.values():
        assert bug.means
        assert bug.caught_by


@pytest.mark.parametrize("selected", sorted({test for bug in BUGS.values() for test in bug.caught_by}))
def test_the_tests_that_must_notice_are_there(selected) -> None:
    """Who renames a test finds here that a bug relies on it."""
    path, _, name = selected.partition("::")
    tree = ast.parse((TESTS.parent / path).read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not name or name.partition("[")[0] in functions


def test_each_bug_can_be_planted() -> None:
    """Who renames what a bug replaces finds here that it does."""
    assert unplantable() == []


@pytest.mark.parametrize(
    "name", ["blind_retry", "twin_lookup_outside_the_transaction", "event_told_before_commit", "str_compare_of_tokens"]
)
def test_the_suite_catches(name) -> None:
    """At least one of the tests that should notice fails, and none of them for want of running."""
    outcome = with_bug(name)
    assert outcome.right, outcome.said
