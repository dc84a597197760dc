"""
A request in the words that most video models at fal share; each model's input has a schema of its own.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.fal import words
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, pictures
from vidrelay.providers.uniform import merged, only, placed, plain

MAX_REFERENCES = 16
ENDPOINT = "endpoint_id"
"""The routing key: fal's own word for a model's address, taken out of the body again."""
WEBHOOK, HEADERS = "fal_webhook", "fal_headers"
ROUTING = frozenset({ENDPOINT, WEBHOOK, HEADERS})
"""What stands beside the model's input in a task's parameters: its address, a callback address, and headers."""

_HEADER = re.compile(r"[\x20-\x7e]{1,2000}")
_ENDPOINT = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*){1,7}", re.ASCII)


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    The model's input, with the model's address beside it.

    `modelVersion` is that address: `owner/app` and, where the app has several, a path. What only the model knows goes
    into `extra`, which also says where pictures go: the first frame is `image_url` unless it does. Some models want
    another spelling of a field (`"5"`, `"8s"`): that, too, is said in `extra`, in place of the field.

    Raises:
        InvalidRequest: No model is named, or a picture's field cannot be known.
    """
    fields = ("aspectRatio", "duration", "resolution", "seed", "negativePrompt", "references")
    only(request, *fields, who="fal")
    endpoint = request.model_version or ""
    if not is_endpoint(endpoint):
        raise InvalidRequest("fal needs a model: owner/app, or owner/app/path.", field="modelVersion")
    given = pictures(request, assets, who="fal", roles=(FIRST, LAST, REFERENCE), max_others=MAX_REFERENCES)
    extra, left = placed(request.extra, given)
    if left.last is not None or left.others:
        raise InvalidRequest(
            "Models name the field of a last frame or a reference each in their own way: say which it is, as in "
            'extra = {"tail_image_url": {"$reference": "last_frame"}}.',
            field="references",
        )
    ours: dict[str, Any] = {
        ENDPOINT: endpoint,
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio,
        "duration": plain(request.duration),
        "resolution": request.resolution,
        "seed": request.seed,
        "negative_prompt": request.negative_prompt,
        "image_url": left.first,
    }
    body = merged({name: value for name, value in ours.items() if value is not None}, extra)
    return as_sent(body)


def as_sent(parameters: JsonObject) -> Prepared:
    """
    A model's own input, with what stands beside it.
    """
    return Prepared(model=parameters[ENDPOINT], parameters=parameters, seconds=seconds_in(parameters, "duration"))


def input_of(parameters: JsonObject) -> dict[str, Any]:
    """
    The model's own input alone.
    """
    return {name: value for name, value in parameters.items() if name not in ROUTING}


def headers_of(parameters: JsonObject) -> dict[str, str]:
    """
    The headers that the create call has beside its body: those that fal knows, and no others.
    """
    headers = parameters.get(HEADERS)
    given = headers if isinstance(headers, Mapping) else {}
    told = {name: given.get(name) for name in words.REQUEST_HEADERS}
    return {name: value for name, value in told.items() if isinstance(value, str) and _HEADER.fullmatch(value)}


def is_endpoint(text: str) -> bool:
    """
    Whether it may be a model's address.
    """
    return _ENDPOINT.fullmatch(text) is not None and len(text) <= 200


def app_of(endpoint: str) -> str:
    """
    Where later calls about its requests go: without the path below the app.
    """
    parts = endpoint.split("/")
    return "/".join(parts[: 3 if parts[0] in words.NAMESPACES else 2])


def told_app(address: str | None, request_id: str) -> str | None:
    """
    The app that an address of fal's own for that request names; nothing else of the address is used.
    """
    try:
        path = urlsplit(address or "").path
    except ValueError:
        return None
    app, found, _ = path.removeprefix("/").partition(f"/requests/{request_id}")
    return app if found and is_endpoint(app) else None
