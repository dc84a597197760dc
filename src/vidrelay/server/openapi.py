"""
The description of the HTTP interface (OpenAPI 3.1), served at `/openapi.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidrelay.core.task import State
from vidrelay.server.api import DEFAULT_PAGE, MAX_PAGE, MAX_WAIT_SECONDS
from vidrelay.server.files import MAX_INDEX
from vidrelay.server.schemas import SCHEMAS, Schema
from vidrelay.server.sender import MAX_APP_CHARACTERS, MAX_KEY_CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """
    What is said of one call: its answers by status (a named shape, a media type, or None for nothing but headers).
    """

    says: str
    answers: Mapping[int, str | None]
    problems: tuple[int, ...] = ()
    takes: str | None = None
    takes_optional: bool = False
    parameters: tuple[Schema, ...] = field(default_factory=tuple)


def _query(name: str, schema: Schema, says: str) -> Schema:
    return {"name": name, "in": "query", "schema": schema, "description": says}


def _header(name: str, schema: Schema, says: str) -> Schema:
    return {"name": name, "in": "header", "schema": schema, "description": says}


_PRINTABLE: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARACTERS, "pattern": "^[!-~]+$"}
_ID: Schema = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,199}$"},
    "description": "the task's id",
}
_ACCOUNT_NAME: Schema = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"},
    "description": "the account's name",
}
_LAST_EVENT_ID = _header("Last-Event-ID", {"type": "string", "maxLength": 18}, "go on after this event")

_STATE_LIST: Schema = {"type": "array", "items": {"enum": [*State]}, "minItems": 1}

CALLS: dict[tuple[str, str], _Told] = {
    ("POST", "/generate"): _Told(
        says="Submit a request. A new task answers 202; one that joins an earlier task or hits the cache, 200.",
        takes="Generate",
        answers={202: "Task", 200: "Task"},
        problems=(400, 409, 413, 415, 422, 503, 507),
        parameters=(
            _header("Idempotency-Key", _PRINTABLE, "the same key and request get the same task"),
            _header("X-Client-Request-Id", _PRINTABLE, "a repeated one is a resend of the same click"),
            _header(
                "X-Vidrelay-App",
                {"type": "string", "maxLength": MAX_APP_CHARACTERS, "pattern": "^[ -~]*$"},
                "the app's name",
            ),
        ),
    ),
    ("GET", "/task/{id}"): _Told(
        says="A task. With wait, the answer is held until the state changes.",
        answers={200: "Task"},
        problems=(404, 422),
        parameters=(
            _ID,
            _query("wait", {"type": "number", "minimum": 0, "maximum": MAX_WAIT_SECONDS}, "seconds to wait at most"),
            _query("seen", {"enum": [*State]}, "answer at once where the state differs from this"),
        ),
    ),
    ("GET", "/task/{id}/result"): _Told(
        says="A file of the result, whole or a range of it.",
        answers={200: "*/*", 206: "*/*", 304: None},
        problems=(400, 404, 409, 410, 416, 422),
        parameters=(_ID, _query("index", {"type": "integer", "minimum": 0, "maximum": MAX_INDEX}, "which file")),
    ),
    ("GET", "/task/{id}/events"): _Told(
        says="One task's events, to its final one.",
        answers={200: "text/event-stream", 204: None},
        problems=(400, 404),
        parameters=(_ID, _LAST_EVENT_ID),
    ),
    ("POST", "/task/{id}/cancel"): _Told(
        says="Stop a task here and, where the provider can, there.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "Task"},
        problems=(400, 404, 413, 415, 422, 503, 507),
        parameters=(_ID,),
    ),
    ("POST", "/task/{id}/resolve"): _Told(
        says="Settle an uncertain task.",
        takes="Resolution",
        answers={200: "Task"},
        problems=(400, 404, 409, 413, 415, 422, 503, 507),
        parameters=(_ID,),
    ),
    ("GET", "/tasks"): _Told(
        says="Tasks, newest first.",
        answers={200: "Tasks"},
        problems=(422, 503),
        parameters=(
            _query("state", _STATE_LIST, "only these states"),
            _query("account", {"type": "string"}, "only this account"),
            _query(
                "limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE}, "how many"
            ),
            _query("cursor", {"type": "string", "pattern": "^YmVmb3JlOj[A-Za-z0-9_-]{1,24}$"}, "next of the last page"),
        ),
    ),
    ("GET", "/events"): _Told(
        says="Every event of every task; a new stream starts with all unended tasks.",
        answers={200: "text/event-stream"},
        problems=(400,),
        parameters=(_LAST_EVENT_ID,),
    ),
    ("GET", "/file/{id}/{index}/{name}"): _Told(
        says="A file of the result by an address that a door gave out, which is good without the token.",
        answers={200: "*/*", 206: "*/*", 304: None},
        problems=(400, 404, 409, 410, 416),
        parameters=(
            _ID,
            {
                "name": "index",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": "^[0-9]{1,3}$"},
                "description": "which file",
            },
            {
                "name": "name",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": "^[0-9a-f]{64}[.][a-z0-9]{1,5}$"},
                "description": "the address's own proof, and the file's ending",
            },
        ),
    ),
    ("POST", "/assets"): _Told(
        says="Take in a reference image.",
        takes="application/octet-stream",
        answers={200: "Asset"},
        problems=(408, 413, 415, 422, 503, 507),
    ),
    ("GET", "/accounts"): _Told(says="How each account stands.", answers={200: "Accounts"}),
    ("POST", "/accounts/{name}/resume"): _Told(
        says="Lift an account's pause.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "Account"},
        problems=(400, 404, 413, 415, 422, 503, 507),
        parameters=(_ACCOUNT_NAME,),
    ),
    ("POST", "/accounts/{name}/check"): _Told(
        says="Find out whether an account's provider takes its key, without paying.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "Check"},
        problems=(400, 404, 413, 415, 422),
        parameters=(_ACCOUNT_NAME,),
    ),
    ("GET", "/cache"): _Told(
        says="The results that are kept, those used longest ago first.", answers={200: "Cache"}, problems=(503,)
    ),
    ("POST", "/cache/verify"): _Told(
        says="Forget every kept result that is not whole.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "Forgotten"},
        problems=(400, 413, 415, 422, 503, 507),
    ),
    ("POST", "/cache/clear"): _Told(
        says="Delete every kept result.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "Cleared"},
        problems=(400, 413, 415, 422, 503, 507),
    ),
    ("GET", "/stats"): _Told(says="Counters since the state directory was made.", answers={200: "Stats"}),
    ("GET", "/health"): _Told(says="That the relay is there.", answers={200: "Health"}),
    ("GET", "/metrics"): _Told(says="Counters and gauges for Prometheus.", answers={200: "text/plain"}),
    ("GET", "/openapi.json"): _Told(says="This description.", answers={200: "application/json"}),
    ("POST", "/proof"): _Told(
        says="Prove that this relay knows the token to one who proves the same. Needs no token.",
        takes="Challenge",
        answers={200: "Proof"},
    ),
    ("GET", "/login"): _Told(
        says="The page that spends a live login code. Needs no token.",
        answers={200: "text/html"},
        parameters=(_query("code", SCHEMAS["LoginCode"]["properties"]["code"], "a live code; nothing else beside it"),),
    ),
    ("POST", "/login"): _Told(
        says="Spend a login code: a cookie, and the key that the page sends as X-Vidrelay-Page. Needs no token.",
        takes="Login",
        answers={200: "LoggedIn"},
    ),
    ("POST", "/login/code"): _Told(
        says="A code that lets one browser in, once. Not for a browser's own login.",
        takes="Nothing",
        takes_optional=True,
        answers={200: "LoginCode"},
        problems=(400, 413, 415, 422),
    ),
    ("POST", "/shutdown"): _Told(
        says="Stop the relay.",
        takes="Nothing",
        takes_optional=True,
        answers={202: "Stopping"},
        problems=(400, 413, 415, 422),
    ),
}
"""What is said of each route; a test holds it to the route table."""


def describe(version: str) -> dict[str, Any]:
    """
    The whole document.
    """
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), told in CALLS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, told)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "vidrelay",
            "version": version,
            "description": "A local relay between apps and video-generation APIs. Errors are RFC 9457 problems.",
        },
        "security": [{"localToken": []}, {"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "localToken": {"type": "apiKey", "in": "header", "name": "X-Local-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
            "schemas": SCHEMAS,
        },
    }


def _operation(method: str, path: str, told: _Told) -> dict[str, Any]:
    responses = {str(status): _answer(shape) for status, shape in told.answers.items()}
    for status in (403, *told.problems, 500):
        responses[str(status)] = {
            "description": "problem",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    words = [word for word in path.replace("{", "").replace("}", "").split("/") if word]
    operation: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *words]).replace(".", "_"),
        "summary": told.says,
        "responses": responses,
    }
    if path in ("/proof", "/login"):
        operation["security"] = []
    if told.parameters:
        operation["parameters"] = list(told.parameters)
    if told.takes is not None:
        operation["requestBody"] = {"required": not told.takes_optional, "content": _content(told.takes)}
    return operation


def _answer(shape: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "as asked"}
    return answer if shape is None else {**answer, "content": _content(shape)}


def _content(shape: str) -> dict[str, Any]:
    if "/" in shape:
        return {shape: {}}
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
