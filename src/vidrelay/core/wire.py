"""
The JSON form of the records, both ways (contract section 3): plain dicts, lists and scalars of the standard library.

Names are camelCase, instants RFC 3339 UTC with exactly milliseconds, durations seconds. A null means the same as an
absent field. `request_from_json` trusts nothing: whatever comes in, it returns a `Request` or raises `InvalidRequest`.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, TypeVar

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.hosts import web_address_fault
from vidrelay.core.task import (
    Asset,
    Blocked,
    Eta,
    FileRef,
    JsonObject,
    Money,
    Priority,
    Problem,
    Reference,
    Request,
    Standing,
    State,
    Task,
    Timings,
)

T = TypeVar("T")

MAX_PROMPT_CHARACTERS = 32_768
MAX_NAME_CHARACTERS = 200
MAX_ADDRESS_CHARACTERS = 8_192
MIN_DURATION_SECONDS = 0.1
MAX_DURATION_SECONDS = 86_400
MAX_REFERENCES = 32
MAX_DEPTH = 64
TOLD_CANDIDATES = 5
PROBLEM_TYPE = "urn:vidrelay:error:"

_SEED_MIN, _SEED_MAX = -(2**63), 2**63 - 1
_RATIO = re.compile(r"[1-9][0-9]{0,4}:[1-9][0-9]{0,4}")
_ASSET = re.compile(r"sha256:[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


# Outward --------------------------------------------------------------------------------------------------------------


def instant(at: datetime) -> str:
    """
    An aware instant as `2026-11-30T12:00:00.000Z`.
    """
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def problem_json(problem: Problem) -> dict[str, Any]:
    """
    A problem as RFC 9457 tells it, with our `code`, `retryable` and, where it helps, `retryAfter`.
    """
    body: dict[str, Any] = {
        "type": PROBLEM_TYPE + problem.code,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        "retryable": problem.retryable,
    }
    if problem.retry_after is not None:
        body["retryAfter"] = problem.retry_after
    return body


def request_json(request: Request) -> dict[str, Any]:
    """
    What the app sent, in the contract's words; sending it again asks for the same. Defaults are left out.
    """
    optional = {
        "account": request.account,
        "provider": request.provider,
        "modelVersion": request.model_version,
        "aspectRatio": request.aspect_ratio,
        "duration": request.duration,
        "resolution": request.resolution,
        "seed": request.seed,
        "stylePreset": request.style_preset,
        "negativePrompt": request.negative_prompt,
        "references": [_reference_json(reference) for reference in request.references] or None,
        "extra": dict(request.extra) or None,
        "forceRefresh": request.force_refresh or None,
        "priority": None if request.priority is Priority.INTERACTIVE else request.priority.value,
        "metadata": dict(request.metadata) or None,
    }
    return {"prompt": request.prompt, **{name: value for name, value in optional.items() if value is not None}}


def task_json(
    task: Task,
    standing: Standing,
    *,
    path_of: Callable[[FileRef], PurePath],
    deduped: bool = False,
    from_cache: bool = False,
) -> dict[str, Any]:
    """
    A task as every answer and event shows it; each field of the contract is there. One that stands still has
    `waitingFor` beside them, where more is known of that than `blocked` says.

    `path_of` tells where a file is on this machine; `deduped` and `from_cache` describe the one answer to a submit.
    """
    return {
        "taskId": task.id,
        "state": task.state.value,
        "ahead": standing.ahead,
        "remoteState": task.remote_state.value if task.remote_state is not None else None,
        "queuePosition": standing.queue_position,
        "progress": standing.progress,
        "eta": _eta_json(standing.eta),
        "account": task.account,
        "provider": task.provider,
        "modelVersion": task.model_version,
        "request": request_json(task.request),
        "fingerprint": task.fingerprint,
        "deduped": deduped,
        "fromCache": from_cache,
        "remoteId": task.remote_id,
        "attempts": task.attempts,
        "createdAt": instant(task.created_at),
        "updatedAt": instant(task.updated_at),
        "blocked": _blocked_json(standing.blocked),
        "joins": task.joins,
        "cost": money_json(task.cost) if task.cost is not None else None,
        "cancel": {"outcome": task.cancel.value} if task.cancel is not None else None,
        "timings": timings_json(task.timings()),
        "result": _result_json(task, path_of) if task.state is State.DONE else None,
        "error": _error_json(task.error, standing.candidates) if task.error is not None else None,
        **_waiting_json(standing.waiting_for),
    }


def asset_json(asset: Asset) -> dict[str, Any]:
    """
    A reference image as the answer to its upload shows it; width and height are upright pixels.
    """
    return {"asset": asset.id, "width": asset.width, "height": asset.height, "bytes": asset.size_bytes}


def money_json(money: Money) -> dict[str, str]:
    """
    An amount, exact, as text.
    """
    return {"amount": format(money.amount, "f"), "currency": money.currency}


def timings_json(timings: Timings) -> dict[str, float | None]:
    """
    The segments of a task's life, in seconds.
    """
    return {
        "wait": timings.wait,
        "submit": timings.submit,
        "queue": timings.queue,
        "execute": timings.execute,
        "return": timings.return_,
        "download": timings.download,
        "total": timings.total,
    }


SEGMENTS = tuple(timings_json(Timings()))
"""The names of the segments, in the order of a task's life."""


