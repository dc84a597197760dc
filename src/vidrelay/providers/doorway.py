"""
What doors share: how a call is read, how a wish is made, and how instants and pictures are written.
"""

import re
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.door import (
    Cancel,
    DoorCall,
    Forget,
    Inlined,
    Keep,
    Kept,
    Look,
    NewTask,
    Page,
    Picture,
    Submit,
    View,
    Wish,
)
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import Asset
from vidrelay.providers.replies import number_of

Granting = Generator[Wish, Any, View]

FORCE = "vidrelay_force"
"""The field in a body that asks for another version, for SDKs that pass on a field and no header."""

DATA_URI = re.compile(
    # An SDK that knows no file name writes a picture as bytes of any kind: PNG and JPEG show themselves by their start.
    r"data:(?:image/[a-z0-9.+-]{1,40}[^,]{0,100};base64,|application/octet-stream;base64,(?=(?-i:iVB|/9j)))",
    re.IGNORECASE,
)
UPLOADED = re.compile(
    r"https?://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?/[^?#]{1,200}/files/([0-9a-f]{64})", re.ASCII
)


def submit(prepared: Prepared, *, prompt: str = "", force: bool = False) -> Granting:
    """
    Make the task, or be given the one that answers.
    """
    view: View = yield Submit(new=NewTask(prepared=prepared, prompt=prompt, force=force))
    return view


def look(task_id: str, *, wait: float = 0.0) -> Granting:
    """
    The task, once it has ended or so many seconds have passed.
    """
    view: View = yield Look(task_id=task_id, wait=wait)
    return view


def page(limit: int, *, after: str | None = None) -> Generator[Wish, Any, list[View]]:
    """
    The account's tasks, newest first.
    """
    views: list[View] = yield Page(limit=limit, after=after)
    return views


def cancel(task_id: str) -> Granting:
    """
    Stop the task; `cancel` of the view says what came of that.
    """
    view: View = yield Cancel(task_id=task_id)
    return view


def forget(task_id: str) -> Granting:
    """
    Stop the task, or delete its files where it is done.
    """
    view: View = yield Forget(task_id=task_id)
    return view


def keep(picture: Picture | None = None, *, name: str | None = None) -> Generator[Wish, Any, Asset]:
    """
    Take in a picture; None: the call's whole body.
    """
    asset: Asset = yield Keep(picture=picture, name=name)
    return asset


def object_in(call: DoorCall) -> dict[str, Any]:
    """
    The call's JSON object.

    Raises:
        InvalidRequest: It is none.
    """
    if not isinstance(call.body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return dict(call.body)


def taken_force(body: dict[str, Any]) -> bool:
    """
    Take `vidrelay_force` out of a body; whether it asked for another version.
    """
    return body.pop(FORCE, False) in (True, 1, "1", "true")


def text_in(body: Mapping[str, Any], name: str) -> str:
    """
    A text of the body, empty where there is none.
    """
    value = body.get(name)
    return value if isinstance(value, str) else ""


def seconds_in(body: Mapping[str, Any], name: str) -> float | None:
    """
    A length in seconds, written as a number or as text (`5`, `"5"`, `"5s"`); None where there is none.
    """
    value = body.get(name)
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,5}(?:\.\d{1,3})?)s?", value)
        return float(found[1]) if found else None
    return number_of(body, name)


def picture_in(value: Any) -> Any:
    """
    What stands where a picture goes: base64 or a data URI as a picture, an address and whatever else as it is.
    """
    is_address = isinstance(value, str) and re.match(r"[a-z][a-z0-9+.-]{1,20}://", value, re.IGNORECASE)
    return Inlined(text=value) if isinstance(value, str) and value and not is_address else value


def uploaded_at(prefix: str, asset: str) -> str:
    """
    The address that an upload of that asset is told: `with_pictures` knows the picture by it.
    """
    return f"{prefix}/files/{asset.removeprefix('sha256:')}"


def with_pictures(value: Any) -> Any:
    """
    The value with every data URI of a picture and every address of an upload (`uploaded_at`) in it as a picture, for
    providers whose models name their own fields.
    """
    if isinstance(value, str) and DATA_URI.match(value):
        return Inlined(text=value)
    if isinstance(value, str) and (upload := UPLOADED.fullmatch(value)):
        return Kept(asset=f"sha256:{upload[1]}")
    if isinstance(value, Mapping):
        return {name: with_pictures(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_pictures(inner) for inner in value]
    return value


def instant_of(call: DoorCall) -> datetime:
    """
    When the call came.
    """
    return datetime.fromtimestamp(int(call.fresh[:12], 16) / 1000, UTC)


def unix(instant: datetime | None) -> int | None:
    """
    Whole seconds since 1970.
    """
    return None if instant is None else int(instant.timestamp())


def iso(instant: datetime) -> str:
    """
    As `2026-11-30T10:00:00.000Z`.
    """
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def theirs(value: Any) -> Generator[Wish, Any, Any]:
    """
    The provider's own id of an earlier task that a body names by the id this door gave it; anything else as it is.

    Raises:
        InvalidRequest: The provider has not taken that task up, so there is nothing to go on from.
    """
    if not isinstance(value, str) or not value:
        return value
    try:
        view = yield from look(value)
    except UnknownTask:
        # It may be one that the provider's own console made.
        return value
    if view.task.remote_id is None:
        raise InvalidRequest(f"The task {value} is not made yet, so nothing can go on from it.")
    return view.task.remote_id


def limit_in(call: DoorCall, name: str = "limit", *, default: int, most: int) -> int:
    """
    A page's size as the query asks for it.
    """
    text = call.query.get(name, "")
    return min(most, max(1, int(text))) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else default
