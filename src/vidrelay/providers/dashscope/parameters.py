"""
Says a request in DashScope's words. Three families of models take the same things under different names: those up to
2.6 want `size` or `img_url`, `kf2v` ones two frames by name, and the newer ones a list of typed media.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Picture, measured, pictures
from vidrelay.providers.replies import number_of, object_of, text_of
from vidrelay.providers.uniform import apart, at_most, one_of, only, whole, with_extra

DEFAULT_MODEL = "wan3.0-video"
OLD = ("wanx2.1-", "wan2.2-", "wan2.5-", "wan2.6-")
DURATIONS = {"wan2.7-": (2, 15), "wan3.0-": (2, 30)}
ANY_DURATION = (1, 60)
LONG_PROMPT, PROMPT = 20_000, 5000
"""The newest models cut a longer one; of those that are not Wan's, nobody has told us."""
MIN_EDGE = 360
"""Of the pictures for the older models."""
MAX_REFERENCES = 10
RESOLUTIONS = ("480P", "720P", "1080P")
SIZES: Mapping[str, Mapping[str, str]] = {
    "480P": {"16:9": "832*480", "9:16": "480*832", "1:1": "624*624"},
    "720P": {"16:9": "1280*720", "9:16": "720*1280", "1:1": "960*960", "4:3": "1088*832", "3:4": "832*1088"},
    "1080P": {"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1440*1440", "4:3": "1632*1248", "3:4": "1248*1632"},
}
"""What a resolution and a ratio mean for the models that want pixels."""

RATIOS: Mapping[str, tuple[str, ...]] = {
    "wan2.7-": ("16:9", "9:16", "1:1", "4:3", "3:4"),
    "wan3.0-": ("16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "9:21", "adaptive"),
}
"""Of the newer models; the last three are not documented for all that a clip can be made of."""
TWO_FRAMES = ("kf2v", "wan2.7-i2v")
"""What the names of models contain that make a clip from a first frame on, a last one added."""


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Turn the uniform fields into the model's own.

    Raises:
        InvalidRequest: The model cannot do it; names the field and what it accepts.
    """
    fields = ("aspectRatio", "duration", "resolution", "seed", "negativePrompt", "references")
    only(request, *fields, who="DashScope")
    model = request.model_version or DEFAULT_MODEL
    newest = model.startswith("wan3.0-")
    longest = PROMPT if model.startswith("wan") and not newest else LONG_PROMPT
    told: dict[str, Any] = {"prompt": at_most(request.prompt, longest)}
    if request.negative_prompt is not None:
        if newest:
            raise InvalidRequest(f"{model} takes no negative prompt.", field="negativePrompt")
        told["negative_prompt"] = request.negative_prompt
    asked: dict[str, Any] = {}
    if request.duration is not None:
        low, high = next((span for name, span in DURATIONS.items() if model.startswith(name)), ANY_DURATION)
        asked["duration"] = whole(request.duration, low, high, field="duration")
    if request.seed is not None:
        asked["seed"] = whole(request.seed, 0, 2**31 - 1, field="seed")
    more, extra = apart(request.extra, "input", "media")
    told |= _pictures(request, assets, model, more)
    asked |= _shape(request, model)
    return as_sent(with_extra({"model": model, "input": told, "parameters": asked}, extra))


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in DashScope's words already. A length of -1 is left to the model.
    """
    seconds = number_of(object_of(body, "parameters"), "duration")
    known = seconds if seconds is not None and seconds > 0 else None
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=known)


def service(model: str | None) -> str:
    """
    The service that a model belongs to, as it stands in the address of a create call.
    """
    return "image2video" if "kf2v" in (model or "") else "video-generation"


def beside(model: str | None) -> dict[str, str]:
    """
    What is kept with a picture: the model that it is for, since an upload serves one model only.
    """
    return {} if model is None else {"model": model}


def _shape(request: Request, model: str) -> dict[str, Any]:
    """
    How large and how wide: pixels for the older models of text, a resolution and a ratio for the others.
    """
    asked: dict[str, Any] = {}
    known = model.startswith("wan")
    resolution = request.resolution and one_of(request.resolution, RESOLUTIONS, field="resolution", known=known).upper()
    if model.startswith(OLD) and "t2v" in model:
        if resolution or request.aspect_ratio:
            sizes = SIZES[resolution or "720P"]
            asked["size"] = sizes[one_of(request.aspect_ratio or "16:9", tuple(sizes), field="aspectRatio")]
        return asked
    if resolution:
        asked["resolution"] = resolution
    if request.aspect_ratio is not None:
        if model.startswith(OLD):
            raise InvalidRequest(f"{model} takes no ratio: the picture has it.", field="aspectRatio")
        ratios = next((taken for name, taken in RATIOS.items() if model.startswith(name)), ())
        asked["ratio"] = one_of(request.aspect_ratio, ratios, field="aspectRatio", known=bool(ratios))
    return asked


def _pictures(request: Request, assets: Mapping[str, Asset], model: str, more: list[Any]) -> dict[str, Any]:
    """
    The pictures under the names that the model's family has for them; `more` is media that the request brings itself.
    """
    old = model.startswith(OLD)
    roles: tuple[str, ...] = (FIRST, LAST, REFERENCE)
    if "kf2v" in model:
        roles = (FIRST, LAST)
    elif model.startswith("wan") and "t2v" in model:
        roles = ()
    elif old:
        roles = next((one for name, one in {"i2v": (FIRST,), "r2v": (REFERENCE,)}.items() if name in model), ())
    if old:
        measured(request, assets, min_edge=MIN_EDGE, who=model)
    # The clip that is gone on from, or the first frame, may be among what the request brings.
    begins = any(isinstance(one, Mapping) and str(one.get("type")).startswith("first_") for one in more)
    begins = begins or bool(object_of(request.extra, "input").get("first_frame_url"))
    given = pictures(
        request,
        assets,
        who=model,
        roles=roles,
        max_others=MAX_REFERENCES,
        mixed=False,
        last_alone=begins or not any(name in model for name in TWO_FRAMES),
    )
    first, last = _for(given.first, model), _for(given.last, model)
    others = [_for(one, model) for one in given.others]
    if "kf2v" in model or old:
        single = "first_frame_url" if "kf2v" in model else "img_url"
        named = {single: first, "last_frame_url": last, "reference_urls": others or None, "media": more or None}
        return {name: value for name, value in named.items() if value is not None}
    kinds = [("first_frame", first), ("last_frame", last), *(("reference_image", one) for one in others)]
    media = [{"type": kind, "url": url} for kind, url in kinds if url is not None]
    return {"media": [*media, *more]} if media or more else {}


def _for(picture: Picture | None, model: str) -> Picture | None:
    return picture if picture is None or isinstance(picture, str) else {**picture, **beside(model)}