def _reference_json(reference: Reference) -> dict[str, str]:
    if reference.path is not None:
        body = {"path": reference.path}
    elif reference.url is not None:
        body = {"url": reference.url}
    else:
        body = {"asset": reference.asset or ""}
    return body if reference.role is None else {**body, "role": reference.role}


def _eta_json(eta: Eta | None) -> dict[str, Any] | None:
    if eta is None:
        return None
    return {"seconds": eta.seconds, "low": eta.low, "high": eta.high, "basis": eta.basis}


def _blocked_json(blocked: Blocked | None) -> dict[str, Any] | None:
    if blocked is None:
        return None
    return {"reason": blocked.reason, "until": instant(blocked.until) if blocked.until is not None else None}


def _waiting_json(waiting_for: Blocked | None) -> dict[str, Any]:
    if waiting_for is None or waiting_for.detail is None:
        return {}
    until = instant(waiting_for.until) if waiting_for.until is not None else None
    return {"waitingFor": {"reason": waiting_for.reason, "detail": waiting_for.detail, "until": until}}


def _error_json(problem: Problem, candidates: tuple[str, ...]) -> dict[str, Any]:
    """
    The task's problem; that of a lost create names the jobs that may be it, for the person who settles it.
    """
    body = problem_json(problem)
    if candidates:
        more = f" and {len(candidates) - TOLD_CANDIDATES} more" if len(candidates) > TOLD_CANDIDATES else ""
        body["detail"] += f" At the provider it may be {', '.join(candidates[:TOLD_CANDIDATES])}{more}."
    return body


def _result_json(task: Task, path_of: Callable[[FileRef], PurePath]) -> dict[str, Any]:
    return {
        "files": [
            {
                "index": file.index,
                "path": str(path_of(file)),
                "url": f"/task/{task.id}/result?index={file.index}",
                "bytes": file.size_bytes,
                "sha256": file.sha256,
                "mediaType": file.media_type,
            }
            for file in task.files
        ]
    }


# Inward ---------------------------------------------------------------------------------------------------------------


