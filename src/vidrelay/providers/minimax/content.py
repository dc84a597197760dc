"""
Says a request in V2's words: one text, then pictures by their role.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Asset, Request
from vidrelay.providers.minimax.sent import as_sent
from vidrelay.providers.pictures import FIRST, LAST, REFERENCE, Picture, pictures
from vidrelay.providers.replies import text_of
from vidrelay.providers.uniform import apart, at_most, one_of, only, whole, with_extra

DEFAULT_MODEL = "MiniMax-H3"
MODELS = {
    "MiniMax-H3-Highspeed": (("768P",), (4, 15)),
    "MiniMax-H3-Lite": (("480P", "768P"), (4, 15)),
    "MiniMax-H3-Max": (("480P", "768P"), (5, 15)),
    "MiniMax-H3": (("768P", "2K"), (4, 15)),
}
"""The resolutions and seconds that a model takes; the default of both holds for all."""
ANY_DURATION = (1, 3600)
RATIOS = ("adaptive", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
MAX_PROMPT, MAX_REFERENCES = 7000, 9
OLD_MODELS = ("MiniMax-Hailuo-", "T2V-", "I2V-", "S2V-")


def prepare(request: Request, assets: Mapping[str, Asset]) -> Prepared:
    """
    Turn the uniform fields into V2's body.

    More `content` under extra (videos, audio) is put behind ours.

    Raises:
        InvalidRequest: V2 cannot do it; names the field and what it accepts.
    """
    only(request, "aspectRatio", "duration", "resolution", "references", who="MiniMax V2")
    model = request.model_version or DEFAULT_MODEL
    if model.startswith(OLD_MODELS):
        raise InvalidRequest(
            f"{model} is a model of MiniMax's V1, and this account speaks V2.",
            field="modelVersion",
            hint='Use an account with dialect = "v1".',
        )
    resolutions, (low, high) = MODELS.get(model, (None, ANY_DURATION))
    roles = (FIRST, LAST, REFERENCE)
    given = pictures(request, assets, who="MiniMax V2", roles=roles, max_others=MAX_REFERENCES, mixed=False)
    content = [{"type": "text", "text": at_most(request.prompt, MAX_PROMPT)}]
    content += [_picture(one, role) for one, role in ((given.first, "first_frame"), (given.last, "last_frame")) if one]
    content += [_picture(one, "reference_image") for one in given.others]
    more, extra = apart(request.extra, "content")
    body: dict[str, Any] = {
        "model": model,
        "content": [*content, *more],
        "resolution": "768P",
        "duration": 5 if request.duration is None else whole(request.duration, low, high, field="duration"),
    }
    if request.resolution is not None:
        taken = (request.resolution,) if resolutions is None else resolutions
        body["resolution"] = one_of(request.resolution, taken, field="resolution")
    only_text = not given and not more
    if request.aspect_ratio is not None:
        ratios = RATIOS[1:] if only_text else RATIOS
        body["ratio"] = one_of(request.aspect_ratio, ratios, field="aspectRatio", known=model in MODELS)
    elif only_text and "ratio" not in extra:
        body["ratio"] = "16:9"
    return as_sent(with_extra(body, extra))


def text_in(data: Mapping[str, Any]) -> str | None:
    """
    The prompt of a body, or of a row that shows it; None where there is none.
    """
    content = data.get("content")
    items = [one for one in content if isinstance(one, Mapping)] if isinstance(content, list | tuple) else []
    texts = [text_of(one, "text") for one in items if one.get("type") == "text"]
    return next((text for text in texts if text), None) or text_of(data, "prompt")


def _picture(picture: Picture, role: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": picture}, "role": role}
