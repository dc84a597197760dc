"""
What a call to a door brings: JSON whose long texts go to the disk, a form with its files, or bytes.
"""

import re
import secrets
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from vidrelay.core.door import DoorCall, FormBody, Part
from vidrelay.core.errors import DiskFull
from vidrelay.server.bodies import MAX_ASSET_BYTES, MAX_JSON_BYTES, check_text, parse_json, stream_body
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import Refusal
from vidrelay.server.lifting import LONG, Lifted, LongText, lift

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

    def find(self, text: str) -> LongText | None:
        """
        What stood where this text stands now; None where the text is what was sent.
        """
        return None if self.lifted is None else self.lifted.find(text)

    def check_length(self, text: str) -> None:
        """
        Refuse a text that was lifted out of the body, or would have been if it had come in one of JSON.

        Raises:
            Refusal: It is one.
        """
        if len(text) > LONG or self.find(text) is not None:
            raise Refusal("too_large", "A text in the body is over 64 KiB and is no picture, film or sound.")

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
        DiskFull: It cannot be kept while it is read.
        ClientGone: The client left before its end.
    """
    try:
        await _take_in(body, call, seen)
    except OSError as error:
        raise DiskFull(f"The body cannot be kept while it is read: {error.strerror}.") from error


async def _take_in(body: DoorBody, call: Call, seen: DoorCall) -> None:
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
    # The parser would decode with any codec of Python's, of which some take for ever and some make no text at all.
    charset = parse_options_header(headers["content-type"])[1].get(b"charset", b"utf-8")
    if charset.lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        raise Refusal("unsupported_media_type", "A form must be in UTF-8.")
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
            check_text([name, value.filename or ""])
        else:
            fields.append((name, value))
    check_text([list(field) for field in fields])
    if sum(len(name) + len(value) for name, value in fields) > MAX_JSON_BYTES:
        raise Refusal("too_large", f"The form is over {MAX_JSON_BYTES} bytes, its files not counted.")
    return FormBody(fields=tuple(fields), files=tuple(files))
