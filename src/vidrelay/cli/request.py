"""
From the words of the command line to a request.
"""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Reference

_MAX_SLUG = 48


def extra_from(settings: list[str]) -> dict[str, Any]:
    """
    What `--set K=V` sets: V as JSON where it is JSON, else as text.

    Raises:
        InvalidRequest: There is no `=`, or no name before it.
    """
    extra: dict[str, Any] = {}
    for setting in settings:
        name, found, value = setting.partition("=")
        if not found or not name.strip():
            raise InvalidRequest("--set needs NAME=VALUE", field="--set")
        extra[name.strip()] = value_from(value)
    return extra


def value_from(text: str) -> Any:
    """
    A JSON value where the text is one (numbers that are not finite are not), else the text itself.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def number_from(text: str, field: str) -> int | float:
    """
    A duration as it was written: `5` is a whole number, `5.5` is not.

    Raises:
        InvalidRequest: It is no number.
    """
    value = value_from(text.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"must be a number, not {text!r}", field=field)
    return value


def reference_from(text: str, base: Path) -> Reference:
    """
    A reference image: an asset's id, an address, or a file (its path is made absolute, from `base`).

    Raises:
        InvalidRequest: There is no such file.
    """
    if re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        return Reference(asset=text)
    if re.match(r"https?://", text):
        return Reference(url=text)
    path = (base / Path(text).expanduser()).absolute()
    if not path.is_file():
        raise InvalidRequest(f"there is no file {path}", field="--ref")
    return Reference(path=str(path))


def slug(text: str) -> str:
    """
    A file name's stem from a prompt: its first words, in letters that every file system takes.
    """
    kept = "".join(letter if letter.isalnum() else " " for letter in unicodedata.normalize("NFC", text))
    words = kept.lower().split()
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer.encode()) > _MAX_SLUG:
            break
        name = longer
    return name or "clip"


def target_for(output: str | None, *, prompt: str, task_id: str, index: int, extension: str) -> Path | None:
    """
    Where a result's file goes; None where it stays in the cache alone.

    A directory (or a name that ends in `/`) gets `<words of the prompt>-<start of the task's id>.<extension>`; from the
    second file of one result on, the name ends in its index.
    """
    if output is None:
        return None
    path = Path(output).expanduser()
    if path.is_dir() or output.endswith(("/", "\\")):
        path = path / f"{slug(prompt)}-{task_id[:8]}{extension}"
    return path if index == 0 else path.with_name(f"{path.stem}-{index}{path.suffix}")
