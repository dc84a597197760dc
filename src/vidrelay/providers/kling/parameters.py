"""
The contract's request in Kling's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.kling import words
from vidrelay.providers.pictures import FIRST, LAST, measured, pictures
from vidrelay.providers.replies import text_of
from vidrelay.providers.uniform import at_most, one_of, only, whole, with_extra


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request; `kind`, the last part of the address, stands among the parameters.

    Raises:
        InvalidRequest: Kling cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "negativePrompt", "references", who="Kling")
    model = request.model_version or words.DEFAULT_MODEL
    body: dict[str, Any] = {"model_name": model, "prompt": at_most(request.prompt, words.MAX_PROMPT)}
    if request.negative_prompt is not None:
        body["negative_prompt"] = at_most(request.negative_prompt, words.MAX_PROMPT, field="negativePrompt")
    if request.duration is not None:
        body["duration"] = str(_seconds(model, request.duration))
    given = pictures(request, assets, who="Kling", roles=(FIRST, LAST), last_alone=False)
    measured(request, assets, min_edge=words.MIN_EDGE, max_ratio=words.MAX_RATIO, who="Kling")
    if given.first is not None:
        body["image"] = given.first
    if given.last is not None:
        body["image_tail"] = given.last
    if request.aspect_ratio is not None:
        if given:
            raise InvalidRequest("With a picture, Kling's clip has the picture's own shape.", field="aspectRatio")
        body["aspect_ratio"] = one_of(
            request.aspect_ratio, words.RATIOS, field="aspectRatio", known=model.startswith(words.MODELS)
        )
    has_picture = bool(given) or any(request.extra.get(name) for name in ("image", "image_tail"))
    if not has_picture and model in words.ONLY_OF_PICTURES:
        raise InvalidRequest(f"{model} makes clips of pictures only.", field="modelVersion")
    body["kind"] = words.IMAGE if has_picture else words.TEXT
    return as_sent(with_extra(body, request.extra))


def as_sent(parameters: Mapping[str, Any]) -> Prepared:
    """
    What is in Kling's words already, `kind` among them; the model is the provider's own default where none is named.
    """
    model = text_of(parameters, "model_name") or words.DEFAULT_MODEL
    named = {**parameters, "model_name": model}
    return Prepared(model=model, parameters=named, seconds=seconds_in(parameters, "duration"))


def _seconds(model: str, duration: float) -> int:
    if model.startswith(words.FIVE_OR_TEN):
        return int(one_of(duration, (5, 10), field="duration"))
    low, high = (3, 15) if model.startswith(words.THREE_TO_FIFTEEN) else (1, 3600)
    return whole(duration, low, high, field="duration")
