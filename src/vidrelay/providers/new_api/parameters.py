"""
Says a uniform request in new-api's words, and writes those words as a body.
"""

import json
from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.messages import Form, FormFile
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.new_api import words
from vidrelay.providers.pictures import FIRST, REFERENCE, pictures
from vidrelay.providers.sizes import pixel_size
from vidrelay.providers.uniform import only, whole, with_extra

MAX_SECONDS = 3600
MAX_PICTURES = 16
"""No number is told; what is too many for a model, the provider behind refuses."""
FILE = "input_reference"
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
    formed = model.startswith(words.FORMED)
    body: dict[str, Any] = {"model": model, "prompt": request.prompt}
    seconds = None
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
        body[FILE if formed else "image"] = sent[0]
    elif sent:
        body["images"] = sent
    parameters = with_extra(body, request.extra)
    metadata = parameters.get("metadata")
    twice = [name for name in parameters if FILE in body and isinstance(metadata, Mapping) and name in metadata]
    if twice:
        told = f"A picture for {model} goes in a form, where metadata.{twice[0]} and {twice[0]} are one."
        raise InvalidRequest(told, field=f"extra.metadata.{twice[0]}")
    return Prepared(model=model, parameters=parameters, seconds=seconds)


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
    # A form has no objects: what it names that the gateway does not know, becomes metadata there.
    metadata = parameters.get("metadata")
    flat = {**(metadata if isinstance(metadata, Mapping) else {}), **parameters}
    fields = [(name, value) for name, value in flat.items() if name not in (FILE, "metadata") and value is not None]
    return Form(fields=tuple((name, _spelled(value)) for name, value in fields), files=(file,))


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
