"""
A request in Runway's words: which call, and which of a model's ratios a shape and a resolution mean.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Pictures, pictures
from vidrelay.providers.replies import number_of, text_of
from vidrelay.providers.runway import words
from vidrelay.providers.runway.models import DEFAULT_MODEL, MODELS, Kind, Model
from vidrelay.providers.uniform import one_of, only, whole, with_extra

CALL = "call"
"""The routing key: `text_to_video` or `image_to_video`, taken out of the body again."""
TEXT, IMAGE = "text_to_video", "image_to_video"
MAX_SEED = 2**32 - 1
MAX_REFERENCES = 30
USUAL = "720p"

_SHAPE = re.compile(r"([1-9]\d{0,4}):([1-9]\d{0,4})", re.ASCII)
_TIERS = {360: "360p", 480: "480p", 720: "720p", 1080: "1080p", 2160: "4k"}
_AREAS = {"480p": 864 * 480, "720p": 1280 * 720, "1080p": 1920 * 1080, "4k": 3840 * 2160}
_ALIKE = 0.03
"""So far, as a logarithm, may a ratio in pixels be from the one that was asked for: 752:560 is meant as 4:3."""
_WIDE = math.log(16 / 9)
_ANY = Kind(references=MAX_REFERENCES)


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    The create call's body, with the call's name beside it.

    Raises:
        InvalidRequest: The model cannot do it; names the field and what it accepts.
    """
    name = request.model_version or DEFAULT_MODEL
    model = MODELS.get(name)
    given = _pictures(request, assets, name, model)
    # References alone go with a text; a frame makes it the other call.
    call = IMAGE if given.first is not None else TEXT
    kind = _ANY if model is None else (model.image if call == IMAGE else model.text)
    if kind is None:
        raise InvalidRequest(f"Runway's {name} needs a first frame.", field="references")
    if len(given.others) > kind.references:
        what = "with a first frame" if call == IMAGE else "without a first frame"
        raise InvalidRequest(f"Runway's {name} takes {kind.references} references {what}.", field="references")
    only(request, *_fields(model), who=f"Runway's {name}")
    units = len(request.prompt.encode("utf-16-le", "surrogatepass")) // 2
    if model is not None and model.units is not None and units > model.units:
        raise InvalidRequest(f"prompt has {units} UTF-16 units; at most {model.units} are taken.", field="prompt")
    body: dict[str, Any] = {
        "model": name,
        "promptText": request.prompt,
        "promptImage": _frames(given),
        "references": [{"uri": one} for one in given.others] or None,
        "ratio": _ratio(request, assets, kind) if model is not None else request.aspect_ratio,
        "resolution": _resolution(request, kind) if model is not None else request.resolution,
        "duration": _seconds(request, model),
        "seed": None if request.seed is None else whole(request.seed, 0, MAX_SEED, field="seed"),
        "negativePrompt": request.negative_prompt,
    }
    ours = {name: value for name, value in body.items() if value is not None}
    return as_sent(call, with_extra(ours, request.extra))


def as_sent(call: str, body: Mapping[str, Any]) -> Prepared:
    """
    What is in Runway's words already, of the call of that name.
    """
    return Prepared(model=text_of(body, "model"), parameters={**body, CALL: call}, seconds=number_of(body, "duration"))


def _fields(model: Model | None) -> list[str]:
    usual = ["aspectRatio", "duration", "resolution", "references"]
    seed = ["seed"] if model is None or model.seed else []
    return usual + seed + (["negativePrompt"] if model is None or model.negative else [])


def _pictures(request: Request, assets: Mapping[str, Asset], name: str, model: Model | None) -> Pictures:
    kinds = [_ANY] if model is None else [kind for kind in (model.text, model.image) if kind is not None]
    most = max(kind.references for kind in kinds)
    roles = [FIRST] if model is None or model.image is not None else []
    roles += [LAST] if model is None or model.last else []
    roles += [REFERENCE] if most else []
    given = pictures(request, assets, who=f"Runway's {name}", roles=roles, max_others=most, last_alone=False)
    for number, one in enumerate(request.references):
        if one.url is not None and len(one.url) > words.MAX_ADDRESS:
            told = f"The address has {len(one.url)} characters; Runway takes {words.MAX_ADDRESS}."
            raise InvalidRequest(told, field=f"references[{number}].url")
    return given


def _frames(given: Pictures) -> Any:
    if given.last is None:
        return given.first
    return [{"uri": given.first, "position": "first"}, {"uri": given.last, "position": "last"}]


def _seconds(request: Request, model: Model | None) -> int | None:
    if request.duration is None:
        return None if model is None else model.usual
    if model is None or model.seconds is None:
        return whole(request.duration, 1, 300, field="duration")
    accepted: int = one_of(request.duration, list(model.seconds), field="duration")
    return accepted


def _resolution(request: Request, kind: Kind) -> str | None:
    if request.resolution is None or not kind.resolutions:
        return None
    accepted: str = one_of(request.resolution, kind.resolutions, field="resolution")
    return accepted


def _ratio(request: Request, assets: Mapping[str, Asset], kind: Kind) -> str | None:
    """
    The model's own ratio for a shape and a resolution; where none is asked for and one must be sent, the first frame's.
    """
    wanted, tier = request.aspect_ratio, request.resolution if not kind.resolutions else None
    if not kind.ratios and (wanted or tier):
        field = "aspectRatio" if wanted else "resolution"
        raise InvalidRequest(f"{field} cannot be chosen here: this model follows the first frame.", field=field)
    fitting = list(kind.ratios)
    if tier is not None:
        asked = "4k" if tier.lower() == "2160p" else tier.lower()
        tiers = list(dict.fromkeys(tier_of(one) for one in fitting))
        fitting = [one for one in fitting if tier_of(one) == one_of(asked, tiers, field="resolution")]
    if wanted is None and tier is None and not kind.needed:
        return None
    if wanted in fitting:
        return wanted
    shape = _shape(wanted) if wanted is not None else _shape_of_first(request, assets)
    if wanted is not None:
        alike = [one for one in fitting if shape is not None and _apart(one, shape) < _ALIKE]
        fitting = alike or [one_of(wanted, fitting, field="aspectRatio")]
    usual = [one for one in fitting if tier_of(one) == USUAL] or fitting
    near = _WIDE if shape is None else shape
    return min(usual, key=lambda one: _apart(one, near))


def tier_of(ratio: str) -> str:
    """
    The resolution that a ratio in pixels stands for: by its short side where that is a usual one, else by its area.
    """
    read = _SHAPE.fullmatch(ratio)
    if read is None:
        return ratio.removeprefix("auto_")
    width, height = int(read[1]), int(read[2])
    known = _TIERS.get(min(width, height))
    return known or min(_AREAS, key=lambda tier: abs(math.log(_AREAS[tier] / (width * height))))


def _apart(ratio: str, shape: float) -> float:
    own = _shape(ratio)
    return math.inf if own is None else abs(own - shape)


def _shape(ratio: str) -> float | None:
    read = _SHAPE.fullmatch(ratio)
    return math.log(int(read[1]) / int(read[2])) if read else None


def _shape_of_first(request: Request, assets: Mapping[str, Asset]) -> float | None:
    firsts = [one for one in request.references if one.role in (None, FIRST)]
    asset = assets.get(firsts[0].asset or "") if firsts else None
    return math.log(asset.width / asset.height) if asset is not None and asset.width and asset.height else None