def request_from_json(body: object) -> Request:
    """
    Read the body of `/generate`.

    Raises:
        InvalidRequest: It is not what the contract asks for; `field` names the part at fault.
    """
    fields = _fields(body, _REQUEST_FIELDS, at="")
    prompt = fields.get("prompt")
    if prompt is None:
        raise InvalidRequest("prompt is required", field="prompt")
    return Request(
        prompt=_prompt(prompt, "prompt"),
        account=_optional(fields, "account", _name),
        provider=_optional(fields, "provider", _name),
        model_version=_optional(fields, "modelVersion", _name),
        aspect_ratio=_optional(fields, "aspectRatio", _ratio),
        duration=_optional(fields, "duration", _duration),
        resolution=_optional(fields, "resolution", _name),
        seed=_optional(fields, "seed", _seed),
        style_preset=_optional(fields, "stylePreset", _name),
        negative_prompt=_optional(fields, "negativePrompt", _text),
        references=_optional(fields, "references", _references) or (),
        extra=_optional(fields, "extra", json_object) or {},
        force_refresh=_optional(fields, "forceRefresh", _flag) or False,
        priority=_optional(fields, "priority", _priority) or Priority.INTERACTIVE,
        metadata=_optional(fields, "metadata", json_object) or {},
    )


_REQUEST_FIELDS = frozenset(
    {
        "prompt",
        "account",
        "provider",
        "modelVersion",
        "aspectRatio",
        "duration",
        "resolution",
        "seed",
        "stylePreset",
        "negativePrompt",
        "references",
        "extra",
        "forceRefresh",
        "priority",
        "metadata",
    }
)


