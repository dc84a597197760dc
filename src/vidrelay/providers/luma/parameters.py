"""
What adapter and door agree on in Dream Machine's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.replies import text_of

CLIP = {"generation_type": "video"}
"""What a create call says where nothing else is said: its path makes nothing but clips."""


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in Dream Machine's words already.
    """
    return Prepared(model=text_of(body, "model"), parameters={**CLIP, **body}, seconds=seconds_in(body, "duration"))
