"""
The rules that the user's settings are.
"""

import pytest

from vidrelay.core.policy import CachePolicy


@pytest.mark.parametrize(
    ("free_bytes", "begins", "fetches"),
    [(4000, True, True), (3999, False, True), (1000, False, True), (999, False, False)],
)
def test_what_was_begun_can_be_brought_in(free_bytes: int, *, begins: bool, fetches: bool) -> None:
    """
    A paid result may use room in which nothing new is begun, so a create is never made whose result cannot be fetched.
    """
    policy = CachePolicy(min_free_bytes=4000)
    assert (policy.may_begin(free_bytes), policy.may_fetch(free_bytes)) == (begins, fetches)
