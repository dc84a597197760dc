"""
How a picture gets to fal's media host, as its SDK does it.
"""

import json
import re
from collections.abc import Mapping

from vidrelay.core.messages import Blob, HttpReply, HttpRequest
from vidrelay.providers.replies import read_object, text_of

KEPT_SECONDS = 25 * 3600
"""A picture is asked to be kept so long; its copy is used for an hour less."""

_TOKEN = re.compile(r"[\x21-\x7e]{1,8000}")


def upload_of(picture: Mapping[str, str], reply: HttpReply, host: str) -> HttpRequest | None:
    """
    The call that brings the picture there, with the token of that reply; None where it has none.
    """
    data = read_object(reply) or {}
    token, kind = text_of(data, "token") or "", text_of(data, "token_type") or ""
    if not (_TOKEN.fullmatch(token) and _TOKEN.fullmatch(kind)):
        return None
    media_type = picture.get("mediaType", "image/png")
    return HttpRequest(
        method="POST",
        url=f"{host}/files/upload",
        headers={
            "Accept": "application/json",
            "Authorization": f"{kind} {token}",
            "X-Fal-File-Name": f"picture.{media_type.rpartition('/')[2]}",
            "X-Fal-Object-Lifecycle-Preference": json.dumps({"expiration_duration_seconds": KEPT_SECONDS}),
        },
        body=Blob(asset=picture["$asset"], media_type=media_type),
    )
