"""
What Veo is asked and what its operations say.
"""

import re
from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import PollOutcome, Prepared
from vidrelay.core.lifecycle import Ready, StillRunning
from vidrelay.core.media import VIDEO, family_of
from vidrelay.core.task import Asset, RemoteFile, Request
from vidrelay.providers.google import words
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, bare, pictures
from vidrelay.providers.replies import number_of, object_of, reason, text_of, told
from vidrelay.providers.uniform import length, one_of, only, with_extra
from vidrelay.providers.verdicts import NO_FILE, Meaning, failed

ID = re.compile(r"models/[A-Za-z0-9._-]{1,100}/operations/[A-Za-z0-9._-]{1,200}")
SECONDS = (4, 6, 8)
RATIOS = ("16:9", "9:16")
RESOLUTIONS = ("720p", "1080p", "4k")
MAX_REFERENCES = 16
SAMPLES = "/response/generateVideoResponse/generatedSamples"
"""Where an operation holds its clips."""
KNOWN = ("veo-3.1-", "veo-3.0-", "veo-2.0-")
"""So begin the models that these are told of."""


def prepare(request: Request, assets: Mapping[str, Asset], model: str) -> Prepared:
    """
    Say the request in Veo's words; `model` is taken out again when it is sent, since it stands in the address.

    Raises:
        InvalidRequest: Veo cannot do it; names the field and what it accepts.
    """
    known = model.startswith(KNOWN)
    fields = ("aspectRatio", "duration", "resolution", "negativePrompt", "references")
    # Google's own SDK refuses a seed to whoever has a key of this API.
    only(request, *fields, *(() if known else ("seed",)), who="Veo")
    instance: dict[str, Any] = {"prompt": request.prompt}
    parameters: dict[str, Any] = {}
    if request.duration is not None:
        parameters["durationSeconds"] = length(request.duration, SECONDS, known=known)
    if request.aspect_ratio is not None:
        parameters["aspectRatio"] = one_of(request.aspect_ratio, RATIOS, field="aspectRatio", known=known)
    if request.resolution is not None:
        parameters["resolution"] = one_of(request.resolution, RESOLUTIONS, field="resolution", known=known)
    if request.negative_prompt is not None:
        parameters["negativePrompt"] = request.negative_prompt
    if request.seed is not None:
        parameters["seed"] = request.seed
    given = pictures(
        request,
        assets,
        who="Veo",
        roles=(FIRST, LAST, REFERENCE),
        max_others=MAX_REFERENCES,
        addresses=False,
        last_alone=not known,
        mixed=not known,
    )
    if given.first is not None:
        instance["image"] = given.first
    if given.last is not None:
        instance["lastFrame"] = given.last
    if given.others:
        instance["referenceImages"] = [{"image": one, "referenceType": "asset"} for one in given.others]
    extra = dict(request.extra)
    inner = extra.get("instances")
    # One instance is all that is sent; what is said of it beside ours belongs into it.
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], Mapping):
        instance = with_extra(instance, extra.pop("instances")[0])
    body = with_extra({"model": model, "instances": [instance], "parameters": parameters}, extra)
    return as_sent(body)


def as_sent(body: Mapping[str, Any]) -> Prepared:
    """
    What is in Veo's words already, `model` beside them.
    """
    seconds = number_of(object_of(body, "parameters"), "durationSeconds")
    return Prepared(model=text_of(body, "model"), parameters=body, seconds=seconds)


def written(picture: Mapping[str, str]) -> dict[str, Any]:
    """
    A picture or a film as an instance holds it.
    """
    if family_of(picture["mediaType"]) == VIDEO:
        return {"encodedVideo": bare(picture), "encoding": picture["mediaType"]}
    return {"bytesBase64Encoded": bare(picture), "mimeType": picture["mediaType"]}


def seen(data: dict[str, Any], *, secret: str | None) -> PollOutcome:
    """
    What an operation says; `done` is absent until the end.
    """
    if data.get("done") is not True:
        return StillRunning()
    error = data.get("error")
    if isinstance(error, dict):
        code, message = words.code_of(error), text_of(error, "message") or ""
        return failed(words.meaning_of_failure(code, message), reason(code, message, secret=secret))
    response = object_of(object_of(data, "response"), "generateVideoResponse")
    outputs = _files(response.get("generatedSamples"))
    if outputs:
        return Ready(outputs=outputs)
    reasons = response.get("raiMediaFilteredReasons")
    if reasons or response.get("raiMediaFilteredCount"):
        why = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
        return failed(Meaning.MODERATED, told(why or "Google kept the clip back", secret=secret))
    return NO_FILE


def _files(samples: Any) -> tuple[RemoteFile, ...]:
    """
    The address of each clip, or its place inside the answer, where the SDK's types know it as well.
    """
    found: list[RemoteFile] = []
    for number, sample in enumerate(samples if isinstance(samples, list) else ()):
        video = object_of(sample, "video") if isinstance(sample, Mapping) else {}
        uri = text_of(video, "uri")
        if uri:
            found.append(RemoteFile(url=uri))
        elif text_of(video, "encodedVideo"):
            found.append(RemoteFile(url="", inside=f"{SAMPLES}/{number}/video/encodedVideo"))
    return tuple(found)
