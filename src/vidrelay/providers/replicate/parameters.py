"""
A request in the words that most video models at Replicate share; each model's input has a schema of its own.
"""

import re
from collections.abc import Mapping

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, pictures
from vidrelay.providers.uniform import merged, only, placed, plain

MAX_REFERENCES = 16

_NAME = re.compile(r"(deployments/)?([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?::(\w+))?", re.ASCII)
_VERSION = re.compile(r"[0-9a-f]{32,64}")


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    The create call's body, with `model` or `deployment` beside it where those are part of the address.

    `modelVersion` is `owner/name`, `owner/name:version`, a version's id, or `deployments/owner/name`. What only the
    model knows goes into `extra.input`, which also says where pictures go: the first frame is `image` unless it does.

    Raises:
        InvalidRequest: No model is named, or a picture's field cannot be known.
    """
    fields = ("aspectRatio", "duration", "resolution", "seed", "negativePrompt", "references")
    only(request, *fields, who="Replicate")
    roles = (FIRST, LAST, REFERENCE)
    given = pictures(request, assets, who="Replicate", roles=roles, max_others=MAX_REFERENCES)
    extra, left = placed(request.extra, given)
    if left.last is not None or left.others:
        raise InvalidRequest(
            "Models name the field of a last frame or a reference each in their own way: say which it is, as in "
            'extra = {"input": {"end_image": {"$reference": "last_frame"}}}.',
            field="references",
        )
    inputs = {
        "prompt": request.prompt,
        "aspect_ratio": request.aspect_ratio,
        "duration": plain(request.duration),
        "resolution": request.resolution,
        "seed": request.seed,
        "negative_prompt": request.negative_prompt,
        "image": left.first,
    }
    ours = {**_address(request), "input": {name: value for name, value in inputs.items() if value is not None}}
    return as_sent(merged(ours, extra))


def as_sent(parameters: JsonObject) -> Prepared:
    """
    What is in Replicate's words already. A version that is named with its model is the same as by its id alone, and
    counts as that.
    """
    named = _NAME.fullmatch(str(parameters.get("version")))
    if named is not None and named[3] and not named[1]:
        parameters = {**parameters, "version": named[3]}
    inputs, deployment = parameters.get("input"), parameters.get("deployment")
    return Prepared(
        model=f"deployments/{deployment}" if deployment else parameters.get("model") or parameters.get("version"),
        parameters=parameters,
        seconds=seconds_in(inputs, "duration") if isinstance(inputs, Mapping) else None,
    )


def is_name(text: str) -> bool:
    """
    Whether it may be a model or a deployment: `owner/name`.
    """
    read = _NAME.fullmatch(text)
    return read is not None and not (read[1] or read[3])


def _address(request: Request) -> dict[str, str]:
    name = request.model_version or ""
    if _VERSION.fullmatch(name):
        return {"version": name}
    read = _NAME.fullmatch(name)
    if read is None or (read[1] and read[3]):
        raise InvalidRequest(
            "Replicate needs a model: owner/name, owner/name:version, a version's id, or deployments/owner/name.",
            field="modelVersion",
        )
    if read[3]:
        return {"version": read[3]}
    return {"deployment" if read[1] else "model": read[2]}
