"""
What is in Grok Imagine's words already, whichever way it came.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.providers.replies import number_of
from vidrelay.providers.xai import words


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    A create call's body; one that names no model is for the basic one.
    """
    model = str(body.get("model") or words.BASIC)
    return Prepared(model=model, parameters={**body, "model": model}, seconds=number_of(body, "duration"))
