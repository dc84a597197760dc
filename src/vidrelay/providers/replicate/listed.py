"""
Reads Replicate's list of predictions.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from vidrelay.core.task import Task
from vidrelay.providers.listing import likeness, same
from vidrelay.providers.replies import text_of

_PAGE = "web"
"""The `source` of what was made on Replicate's own pages."""


def cursor_of(data: Mapping[str, Any]) -> str | None:
    """
    What the address of the next page names; the address itself is not followed.
    """
    try:
        return next(iter(parse_qs(urlsplit(text_of(data, "next") or "").query).get("cursor", [])), None)
    except ValueError:
        return None


def is_alike(row: Mapping[str, Any], task: Task) -> bool | None:
    """
    Whether a prediction was asked for as ours was: of the same model, version or deployment, with all of our input and
    no more. None: that cannot be told (`likeness`).
    """
    listed, sent = row.get("input"), task.parameters
    if not isinstance(listed, Mapping) or row.get("source") == _PAGE:
        return False
    asked = [name for name in ("model", "version") if sent.get(name) is not None]
    if any(row.get(name) is not None and not same(row.get(name), sent[name]) for name in asked):
        return False
    deployment = text_of(row, "deployment")
    if deployment is not None and deployment != sent.get("deployment"):
        return False
    alike = likeness(listed, sent.get("input") or {})
    untold = [name for name in ("model", "version", "deployment") if sent.get(name) and row.get(name) is None]
    return None if alike and (untold or row.get("source") not in (None, "api")) else alike
