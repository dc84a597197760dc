"""
What adapter and door agree on in OpenRouter's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.providers.replies import number_of, text_of


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in OpenRouter's words already.
    """
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=number_of(body, "duration"))