def no_fields(body: object, allowed: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """
    Read a small body that has no other fields than those `allowed`; None counts as empty.

    Raises:
        InvalidRequest: It is no object, or has another field.
    """
    return {} if body is None else _fields(body, allowed, at="")


def json_object(value: object, field: str) -> JsonObject:
    """
    Read an object of any JSON content, not nested deeper than 64.

    Raises:
        InvalidRequest: It is no object, or holds what JSON or the store cannot hold.
    """
    if not isinstance(value, dict):
        raise InvalidRequest(f"{field} must be an object", field=field)
    _check_json(value, field, depth=1)
    return value


def _fields(body: object, known: frozenset[str], *, at: str) -> Mapping[str, Any]:
    """
    The fields of an object that are not null, none of them unknown; `at` is the path of the object, for the error.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(f"{at or 'the body'} must be a JSON object", field=at or None)
    for name in body:
        if name not in known:
            shown = repr(name)[1:-1][:MAX_NAME_CHARACTERS] if isinstance(name, str) else repr(type(name))
            hint = "provider-specific fields go under extra" if known is _REQUEST_FIELDS else None
            raise InvalidRequest(f"unknown field: {shown}", field=f"{at}.{shown}" if at else shown, hint=hint)
    return {name: value for name, value in body.items() if value is not None}


def _optional(fields: Mapping[str, Any], name: str, read: Callable[[object, str], T]) -> T | None:
    value = fields.get(name)
    return None if value is None else read(value, name)


def _string(value: object, field: str, *, least: int, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} must be a string", field=field)
    if not least <= len(value) <= most:
        raise InvalidRequest(f"{field} must have {least} to {most} characters, not {len(value)}", field=field)
    if _UNSTORABLE.search(value):
        raise InvalidRequest(f"{field} has a NUL or half a surrogate pair in it", field=field)
    return value


def _prompt(value: object, field: str) -> str:
    text = _string(value, field, least=1, most=MAX_PROMPT_CHARACTERS)
    # A letter or digit is never dropped, and nearly every prompt begins with one; only the others are gone through.
    if not any(map(str.isalnum, text)) and not _seen(text):
        raise InvalidRequest(f"{field} is blank: it holds nothing that can be seen", field=field)
    return text


def _seen(text: str) -> str:
    # Its tables take a while, and a client that reads answers has no use for them.
    from vidrelay.core.fingerprint import normalise_prompt  # noqa: PLC0415

    return normalise_prompt(text)


def _text(value: object, field: str) -> str:
    return _string(value, field, least=0, most=MAX_PROMPT_CHARACTERS)


def _name(value: object, field: str) -> str:
    text = _string(value, field, least=1, most=MAX_NAME_CHARACTERS)
    if _CONTROL.search(text):
        raise InvalidRequest(f"{field} has a control character in it", field=field)
    return text


def _ratio(value: object, field: str) -> str:
    text = _string(value, field, least=1, most=MAX_NAME_CHARACTERS)
    if not _RATIO.fullmatch(text):
        raise InvalidRequest(f"{field} must be two whole numbers, as in 16:9", field=field)
    return text


def _duration(value: object, field: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"{field} must be a number of seconds", field=field)
    # Written so that NaN, which is neither over nor under anything, is refused too.
    if not MIN_DURATION_SECONDS <= value <= MAX_DURATION_SECONDS:
        told = f"{field} must be from {MIN_DURATION_SECONDS} to {MAX_DURATION_SECONDS} seconds"
        raise InvalidRequest(told, field=field)
    return value


def _seed(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequest(f"{field} must be a whole number", field=field)
    if not _SEED_MIN <= value <= _SEED_MAX:
        raise InvalidRequest(f"{field} must fit into 64 bits", field=field)
    return value


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{field} must be true or false", field=field)
    return value


def _priority(value: object, field: str) -> Priority:
    if isinstance(value, str) and value in set(Priority):
        return Priority(value)
    raise InvalidRequest(f"{field} must be one of: {', '.join(Priority)}", field=field)


def _references(value: object, field: str) -> tuple[Reference, ...]:
    if not isinstance(value, list):
        raise InvalidRequest(f"{field} must be a list", field=field)
    if len(value) > MAX_REFERENCES:
        raise InvalidRequest(f"{field} may name at most {MAX_REFERENCES} pictures", field=field)
    return tuple(_reference(item, f"{field}[{index}]") for index, item in enumerate(value))


def _reference(value: object, field: str) -> Reference:
    fields = _fields(value, frozenset({"asset", "path", "url", "role"}), at=field)
    if len(fields.keys() & {"asset", "path", "url"}) != 1:
        raise InvalidRequest(f"{field} must have exactly one of asset, path and url", field=field)
    role = fields.get("role")
    asset, path, url = fields.get("asset"), fields.get("path"), fields.get("url")
    if asset is not None and not (isinstance(asset, str) and _ASSET.fullmatch(asset)):
        raise InvalidRequest(f"{field}.asset must be sha256: and 64 hexadecimal digits", field=f"{field}.asset")
    return Reference(
        asset=asset,
        path=None if path is None else _string(path, f"{field}.path", least=1, most=MAX_ADDRESS_CHARACTERS),
        url=None if url is None else _web_address(url, f"{field}.url"),
        role=None if role is None else _name(role, f"{field}.role"),
    )


def _web_address(value: object, field: str) -> str:
    url = _string(value, field, least=1, most=MAX_ADDRESS_CHARACTERS)
    fault = web_address_fault(url)
    if fault is not None:
        raise InvalidRequest(f"{field} {fault}", field=field)
    return url


def _check_json(value: object, field: str, *, depth: int) -> None:
    """
    Refuse what is no JSON, cannot be stored as text, or is nested too deeply.
    """
    if depth > MAX_DEPTH and isinstance(value, dict | list):
        raise InvalidRequest(f"{field} is nested deeper than {MAX_DEPTH}", field=field)
    match value:
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise InvalidRequest(f"{field} has a name that is no string", field=field)
                _check_json(name, field, depth=depth)
                _check_json(item, field, depth=depth + 1)
        case list():
            for item in value:
                _check_json(item, field, depth=depth + 1)
        case str():
            if _UNSTORABLE.search(value):
                raise InvalidRequest(f"{field} has a NUL or half a surrogate pair in it", field=field)
        case float():
            if not math.isfinite(value):
                raise InvalidRequest(f"{field} has a number that is not finite", field=field)
        case None | bool() | int():
            pass
        case _:
            raise InvalidRequest(f"{field} has a {type(value).__name__} in it, which is no JSON", field=field)
