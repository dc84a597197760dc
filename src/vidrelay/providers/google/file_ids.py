"""
The relay's clips as files of Google's: the SDKs take nothing but the file id out of a clip's address, and ask for that.

The id is the task's own, so that the clip is found however old it is; where a later create names it, Google is told its
own.
"""

import re
from collections.abc import Generator, Mapping
from typing import Any

from vidrelay.core.door import Inlined, View
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.providers.doorway import look, theirs
from vidrelay.providers.google import words

_UUID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_OURS = re.compile(r"([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})(?:x([0-9]{1,3}))?")
"""A task's id as a file id, which the SDKs read as small letters and digits alone; a second clip has its number."""
_OUTPUT = re.compile(r".*/files/([A-Za-z0-9_-]+):download(?:\?.*)?")
_MEDIA = {
    "bytesBase64Encoded": {"bytesBase64Encoded", "mimeType"},
    "encodedVideo": {"encodedVideo", "encoding"},
}
_INPUTS = ("image", "video", "audio")


def address_of(view: View, index: int) -> str:
    """
    The address of one of a task's clips.
    """
    file_id = view.task.id.replace("-", "") if _UUID.fullmatch(view.task.id) else view.task.id
    return words.address(f"{file_id}x{index}" if index else file_id)


def task_of(file_id: str) -> tuple[str, int]:
    """
    The task that a file id of ours names, and which of its clips.
    """
    found = _OURS.fullmatch(file_id)
    if found is None:
        return file_id, 0
    *parts, index = found.groups()
    return "-".join(parts), int(index or 0)


def as_google_knows_it(body: dict[str, Any]) -> Generator[Any, Any, dict[str, Any]]:
    """
    The body with each picture, film and sound in it as one, and what it names of the relay's under Google's own name.
    """
    known: dict[str, str] = {}
    if "previous_interaction_id" in body:
        body = {**body, "previous_interaction_id": (yield from theirs(body["previous_interaction_id"]))}
    for address in _addresses(body):
        task_id, index = task_of(words.file_id(address) or "")
        try:
            outputs = (yield from look(task_id)).task.outputs
        except UnknownTask:
            continue
        output = _OUTPUT.fullmatch(outputs[index].url) if index < len(outputs) else None
        if output is None:
            raise InvalidRequest(f"Google has no file of the clip {address}, so nothing can go on from it.")
        known[address] = words.address(output[1])
    read: dict[str, Any] = _read(body, known)
    return read


def _addresses(value: Any) -> set[str]:
    """
    The addresses in it of files that this door gave out.
    """
    if isinstance(value, str):
        return {value} if _OURS.fullmatch(words.file_id(value) or "") else set()
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return set().union(*map(_addresses, inner))


def _read(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return known.get(value, value)
    if isinstance(value, list):
        return [_read(one, known) for one in value]
    if not isinstance(value, Mapping):
        return value
    picture = next((value.get(name) for name, names in _MEDIA.items() if name in value and set(value) <= names), None)
    if value.get("type") in _INPUTS and set(value) <= {"type", "data", "mime_type"}:
        picture = value.get("data")
    if isinstance(picture, str) and picture:
        return Inlined(text=picture)
    return {name: _read(one, known) for name, one in value.items()}
