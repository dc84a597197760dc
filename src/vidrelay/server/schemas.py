"""
The JSON shapes of the HTTP interface, as JSON Schema for its description.
"""

from typing import Any

from vidrelay.core.task import SHOWN_REASONS, BlockReason, CancelOutcome, Priority, RemoteState, Resolution, State
from vidrelay.core.wire import (
    MAX_DURATION_SECONDS,
    MAX_NAME_CHARACTERS,
    MAX_PROMPT_CHARACTERS,
    MAX_REFERENCES,
    MIN_DURATION_SECONDS,
    SEGMENTS,
)
from vidrelay.scheduler.face import COUNTERS, WindowSource

Schema = dict[str, Any]


def _object(properties: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Schema = {"type": "string"}
# No NUL: it cannot be stored.
_WORDS: Schema = {"type": ["string", "null"], "maxLength": MAX_PROMPT_CHARACTERS, "pattern": "^[^\\u0000]*$"}
_NAME: Schema = {
    "type": ["string", "null"],
    "minLength": 1,
    "maxLength": MAX_NAME_CHARACTERS,
    "pattern": "^[^\\u0000-\\u001f\\u007f]+$",
}
_SECRET: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SECONDS: Schema = {"type": "number", "minimum": 0, "description": "seconds"}
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_FREE: Schema = {"type": ["object", "null"]}

_REFERENCE: Schema = {
    "type": "object",
    "properties": {
        "asset": {"type": ["string", "null"], "pattern": "^sha256:[0-9a-f]{64}$"},
        "path": {"type": ["string", "null"], "minLength": 1, "maxLength": 8192},
        "url": {"type": ["string", "null"], "pattern": "^[Hh][Tt][Tt][Pp][Ss]://", "maxLength": 8192},
        "role": _NAME,
    },
    "additionalProperties": False,
    "oneOf": [{"required": [kind], "properties": {kind: {"type": "string"}}} for kind in ("asset", "path", "url")],
}

_GENERATE: Schema = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "minLength": 1, "maxLength": MAX_PROMPT_CHARACTERS, "pattern": "[^\\s\\u0000]"},
        "account": _NAME,
        "provider": _NAME,
        "modelVersion": _NAME,
        "aspectRatio": {"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$"},
        "duration": {"type": ["number", "null"], "minimum": MIN_DURATION_SECONDS, "maximum": MAX_DURATION_SECONDS},
        "resolution": _NAME,
        "seed": {"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1},
        "stylePreset": _NAME,
        "negativePrompt": _WORDS,
        "references": {"type": ["array", "null"], "items": _REFERENCE, "maxItems": MAX_REFERENCES},
        "extra": {**_FREE, "description": "passed to the provider as it is"},
        "forceRefresh": {"type": ["boolean", "null"]},
        "priority": {"enum": [*Priority, None]},
        "metadata": {**_FREE, "description": "kept, never sent, never part of the fingerprint"},
    },
    "required": ["prompt"],
    "additionalProperties": False,
}

_PROBLEM = _object(
    {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "retryable": {"type": "boolean"},
        "retryAfter": _SECONDS,
        "field": _TEXT,
        "hint": _TEXT,
    },
    optional=("retryAfter", "field", "hint"),
)

_FILE = _object(
    {
        "index": _COUNT,
        "path": _TEXT,
        "url": _TEXT,
        "bytes": _COUNT,
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "mediaType": _TEXT,
    }
)

_MONEY = _object({"amount": {"type": "string", "description": "exact decimal"}, "currency": _TEXT})

_TASK = _object(
    {
        "taskId": _TEXT,
        "state": _ref("State"),
        "ahead": _or_null(_COUNT),
        "remoteState": {"enum": [*RemoteState, None]},
        "queuePosition": _or_null(_COUNT),
        "progress": _or_null({"type": "number", "minimum": 0, "maximum": 1}),
        "eta": _or_null(
            _object(
                {"seconds": _SECONDS, "low": _SECONDS, "high": _SECONDS, "basis": {"enum": ["history", "provider"]}}
            )
        ),
        "account": _TEXT,
        "provider": _TEXT,
        "modelVersion": _or_null(_TEXT),
        "request": {"type": "object"},
        "fingerprint": _TEXT,
        "deduped": {"type": "boolean"},
        "fromCache": {"type": "boolean"},
        "remoteId": _or_null(_TEXT),
        "attempts": _COUNT,
        "createdAt": _INSTANT,
        "updatedAt": _INSTANT,
        "blocked": _or_null(
            _object(
                {
                    "reason": {"enum": [*SHOWN_REASONS]},
                    "until": _or_null(_INSTANT),
                }
            )
        ),
        "joins": _COUNT,
        "cost": _or_null(_ref("Money")),
        "cancel": _or_null(_object({"outcome": {"enum": [*CancelOutcome]}})),
        "timings": _object({name: _or_null(_SECONDS) for name in SEGMENTS}),
        "result": _or_null(_object({"files": {"type": "array", "items": _ref("File")}})),
        "error": _or_null(_ref("Problem")),
        "waitingFor": _object({"reason": {"enum": [*BlockReason]}, "detail": _TEXT, "until": _or_null(_INSTANT)}),
    },
    optional=("waitingFor",),
)

