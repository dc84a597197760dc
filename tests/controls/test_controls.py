"""
Deliberate bugs are caught. A few here; `python tests/controls/proof.py` plants them all.
"""

import pytest

from controls.bugs import BUGS
from controls.controls import TESTS, with_bug

pytestmark = pytest.mark.process


def test_there_are_bugs_enough_and_each_says_what_it_is() -> None:
    """At least twenty, each with the tests that must notice it."""
    assert len(BUGS) >= 20
    for bug in BUGS.values():
        assert bug.means
        assert bug.caught_by
        assert all((TESTS.parent / test.partition("::")[0]).exists() for test in bug.caught_by)


@pytest.mark.parametrize(
    "name", ["blind_retry", "twin_lookup_outside_the_transaction", "event_told_before_commit", "str_compare_of_tokens"]
)
def test_the_suite_catches(name) -> None:
    """At least one of the tests that should notice fails, and none of them for want of running."""
    outcome = with_bug(name)
    assert outcome.right, outcome.said
