"""
What a call to a door brings: JSON whose long texts go to the disk, a form with its files, or bytes.
"""

import re
import secrets
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from vidrelay.core.door import DoorCall, FormBody, Part
from vidrelay.server.bodies import MAX_ASSET_BYTES, MAX_JSON_BYTES, parse_json, stream_body
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import Refusal
from vidrelay.server.lifting import Lifted, lift

MAX_BODY_BYTES = 96 * 1024 * 1024
"""64 MiB of media, grown by a third in base64, and room for the rest."""
MAX_FORM_PARTS = 200

_JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_FORM_TYPE = re.compile(r"multipart/form-data\s*;.*", re.IGNORECASE | re.DOTALL)


class DoorBody:
    """
    What a call brought beside its JSON: long texts and files, on the disk until the call is answered.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.lifted: Lifted | None = None
        self.files: list[BinaryIO] = []
        self.chunks: AsyncIterator[bytes] | None = None

    def find(self, text: str) -> BinaryIO | None:
        """
        The file that holds what stood where this text stands now; None where the text is what was sent.
        """
        return None if self.lifted is None else self.lifted.find(text)

    def close(self) -> None:
        """
        Delete it.
        """
        if self.lifted is not None:
            self.lifted.close()
        for file in self.files:
            file.close()


async def read_into(body: DoorBody, call: Call, seen: DoorCall) -> None:
    """
    Take in the body: JSON without its long texts, a form with its files on the disk, anything else when it is wanted.

    Raises:
        Refusal: It is too large, compressed, or no JSON or form although it says so.
        ClientGone: The client left before its end.
    """
    declared = call.content_length
    if seen.method in ("GET", "HEAD") or (declared in (None, 0) and "transfer-encoding" not in seen.headers):
        return
    if "content-encoding" in seen.headers:
        raise Refusal("unsupported_media_type", "A body must come without Content-Encoding.")
    kind = seen.headers.get("content-type", "application/json").strip()
    chunks = stream_body(call.receive, declared=declared, limit=MAX_BODY_BYTES)
    if _FORM_TYPE.fullmatch(kind):
        body.value = await _form(Headers(scope=call.scope), chunks, body)
    elif _JSON_TYPE.fullmatch(kind):
        body.lifted = Lifted(secrets.token_hex(16))
        body.value = parse_json(await lift(chunks, body.lifted, limit=MAX_JSON_BYTES))
    else:
        body.chunks = stream_body(call.receive, declared=declared, limit=MAX_ASSET_BYTES)


async def _form(headers: Headers, chunks: AsyncIterator[bytes], body: DoorBody) -> FormBody:
    # Its type asks for a generator, though any iterator does.
    parser = MultiPartParser(headers, chunks, max_files=MAX_FORM_PARTS, max_fields=MAX_FORM_PARTS)  # type: ignore[arg-type]
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Refusal("invalid_form", f"The form cannot be read: {error.message}") from error
    fields, files = [], []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            files.append(
                Part(
                    number=len(body.files),
                    name=name,
                    filename=value.filename or "",
                    media_type=value.content_type or "application/octet-stream",
                    size_bytes=value.size or 0,
                )
            )
            body.files.append(value.file)
        else:
            fields.append((name, value))
    return FormBody(fields=tuple(fields), files=tuple(files))
