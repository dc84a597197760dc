"""
Reads Replicate's list of predictions.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from vidrelay.core.task import Task
from vidrelay.providers.listing import same
from vidrelay.providers.replies import text_of


def rows_of(data: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """
    The predictions of a page; None where it is none.
    """
    rows = None if data is None else data.get("results")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None


def cursor_of(data: Mapping[str, Any]) -> str | None:
    """
    What the address of the next page names; the address itself is not followed.
    """
    try:
        return next(iter(parse_qs(urlsplit(text_of(data, "next") or "").query).get("cursor", [])), None)
    except ValueError:
        return None


def is_alike(row: Mapping[str, Any], task: Task) -> bool:
    """
    Whether a prediction has all that we sent; of a picture it can only be told that there is one.
    """
    listed, sent = row.get("input"), task.parameters.get("input") or {}
    if not isinstance(listed, Mapping) or row.get("source") not in (None, "api"):
        return False
    if any(not same(row.get(name), task.parameters.get(name)) for name in ("model", "version")):
        return False
    return all(
        bool(listed.get(name)) if _has_picture(value) else same(listed.get(name), value) for name, value in sent.items()
    )


def _has_picture(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "$asset" in value or any(map(_has_picture, value.values()))
    return isinstance(value, list) and any(map(_has_picture, value))
