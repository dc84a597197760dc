"""
What doors share: how a call is read, how a wish is made, and how instants and pictures are written.
"""

import re
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from typing import Any

from vidrelay.core.adapter import Prepared
from vidrelay.core.door import (
    Cancel,
    DoorCall,
    Forget,
    FormBody,
    Inlined,
    Keep,
    Kept,
    Live,
    Look,
    MediaInput,
    NewTask,
    Page,
    Part,
    Phase,
    Submit,
    View,
    Wish,
)
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.task import Asset, CancelOutcome
from vidrelay.core.wire import instant
from vidrelay.providers.replies import number_of

Granting = Generator[Wish, Any, View]

SETTLING_SECONDS = 10.0
"""So long a cancel may take until it is told how it ended."""

MAX_INLINE_BYTES = 32 * 1024 * 1024
"""A result of more bytes stands in no answer itself."""

FORCE = "vidrelay_force"
"""The field in a body that asks for another version, for SDKs that pass on a field and no header."""

DATA_URI = re.compile(
    # Who knows no file name writes media as bytes of any kind, or of none; they show themselves by their start: PNG,
    # JPEG, RIFF (WebP, WAV, AVI), Matroska, MP4, and the sounds.
    r"data:(?:(?:image|video|audio)/[a-z0-9.+-]{1,40}[^,]{0,100};base64,|(?:application/octet-stream)?;base64,"
    r"(?=(?-i:iVB|(?:/|%2[Ff])9j|UklGR|GkXfo|AAAA.[GWm2]Z0eX|SUQz|T2dnU|ZkxhQ|(?:/|%2[Ff]){2}[sM])))",
    re.IGNORECASE,
)
"""A picture, film or sound as a data URI."""
UPLOADED = re.compile(
    r"https?://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?/[^?#]{1,200}/files/([0-9a-f]{64})", re.ASCII
)


def submit(
    prepared: Prepared,
    *,
    prompt: str = "",
    force: bool = False,
    known_as: str | None = None,
    listener: str | None = None,
) -> Granting:
    """
    Make the task, or be given the one that answers; the rest is as `NewTask` says.
    """
    new = NewTask(prepared=prepared, prompt=prompt, force=force, known_as=known_as, listener=listener)
    view: View = yield Submit(new=new)
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


def live() -> Generator[Wish, Any, list[View]]:
    """
    The account's tasks that have not ended, oldest first.
    """
    views: list[View] = yield Live()
    return views


def there(task_id: str, *, otherwise: str = "The clip is not there any more.") -> Granting:
    """
    The task, unless its files were deleted.

    Raises:
        UnknownTask: They were; in those words.
    """
    view = yield from look(task_id)
    if view.gone:
        raise UnknownTask(otherwise)
    return view


def cancel(task_id: str, *, settle: bool = False, unless_begun: bool = False) -> Granting:
    """
    Stop the task (`Cancel`); `cancel` of the view says what came of that. Where that is not known yet, `settle` looks
    again, once the task has ended or `SETTLING_SECONDS` have passed; `cancel` is None then.
    """
    view: View = yield Cancel(task_id=task_id, unless_begun=unless_begun)
    if settle and view.cancel is CancelOutcome.PENDING:
        view = yield from look(task_id, wait=SETTLING_SECONDS)
    return view


def stop_waiting(task_id: str) -> Generator[Wish, Any, tuple[View, bool]]:
    """
    Stop a task that waits, as far as is known here, where the provider stops what waits and nothing else; and whether
    it was too late for that: it goes on then.
    """
    view = yield from cancel(task_id, settle=True, unless_begun=True)
    return view, CancelOutcome.TOO_LATE in (view.cancel, view.task.cancel)


def forget(task_id: str) -> Granting:
    """
    Stop the task, or delete its files where it is done.
    """
    view: View = yield Forget(task_id=task_id)
    return view


def keep(media: MediaInput | None = None, *, name: str | None = None) -> Generator[Wish, Any, Asset]:
    """
    Take in a picture, film or sound; None: the call's whole body.
    """
    asset: Asset = yield Keep(media=media, name=name)
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


def form_in(call: DoorCall) -> FormBody:
    """
    The call's form; an empty one where its body is something else.
    """
    return call.body if isinstance(call.body, FormBody) else FormBody()


def file_in(call: DoorCall) -> Part:
    """
    The one file of the call's form.

    Raises:
        InvalidRequest: It is no form, or one with more or fewer files.
    """
    files = form_in(call).files
    if len(files) != 1:
        raise InvalidRequest("A form with one file is wanted here.")
    return files[0]


def taken_force(body: dict[str, Any]) -> bool:
    """
    Take `vidrelay_force` out of a body; whether it asked for another version.
    """
    return body.pop(FORCE, False) in (True, 1, "1", "true")


def create_in(call: DoorCall) -> tuple[dict[str, Any], bool]:
    """
    The JSON object of a create call, and whether it asks for another version (`taken_force`).

    Raises:
        InvalidRequest: Its body is none.
    """
    body = object_in(call)
    return body, taken_force(body)


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


def media_in(value: Any) -> Any:
    """
    What stands where media goes: base64 or a data URI as a `MediaInput`, an address and whatever else as it is.
    """
    is_address = isinstance(value, str) and re.match(r"[a-z][a-z0-9+.-]{1,20}://", value, re.IGNORECASE)
    return Inlined(text=value) if isinstance(value, str) and value and not is_address else value


def uploaded_at(prefix: str, asset: str) -> str:
    """
    The address that an upload of that asset is told: `with_media` knows the file by it.
    """
    return f"{prefix}/files/{asset.removeprefix('sha256:')}"


def with_media(value: Any, *, uploaded: Callable[[str], MediaInput | None] = lambda _: None) -> Any:
    """
    The value with every data URI of media and every address of an upload (`uploaded_at`) in it as a `MediaInput`, for
    providers whose models name their own fields. Where the door names uploads otherwise, `uploaded` knows them.
    """
    return each_text(value, lambda text: uploaded(text) or _media_of(text))


def _media_of(text: str) -> MediaInput | str:
    if DATA_URI.match(text):
        return Inlined(text=text)
    found = UPLOADED.fullmatch(text)
    return Kept(asset=f"sha256:{found[1]}") if found else text


def each_text(value: Any, read: Callable[[str], Any]) -> Any:
    """
    The value with what `read` makes of every text in it, however deep; names stay.
    """
    if isinstance(value, str):
        return read(value)
    if isinstance(value, Mapping):
        return {name: each_text(inner, read) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(inner, read) for inner in value]
    return value


def instant_of(fresh: str) -> datetime:
    """
    When the call came that an id is of (`DoorCall.fresh`).
    """
    return datetime.fromtimestamp(int(fresh[:12], 16) / 1000, UTC)


def unix(at: datetime | None) -> int | None:
    """
    Whole seconds since 1970.
    """
    return None if at is None else int(at.timestamp())


def iso(at: datetime | None) -> str | None:
    """
    As `2026-11-30T10:00:00.000Z`.
    """
    return None if at is None else instant(at)


def percent(view: View) -> int:
    """
    How much of a task is done, from 0 to 100.
    """
    return 100 if view.phase is Phase.DONE else int((view.standing.progress or 0) * 100)


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


def count_in(call: DoorCall, name: str = "limit", *, default: int, most: int) -> int:
    """
    A whole number of the query, from 1 to `most`: a page's size, or its number.
    """
    text = call.query.get(name, "")
    return min(most, max(1, int(text))) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else default
