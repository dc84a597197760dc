"""
Says a uniform request in new-api's words, and writes those words as a body.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.messages import Form, FormFile
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.new_api import words
from vidrelay.providers.pictures import FIRST, REFERENCE, pictures
from vidrelay.providers.replies import number_of, text_of
from vidrelay.providers.sizes import pixel_size
from vidrelay.providers.spelling import in_form, spelled
from vidrelay.providers.uniform import only, whole, with_extra

MAX_SECONDS = 3600
MAX_PICTURES = 16
"""No number is told; what is too many for a model, the provider behind refuses."""
FILE = "input_reference"
_PLACES = frozenset({"image", "images"})
_KNOWN = frozenset({"model", "prompt", "mode", "size", "duration", FILE, *_PLACES})
_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request in the gateway's words.

    Raises:
        InvalidRequest: It has none for it; names the field and what is accepted.
    """
    only(request, "aspectRatio", "duration", "resolution", "negativePrompt", "references", who="A new-api gateway")
    model = request.model_version
    if model is None:
        raise InvalidRequest("A gateway must be told the model.", field="modelVersion")
    if not request.prompt.strip():
        raise InvalidRequest("A gateway wants a prompt.", field="prompt")
    formed = _is_formed(model)
    body: dict[str, Any] = {"model": model, "prompt": request.prompt}
    if request.duration is not None:
        seconds = whole(request.duration, 1, MAX_SECONDS, field="duration")
        body |= {"seconds": str(seconds)} if formed else {"duration": seconds}
    size = pixel_size(request.aspect_ratio, request.resolution)
    if size is not None:
        body["size"] = "{}x{}".format(*size)
    if request.negative_prompt is not None:
        body["metadata"] = {"negative_prompt": request.negative_prompt}
    given = pictures(
        request,
        assets,
        who="A new-api gateway",
        roles=(FIRST, REFERENCE),
        max_others=1 if formed else MAX_PICTURES,
        addresses=not formed,
        # It has one list for all pictures, in which a frame would be told from a reference by nobody.
        mixed=False,
    )
    sent = [*given.frames, *given.others]
    if len(sent) == 1:
        body[_place_of_picture(model)] = sent[0]
    elif sent:
        body["images"] = sent
    parameters = with_extra(body, request.extra)
    metadata = parameters.get("metadata")
    twice = [name for name in parameters if FILE in body and isinstance(metadata, Mapping) and name in metadata]
    if twice:
        told = f"A picture for {model} goes in a form, where metadata.{twice[0]} and {twice[0]} are one."
        raise InvalidRequest(told, field=f"extra.metadata.{twice[0]}")
    return as_sent(parameters)


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in the gateway's words already.
    """
    seconds = number_of(body, "duration")
    if seconds is None and re.fullmatch(r"\d{1,5}", text_of(body, "seconds") or ""):
        seconds = float(body["seconds"])
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=seconds)


def with_picture_in_place(body: Mapping[str, Any]) -> dict[str, Any]:
    """
    A body whose model reads no forms, with its `input_reference` as its `image`: there the gateway would not see it.

    Raises:
        InvalidRequest: It has pictures in both places.
    """
    picture = body.get(FILE)
    if picture is None:
        return dict(body)
    if any(body.get(name) is not None for name in _PLACES):
        raise InvalidRequest("There are pictures in input_reference and beside it; give them in one place.", field=FILE)
    others = {name: value for name, value in body.items() if name not in (FILE, *_PLACES)}
    return {**others, _place_of_picture(text_of(body, "model") or ""): picture}


def of_form(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """
    A form as the JSON that says the same. Of a model that reads JSON alone, the gateway takes `seconds` of a form for
    the duration, and what it does not know for metadata; in JSON it does neither.
    """
    body: dict[str, Any] = {}
    for name, value in fields:
        if name == "images":
            body[name] = [*body.get(name, []), value]
        else:
            body.setdefault(FILE if name == f"{FILE}[image_url]" else name, value)
    if _is_formed(text_of(body, "model") or ""):
        return body
    seconds = body.pop("seconds", None)
    if isinstance(seconds, str) and re.fullmatch(r"\d{1,5}", seconds):
        body["duration"] = int(seconds)
    unknown = {name: _read(value) for name, value in body.items() if name not in _KNOWN and isinstance(value, str)}
    known = {name: value for name, value in body.items() if name not in unknown}
    return {**known, "metadata": unknown} if unknown else known


def form(parameters: JsonObject) -> Form | None:
    """
    The create call's body as a form, where a picture goes along as a file; None where it is JSON.
    """
    picture = parameters.get(FILE)
    if not isinstance(picture, Mapping) or "$asset" not in picture:
        return None
    media_type = picture.get("mediaType", "image/png")
    filename = f"reference.{_SUFFIXES.get(media_type, 'bin')}"
    file = FormFile(name=FILE, asset=picture["$asset"], filename=filename, media_type=media_type)
    fields = [(name, value) for name, value in _flat(parameters).items() if name != FILE and value is not None]
    return Form(fields=tuple((name, spelled(value)) for name, value in fields), files=(file,))


def typed(parameters: JsonObject) -> JsonObject:
    """
    The words with the types that they are sent as: a form knows nothing but texts.
    """
    return parameters if form(parameters) is None else in_form(_flat(parameters))


def _flat(parameters: JsonObject) -> dict[str, Any]:
    """
    A form has no objects: what it names that the gateway does not know, becomes metadata there.
    """
    metadata = parameters.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    return {**inner, **{name: value for name, value in parameters.items() if name != "metadata"}}


def _is_formed(model: str) -> bool:
    return model.startswith(words.FORMED)


def _place_of_picture(model: str) -> str:
    return FILE if _is_formed(model) else "image"


def _read(text: str) -> Any:
    """
    A form's text as the gateway reads it: a number where it is one.
    """
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?\d{1,18}\.\d{1,18}", text) else text
