"""
What a create call in either generation's words is.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.replies import text_of


def as_sent(parameters: Mapping[str, Any]) -> Prepared:
    """
    The body as it is, with the model and the length that it names.
    """
    return Prepared(
        model=text_of(parameters, "model"), parameters=parameters, seconds=seconds_in(parameters, "duration")
    )
