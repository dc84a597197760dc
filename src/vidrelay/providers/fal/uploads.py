"""
How a picture, film or sound gets to fal's media host, as its SDK does it.
"""

import json
import re
from collections.abc import Mapping

from vidrelay.core.adapter import Copied, Refused, Trouble, UploadOutcome
from vidrelay.core.messages import Blob, HttpReply, HttpRequest
from vidrelay.providers.fal import words
from vidrelay.providers.pictures import filename_of
from vidrelay.providers.replies import read_object, text_of
from vidrelay.providers.verdicts import of_upload

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
    return HttpRequest(
        method="POST",
        url=f"{host}/files/upload",
        headers={
            "Accept": "application/json",
            "Authorization": f"{kind} {token}",
            "X-Fal-File-Name": filename_of(picture),
            "X-Fal-Object-Lifecycle-Preference": json.dumps({"expiration_duration_seconds": KEPT_SECONDS}),
        },
        body=Blob(asset=picture["$asset"], media_type=picture.get("mediaType", "image/png")),
    )


def copied(reply: HttpReply, *, key: str | None) -> UploadOutcome:
    """
    What the media host answered to that call.
    """
    url = text_of(read_object(reply) or {}, "access_url")
    if url and 200 <= reply.status < 300:
        return Copied(reference=url)
    refused = of_upload(words.error(reply, key=key))
    # The media host knows nothing of the account.
    return Trouble(detail=refused.detail) if isinstance(refused, Refused) else refused
