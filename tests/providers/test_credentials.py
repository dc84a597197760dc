"""
Keys that are made of two parts.
"""

import pytest

from vidrelay.core.errors import ConfigError
from vidrelay.providers.credentials import key_pair


def test_a_pair_is_cut_at_the_first_colon() -> None:
    """The secret may hold one itself; neither is shown by the pair."""
    pair = key_pair("AK:se:cret", who="X")
    assert pair is not None
    assert (pair.access, pair.secret) == ("AK", "se:cret")
    assert "se:cret" not in repr(pair)
    assert key_pair(None, who="X") is None


@pytest.mark.parametrize("key", ["canary", "canary:", ":canary", ""])
def test_what_is_no_pair_is_refused_unsaid(key: str) -> None:
    """The error does not tell the key."""
    with pytest.raises(ConfigError) as refused:
        key_pair(key, who="X")
    assert "canary" not in f"{refused.value.message} {refused.value.hint}"
