"""
What adapter and door agree on in the Agents API's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.replies import object_of, text_of


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in Luma's words already.
    """
    seconds = seconds_in(object_of(body, "video"), "duration")
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=seconds)
