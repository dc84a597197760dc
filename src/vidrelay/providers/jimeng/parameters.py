"""
The contract's request in Jimeng's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, JsonObject, Request
from vidrelay.providers.jimeng import words
from vidrelay.providers.pictures import FIRST, LAST, measured, pictures
from vidrelay.providers.uniform import one_of, only, whole, with_extra


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Say the request; its model is Jimeng's `req_key`, chosen by resolution and pictures where none is named.

    Raises:
        InvalidRequest: Jimeng cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "resolution", "seed", "references", who="Jimeng")
    given = pictures(request, assets, who="Jimeng", roles=(FIRST, LAST), last_alone=False)
    measured(request, assets, min_edge=words.MIN_EDGE, max_ratio=words.MAX_RATIO, who="Jimeng")
    shown = len(given.frames) or _shown(request.extra)
    body: dict[str, Any] = {"req_key": _req_key(request, shown), "prompt": request.prompt}
    frames = list(given.frames)
    if len({isinstance(one, str) for one in frames}) > 1:
        raise InvalidRequest("Jimeng takes both frames as addresses, or both as files.", field="references")
    least, most = words.REQ_KEYS.get(body["req_key"], (0, shown))
    if not least <= shown <= most:
        takes = f"{least} pictures" if least == most else f"{least} or {most} pictures"
        raise InvalidRequest(f"{body['req_key']} takes {takes}, not {shown}.", field="references")
    if frames:
        body["image_urls" if isinstance(frames[0], str) else "binary_data_base64"] = frames
    if request.seed is not None:
        body["seed"] = whole(request.seed, -1, 2**31 - 1, field="seed")
    seconds, known = None, body["req_key"] in words.REQ_KEYS
    if request.duration is not None:
        length = whole(request.duration, 1, 3600, field="duration")
        seconds = float(one_of(length, words.DURATIONS, field="duration", known=known))
        body["frames"] = int(seconds) * words.RATE + 1
    if request.aspect_ratio is not None:
        if frames:
            raise InvalidRequest("With a picture, Jimeng's clip has the picture's own shape.", field="aspectRatio")
        body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
    return Prepared(model=body["req_key"], parameters=with_extra(body, request.extra), seconds=seconds)


def _shown(extra: JsonObject) -> int:
    """
    How many pictures are given under `extra`.
    """
    listed = [extra.get(name) for name in ("image_urls", "binary_data_base64")]
    return sum(len(one) for one in listed if isinstance(one, list | tuple))


def _req_key(request: Request, frames: int) -> str:
    if request.model_version is not None:
        if request.resolution is not None:
            raise InvalidRequest("A req_key has its own resolution: give the one or the other.", field="resolution")
        return request.model_version
    keys = (words.TEXT, words.FIRST_FRAME, words.BOTH_FRAMES)[min(frames, 2)]
    if request.resolution is None:
        return keys[None]
    return keys[one_of(request.resolution, [one for one in keys if one is not None], field="resolution")]
