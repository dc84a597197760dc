"""
How parameters are written where a create call is a form, which knows nothing but texts.
"""

import json
from typing import Any

from vidrelay.core.task import JsonObject


def spelled(value: Any) -> str:
    """
    A value as a form's field: a text as it is, a number with one spelling (`5.0` is `5`), anything else as JSON.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def in_form(parameters: JsonObject) -> JsonObject:
    """
    The parameters with every number, true and false as the text that a form sends; pictures and lists stay as they are.
    """
    return {
        name: spelled(value) if isinstance(value, bool | int | float) else value for name, value in parameters.items()
    }