_WINDOW = _object(
    {
        "name": _TEXT,
        "limit": _COUNT,
        "source": {"enum": [*WindowSource]},
        "running": _COUNT,
        "queued": _COUNT,
    }
)

_ACCOUNT = _object(
    {
        "name": _TEXT,
        "provider": _TEXT,
        "isDefault": {"type": "boolean"},
        "keyFrom": _or_null(_TEXT),
        "doorKey": {"type": "boolean"},
        "windows": {"type": "array", "items": _WINDOW},
        "quota": _or_null(
            _object({"left": {"type": "number"}, "unit": _TEXT, "resetsAt": _or_null(_INSTANT), "toldAt": _INSTANT})
        ),
        "paused": {"type": "boolean"},
        "scope": {"enum": ["creates", "calls", None]},
        "why": _or_null(_TEXT),
        "detail": _or_null(_TEXT),
        "until": _or_null(_INSTANT),
    }
)

_STATS = _object(
    {
        **dict.fromkeys(COUNTERS, _COUNT),
        "saved": _object({"clips": _COUNT, "money": {"type": "array", "items": _ref("Money")}}),
        "segments": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": _object({"median": _SECONDS, "p90": _SECONDS}),
            },
        },
    }
)

_CACHE = _object(
    {
        "results": {
            "type": "array",
            "items": _object(
                {"taskId": _TEXT, "fingerprint": _TEXT, "bytes": _COUNT, "savedAt": _INSTANT, "usedAt": _INSTANT}
            ),
        },
        "bytes": _COUNT,
    }
)

_RESOLUTION: Schema = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"action": {"enum": [Resolution.RETRY, Resolution.ABANDON]}, "remoteId": {"type": "null"}},
            "required": ["action"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "action": {"const": Resolution.ADOPT},
                "remoteId": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_NAME_CHARACTERS,
                    "pattern": "^[\\x20-\\x7e]+$",
                },
            },
            "required": ["action", "remoteId"],
            "additionalProperties": False,
        },
    ]
}

SCHEMAS: dict[str, Schema] = {
    "State": {"enum": [*State]},
    "Generate": _GENERATE,
    "Resolution": _RESOLUTION,
    "Nothing": {"type": ["object", "null"], "additionalProperties": False},
    "Task": _TASK,
    "Tasks": _object({"tasks": {"type": "array", "items": _ref("Task")}, "next": _or_null(_TEXT)}),
    "File": _FILE,
    "Money": _MONEY,
    "Problem": _PROBLEM,
    "Asset": _object({"asset": _TEXT, "width": _COUNT, "height": _COUNT, "bytes": _COUNT}),
    "Account": _ACCOUNT,
    "Accounts": _object({"accounts": {"type": "array", "items": _ref("Account")}}),
    "Check": _object({"account": _TEXT, "ok": _or_null({"type": "boolean"}), "detail": _TEXT}),
    "Cache": _CACHE,
    "Forgotten": _object({"forgotten": {"type": "array", "items": _TEXT}}),
    "Cleared": _object({"cleared": _COUNT}),
    "Stats": {**_STATS, "additionalProperties": _COUNT},
    "Health": _object({"status": {"const": "ok"}, "version": _TEXT}),
    "Stopping": _object({"status": {"const": "stopping"}}),
    "Challenge": {
        **_object({name: {"type": "string", "pattern": "^[0-9a-f]{64}$"} for name in ("nonce", "mac")}),
        "additionalProperties": False,
    },
    "Proof": _object({"mac": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}),
    "Login": {**_object({"code": _SECRET}), "additionalProperties": False},
    "LoggedIn": _object({"key": _SECRET}),
    "LoginCode": _object({"code": _SECRET, "seconds": _COUNT}),
}
"""Every named shape."""
