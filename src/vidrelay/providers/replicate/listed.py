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
    no more. None: that cannot be told (`likeness`), or the model has another name there, or an input of ours is not
    shown: models are renamed, and one that does not know an input may drop it.
    """
    listed, sent = row.get("input"), task.parameters
    if not isinstance(listed, Mapping) or row.get("source") == _PAGE:
        return False
    asked = {name: value for name, value in (sent.get("input") or {}).items() if value is not None}
    shown = {name: value for name, value in asked.items() if listed.get(name) is not None}
    if ("prompt" in asked and "prompt" not in shown) or (asked and not shown):
        return False
    model, version = _named(sent)
    if version is not None and row.get("version") is not None and not same(row.get("version"), version):
        return False
    deployment = text_of(row, "deployment")
    if deployment is not None and _last(deployment) != _last(text_of(sent, "deployment") or ""):
        return False
    alike = likeness(listed, shown)
    if not alike:
        return alike
    told = (
        row.get("source") in (None, "api")
        and len(shown) == len(asked)
        and (version is None or row.get("version") is not None)
        and (sent.get("deployment") is None or deployment is not None)
        and (model is None or (text_of(row, "model") or "").casefold() == model.casefold())
    )
    return True if told else None


def _named(sent: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """
    The model and the version that a create names; `version` may be a version's id, `owner/name:id` or `owner/name`.
    """
    model, version = text_of(sent, "model"), text_of(sent, "version")
    if version is None or "/" not in version:
        return model, version
    name, _, version_id = version.partition(":")
    return name, version_id or None


def _last(name: str) -> str:
    return name.rpartition("/")[2].casefold()
