"""
Says a request in Zhipu's words: CogVideoX wants pixels, the Vidu models a ratio and a style.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.task import Asset, Request
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, pictures
from vidrelay.providers.replies import number_of, text_of
from vidrelay.providers.sizes import pixel_size
from vidrelay.providers.uniform import one_of, only, whole, with_extra

DEFAULT_MODEL = "cogvideox-3"
DURATIONS = (5, 10)
SIZES: Mapping[str, Mapping[str, str]] = {
    "720p": {"16:9": "1280x720", "9:16": "720x1280", "1:1": "1024x1024"},
    "1080p": {"16:9": "1920x1080", "9:16": "1080x1920"},
    "4k": {"16:9": "3840x2160"},
}
RATIOS = ("16:9", "9:16", "3:4", "4:3", "1:1")
"""Of the Vidu models; nobody has told which of them takes which."""
KNOWN_VIDU = ("viduq1-", "vidu2-")
ROLES = {"-text": (), "-image": (FIRST,), "-start-end": (FIRST, LAST), "-reference": (REFERENCE,)}
"""What a Vidu model takes, by the end of its name."""


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Turn the uniform fields into the model's own.

    Raises:
        InvalidRequest: The model cannot do it; names the field and what it accepts.
    """
    model = request.model_version or DEFAULT_MODEL
    body: dict[str, Any] = {"model": model, "prompt": request.prompt}
    if model.startswith("vidu"):
        only(request, "aspectRatio", "duration", "stylePreset", "references", who=model)
        if request.duration is not None:
            body["duration"] = whole(request.duration, 1, 60, field="duration")
        if request.aspect_ratio is not None:
            known = model.startswith(KNOWN_VIDU)
            body["aspect_ratio"] = one_of(request.aspect_ratio, RATIOS, field="aspectRatio", known=known)
        if request.style_preset is not None:
            body["style"] = one_of(request.style_preset, ("general", "anime"), field="stylePreset")
    else:
        only(request, "aspectRatio", "duration", "resolution", "references", who=model)
        if request.duration is not None and model.startswith("cogvideox"):
            body["duration"] = one_of(request.duration, DURATIONS, field="duration")
        elif request.duration is not None:
            body["duration"] = whole(request.duration, 1, 3600, field="duration")
        if request.resolution is not None or request.aspect_ratio is not None:
            body["size"] = _size(request, known=model.startswith("cogvideox"))
    roles = next((taken for end, taken in ROLES.items() if model.endswith(end)), (FIRST, LAST))
    given = pictures(request, assets, who=model, roles=roles, max_others=7, last_alone=False)
    shown = [*given.frames, *given.others]
    if shown:
        body["image_url"] = shown[0] if len(shown) == 1 and not given.others else shown
    return as_sent(with_extra(body, request.extra))


def _size(request: Request, *, known: bool) -> str:
    """
    Pixels: those that CogVideoX has, or, of a model that nobody has told us of, what was asked for.
    """
    listed = SIZES.get((request.resolution or "720p").lower(), {}).get(request.aspect_ratio or "16:9")
    pixels = None if known else pixel_size(request.aspect_ratio, request.resolution)
    if listed is None and pixels is not None:
        return "{}x{}".format(*pixels)
    sizes = SIZES[one_of(request.resolution or "720p", tuple(SIZES), field="resolution")]
    return sizes[one_of(request.aspect_ratio or "16:9", tuple(sizes), field="aspectRatio")]


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in Zhipu's words already.
    """
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=number_of(body, "duration"))
