"""
A request in Vidu's words.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.doorway import seconds_in
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, measured, pictures, together
from vidrelay.providers.replies import text_of
from vidrelay.providers.uniform import at_most, one_of, only, whole, with_extra
from vidrelay.providers.vidu import words


def prepare(request: Request, assets: Mapping[str, Asset], *, max_prompt: int) -> Prepared:
    """
    Turn the uniform fields into Vidu's body; `kind`, the last part of the address, stands beside it.

    Raises:
        InvalidRequest: Vidu cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "resolution", "seed", "stylePreset", "references", who="Vidu")
    model = request.model_version or words.DEFAULT_MODEL
    body: dict[str, Any] = {"model": model, "prompt": at_most(request.prompt, max_prompt)}
    known = model.startswith(words.MODELS)
    if request.duration is not None:
        low, high = next((span for name, span in words.DURATIONS.items() if model.startswith(name)), words.ANY_DURATION)
        body["duration"] = whole(request.duration, low, high, field="duration")
    if request.aspect_ratio is not None:
        body["aspect_ratio"] = one_of(request.aspect_ratio, words.RATIOS, field="aspectRatio", known=known)
    if request.resolution is not None:
        body["resolution"] = one_of(request.resolution, words.RESOLUTIONS, field="resolution", known=known)
    if request.seed is not None:
        body["seed"] = whole(request.seed, 0, 2**31 - 1, field="seed")
    if request.style_preset is not None:
        body["style"] = one_of(request.style_preset, ("general", "anime"), field="stylePreset")
    given = pictures(
        request,
        assets,
        who="Vidu",
        roles=(FIRST, LAST, REFERENCE),
        max_others=words.MAX_REFERENCES,
        last_alone=False,
        mixed=False,
    )
    if request.extra.get("images"):
        told = "Vidu has a call for each use of a picture: give them in references, whose roles say which."
        raise InvalidRequest(told, field="extra.images")
    measured(request, assets, min_edge=words.MIN_EDGE, max_ratio=words.MAX_RATIO, who="Vidu")
    together(request, assets, max_bytes=words.PICTURE_BYTES, who="Vidu")
    if given:
        body["images"] = [*given.frames, *given.others]
    kinds = (words.TEXT, words.IMAGE, words.FRAMES)
    body["kind"] = words.REFERENCES if given.others else kinds[len(given.frames)]
    return as_sent(with_extra(body, request.extra))


def as_sent(parameters: Mapping[str, Any]) -> Prepared:
    """
    What is in Vidu's words already, `kind` among them.
    """
    return Prepared(
        model=text_of(parameters, "model"), parameters=parameters, seconds=seconds_in(parameters, "duration")
    )
