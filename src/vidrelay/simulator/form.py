"""
Reads the body of a create call: multipart, url-encoded or JSON, all to text fields and a count of files.
"""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(rb'\bname="((?:[^"\\]|\\.)*)"')


def read_fields(content_type: str, body: bytes) -> tuple[dict[str, str], int]:
    """
    The text fields by name, and how many files came along.

    Raises:
        ValueError: The body is not what its type says.
    """
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == "multipart/form-data":
        found = _BOUNDARY.search(content_type)
        if not found:
            raise ValueError("the form has no boundary")
        return _multipart((found[1] or found[2]).encode(), body)
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode(), keep_blank_values=True)), 0
    data = json.loads(body or b"{}")
    if not isinstance(data, dict):
        raise ValueError("the body is no JSON object")  # noqa: TRY004 its value is wrong, as any other fault of it
    return {str(name): _text(value) for name, value in data.items() if value is not None}, 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _multipart(boundary: bytes, body: bytes) -> tuple[dict[str, str], int]:
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise ValueError("the form breaks off")
    fields: dict[str, str] = {}
    files = 0
    for part in parts[1:-1]:
        head, _, value = part.lstrip(b"\r\n").partition(b"\r\n\r\n") if part.startswith(b"\r\n") else (b"", b"", b"")
        name = _NAME.search(head)
        if not name:
            raise ValueError("a part of the form has no name")
        if b'filename="' in head:
            files += 1
        else:
            fields[name[1].decode()] = value.decode()
    return fields, files
