"""
Says a uniform request in Ark's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.ark import words
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Picture, pictures, together
from vidrelay.providers.replies import number_of, text_of
from vidrelay.providers.uniform import apart, one_of, only, whole, with_extra


def prepare(request: Request, assets: Mapping[str, Asset], dialect: str) -> Prepared:
    """
    Say the request in Ark's words.

    Raises:
        InvalidRequest: Ark cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "resolution", "seed", "references", who="Ark")
    model = request.model_version or (words.DEFAULT_MODEL if dialect == words.VOLCENGINE else None)
    if model is None:
        raise InvalidRequest(
            "BytePlus needs to be told the model or endpoint, as its console shows it.", field="modelVersion"
        )
    more, extra = apart(request.extra, "content")
    body: dict[str, Any] = {"model": model, "content": [*_content(request, assets, model, more), *more]}
    known = any(name in model for name in words.DURATIONS)
    if request.duration is not None:
        low, high = next((span for name, span in words.DURATIONS.items() if name in model), words.ANY_DURATION)
        body["duration"] = whole(request.duration, low, high, field="duration")
    if request.aspect_ratio is not None:
        body["ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
    if request.resolution is not None:
        takes = words.RESOLUTIONS[:-1] if any(name in model for name in words.NO_4K) else words.RESOLUTIONS
        body["resolution"] = one_of(request.resolution, takes, field="resolution", known=known)
    if request.seed is not None:
        if any(name in model for name in words.UNSEEDED):
            raise InvalidRequest(f"{model} has no seed; Seedance 1.x has.", field="seed")
        body["seed"] = whole(request.seed, words.RANDOM_SEED, words.MAX_SEED, field="seed")
    return as_sent(with_extra(body, extra))


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in Ark's words already. A length of -1 is left to the model.
    """
    seconds = number_of(body, "duration")
    known = seconds if seconds is not None and seconds > 0 else None
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=known)


def _content(request: Request, assets: Mapping[str, Asset], model: str, more: list[Any]) -> list[Any]:
    """
    The prompt, and the pictures by their roles. `more`, out of `extra.content`, comes after them: video, audio, or
    pictures that are named in another way, a first frame among them.
    """
    has_first = any(isinstance(one, Mapping) and one.get("role") == "first_frame" for one in more)
    given = pictures(
        request,
        assets,
        who="Ark",
        roles=(FIRST, LAST, REFERENCE),
        max_others=words.MAX_REFERENCES,
        last_alone=has_first or not any(name in model for name in words.DURATIONS),
    )
    together(request, assets, max_bytes=words.PICTURES_BYTES, who="Ark")
    frames = ((given.first, "first_frame"), (given.last, "last_frame"))
    return [
        {"type": "text", "text": request.prompt},
        *(_picture(picture, role) for picture, role in frames if picture is not None),
        *(_picture(picture, "reference_image") for picture in given.others),
    ]


def _picture(picture: Picture, role: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": picture}, "role": role}
