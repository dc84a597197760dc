"""
Reads a call's body: multipart, url-encoded or JSON, all to text fields and a count of files; JSON as it is, too.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(rb'\bname="((?:[^"\\]|\\.)*)"')
_FILENAME = re.compile(rb'\bfilename="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """
    What a body held: text fields by name, how many files came along and what a form calls them, and the JSON as it is,
    None where it is none.
    """

    fields: dict[str, str] = field(default_factory=dict)
    files: int = 0
    filenames: tuple[str, ...] = ()
    data: Any = None


def read_body(content_type: str, body: bytes) -> Sent:
    """
    Read it by its type; what is neither a form nor JSON is one file.

    Raises:
        ValueError: The body is not what its type says.
    """
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == "multipart/form-data":
        found = _BOUNDARY.search(content_type)
        if not found:
            raise ValueError("the form has no boundary")
        fields, names = _multipart((found[1] or found[2]).encode(), body)
        return Sent(fields=fields, files=len(names), filenames=tuple(names))
    if kind == "application/x-www-form-urlencoded":
        return Sent(fields=dict(parse_qsl(body.decode(), keep_blank_values=True)))
    if kind and kind != "application/json" and body:
        return Sent(files=1)
    data = json.loads(body or b"{}")
    if not isinstance(data, dict):
        raise ValueError("the body is no JSON object")  # noqa: TRY004 its value is wrong, as any other fault of it
    fields = {str(name): _text(value) for name, value in data.items() if value is not None}
    return Sent(fields=fields, data=data if body else None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _multipart(boundary: bytes, body: bytes) -> tuple[dict[str, str], list[str]]:
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise ValueError("the form breaks off")
    fields: dict[str, str] = {}
    names: list[str] = []
    for part in parts[1:-1]:
        head, _, value = part.lstrip(b"\r\n").partition(b"\r\n\r\n") if part.startswith(b"\r\n") else (b"", b"", b"")
        name = _NAME.search(head)
        if not name:
            raise ValueError("a part of the form has no name")
        filename = _FILENAME.search(head)
        if filename:
            names.append(filename[1].decode())
        else:
            fields[name[1].decode()] = value.decode()
    return fields, names
