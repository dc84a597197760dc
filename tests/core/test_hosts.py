"""
What a host's name tells without asking anybody.
"""

import pytest

from vidrelay.core.hosts import is_loopback_host


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_the_machines_own_hosts_are_told_from_others(host: str, *, own: bool) -> None:
    """
    The name localhost and loopback addresses are this machine's, and nothing else is.
    """
    assert is_loopback_host(host) is own
