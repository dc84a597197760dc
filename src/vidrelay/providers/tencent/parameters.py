"""
The contract's request in Tencent's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.pictures import FIRST, LAST, Picture, measured, pictures, together
from vidrelay.providers.tencent import words
from vidrelay.providers.uniform import at_most, one_of, only, whole, with_extra


def hunyuan(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request to Hunyuan; `kind`, a part of the action's name, stands among the parameters.

    Raises:
        InvalidRequest: It cannot do it; names the field and what it accepts.
    """
    who = "Tencent's Hunyuan"
    only(request, "resolution", "references", who=who)
    if request.model_version is not None:
        one_of(request.model_version, ("hunyuan",), field="modelVersion")
    at_most(request.prompt.strip(), words.MAX_HUNYUAN_PROMPT)
    body: dict[str, Any] = {"kind": words.HUNYUAN, "Prompt": request.prompt}
    if request.resolution is not None:
        body["Resolution"] = one_of(request.resolution, ("720p",), field="resolution")
    given = pictures(request, assets, who=who, roles=(FIRST,))
    measured(request, assets, min_edge=words.HUNYUAN_MIN_EDGE, max_ratio=words.HUNYUAN_MAX_RATIO, who=who)
    if given.first is not None:
        body["Image"] = _image(given.first)
    return Prepared(model="hunyuan", parameters=with_extra(body, request.extra))


def kling(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request to one of Kling's models there.

    Raises:
        InvalidRequest: It cannot do it; names the field and what it accepts.
    """
    who = "Tencent's Kling"
    only(request, "aspectRatio", "duration", "negativePrompt", "references", who=who)
    model = request.model_version or words.DEFAULT_MODEL
    body: dict[str, Any] = {"Model": model, "Prompt": at_most(request.prompt, words.MAX_PROMPT)}
    if request.negative_prompt is not None:
        body["NegativePrompt"] = at_most(request.negative_prompt, words.MAX_PROMPT, field="negativePrompt")
    seconds = None if request.duration is None else _seconds(model, request.duration)
    if seconds is not None:
        body["Duration"] = str(seconds)
    given = pictures(request, assets, who=who, roles=(FIRST, LAST))
    together(request, assets, max_bytes=words.PICTURE_BYTES, who=who)
    measured(request, assets, min_edge=words.MIN_EDGE, max_ratio=words.MAX_RATIO, who=who)
    if given.first is not None:
        body["Image"] = _image(given.first)
    if given.last is not None:
        body["ImageTail"] = _image(given.last)
    if request.aspect_ratio is not None:
        if given:
            raise InvalidRequest("With a picture, the clip has the picture's own shape.", field="aspectRatio")
        known = model.lower().startswith((*words.FIVE_OR_TEN, *words.THREE_TO_FIFTEEN))
        body["AspectRatio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
    has_picture = bool(given) or any(request.extra.get(name) for name in ("Image", "ImageTail"))
    body["kind"] = words.IMAGE if has_picture else words.TEXT
    return Prepared(model=model, parameters=with_extra(body, request.extra), seconds=seconds)


def _seconds(model: str, duration: float) -> int:
    if model.lower().startswith(words.FIVE_OR_TEN):
        return int(one_of(duration, (5, 10), field="duration"))
    low, high = (3, 15) if model.lower().startswith(words.THREE_TO_FIFTEEN) else (1, 3600)
    return whole(duration, low, high, field="duration")


def _image(picture: Picture) -> dict[str, Picture]:
    return {"Url" if isinstance(picture, str) else "Base64": picture}
