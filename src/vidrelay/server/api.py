"""
The calls about tasks: submit, look, wait, cancel, resolve, page; and the upload of reference images.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator
from typing import Any

from starlette.types import ASGIApp

from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.ports import How
from vidrelay.core.task import Request, Resolution, State, Task
from vidrelay.core.wire import MAX_NAME_CHARACTERS, asset_json, no_fields, request_from_json, task_json
from vidrelay.scheduler.face import RelayFace
from vidrelay.server.answers import json_answer
from vidrelay.server.bodies import MAX_ASSET_BYTES, stream_body
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import Refusal
from vidrelay.server.running import hang_up, run_until
from vidrelay.server.sender import sender_of

MAX_WAIT_SECONDS = 60
DEFAULT_PAGE = 50
MAX_PAGE = 500

_TASK_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_PRINTABLE_ASCII = re.compile(r"[\x20-\x7e]+")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_WHOLE = re.compile(r"[0-9]{1,6}")
_CURSOR = re.compile(r"before:([0-9]{1,18})")


class TaskCalls:
    """
    Answers the calls about tasks out of the relay.
    """

    def __init__(self, relay: RelayFace, *, stopping: asyncio.Event) -> None:
        """
        Once `stopping` is set, nothing new is taken in and no call waits any longer.
        """
        self._relay = relay
        self._stopping = stopping

    def view(self, task: Task, *, deduped: bool = False, from_cache: bool = False) -> dict[str, Any]:
        """
        The task's JSON form, with what is known of it beside its record.
        """
        relay = self._relay
        return task_json(task, relay.standing(task), path_of=relay.file_path, deduped=deduped, from_cache=from_cache)

    async def generate(self, call: Call) -> ASGIApp:
        """
        Submit: 202 for a new task, 200 for an earlier one.
        """
        self._refuse_when_stopping()
        admission = await self._relay.submit(_request(call), sender_of(call))
        body = self.view(
            admission.task,
            deduped=admission.how in (How.JOINED, How.REPEATED),
            from_cache=admission.how is How.CACHED,
        )
        return json_answer(
            body,
            status=202 if admission.how is How.CREATED else 200,
            headers=((b"location", b"/task/" + admission.task.id.encode()),),
        )

    async def show(self, call: Call) -> ASGIApp:
        """
        The task, held back for up to `wait` seconds until its state changes or differs from `seen`.
        """
        name = task_id(call)
        if not call.scope["query_string"]:
            return json_answer(self.view(await self._relay.get(name)))
        seconds, seen = _wait(call), _seen(call)
        task = await self._relay.get(name)
        if seconds and not task.ended and (seen is None or seen is task.state) and not call.head:
            waiting = self._relay.wait(name, seconds=seconds, seen=seen or task.state)
            # A relay that stops answers those who wait with what is known, and does not keep them.
            cut = (self._stopping.wait(), hang_up(call.receive))
            task = await run_until(waiting, *cut) or await self._relay.get(name)
        return json_answer(self.view(task))

    async def cancel(self, call: Call) -> ASGIApp:
        """
        Note that the task is no longer wanted; `cancel.outcome` in this answer is this wish's own.
        """
        no_fields(call.body)
        task, outcome = await self._relay.cancel(task_id(call))
        return json_answer({**self.view(task), "cancel": {"outcome": outcome.value}})

    async def resolve(self, call: Call) -> ASGIApp:
        """
        Settle an uncertain task.
        """
        action, remote_id = _resolution(call.body)
        return json_answer(self.view(await self._relay.resolve(task_id(call), action, remote_id=remote_id)))

    async def page(self, call: Call) -> ASGIApp:
        """
        Tasks, newest first, and the cursor of the next page.
        """
        limit = _limit(call)
        tasks = await self._relay.page(
            states=_states(call), account=call.one("account"), limit=limit + 1, before=_cursor(call)
        )
        shown = tasks[:limit]
        following = _write_cursor(shown[-1].seq) if len(tasks) > limit else None
        return json_answer({"tasks": [self.view(task) for task in shown], "next": following})

    async def add_asset(self, call: Call) -> ASGIApp:
        """
        Take in a reference image, streamed.
        """
        self._refuse_when_stopping()
        chunks: AsyncIterator[bytes] = stream_body(call.receive, declared=call.content_length, limit=MAX_ASSET_BYTES)
        return json_answer(asset_json(await self._relay.add_asset(chunks)))

    def _refuse_when_stopping(self) -> None:
        if self._stopping.is_set():
            raise Refusal("shutting_down", "The relay is stopping; ask again in a moment.")


def task_id(call: Call) -> str:
    """
    The task id in the path.

    Raises:
        UnknownTask: It cannot be one.
    """
    name = call.params["id"]
    if not _TASK_ID.fullmatch(name):
        raise UnknownTask
    return name


def whole_number(call: Call, name: str, *, default: int, least: int, most: int) -> int:
    """
    A query parameter that is a whole number from `least` to `most`.

    Raises:
        InvalidRequest: It is something else.
    """
    text = call.one(name)
    if text is None:
        return default
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise InvalidRequest(f"{name} must be a whole number from {least} to {most}", field=name)
    return int(text)


def _request(call: Call) -> Request:
    """
    The request in the body. A browser's page is not trusted to name files of this machine; it uploads them.
    """
    request = request_from_json(call.body)
    if call.by_login:
        for number, reference in enumerate(request.references):
            if reference.path is not None:
                raise InvalidRequest(
                    "a page cannot name a file by its path", field=f"references[{number}].path", hint="use POST /assets"
                )
    return request


def _wait(call: Call) -> float:
    text = call.one("wait")
    if text is None:
        return 0.0
    if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= MAX_WAIT_SECONDS:
        raise InvalidRequest(f"wait must be a number of seconds from 0 to {MAX_WAIT_SECONDS}", field="wait")
    return float(text)


def _seen(call: Call) -> State | None:
    text = call.one("seen")
    return None if text is None else _state(text, "seen")


def _state(text: str, field: str) -> State:
    if text not in set(State):
        raise InvalidRequest(f"{field} must be one of: {', '.join(State)}", field=field)
    return State(text)


def _states(call: Call) -> frozenset[State] | None:
    """
    The states asked for, repeated or with commas; None for all.
    """
    values = call.query("state")["state"]
    if not values:
        return None
    return frozenset(_state(text.strip(), "state") for value in values for text in value.split(","))


def _limit(call: Call) -> int:
    return whole_number(call, "limit", default=DEFAULT_PAGE, least=1, most=MAX_PAGE)


def _write_cursor(seq: int) -> str:
    return base64.urlsafe_b64encode(f"before:{seq}".encode()).decode().rstrip("=")


def _cursor(call: Call) -> int | None:
    text = call.one("cursor")
    if text is None:
        return None
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        plain = ""
    found = _CURSOR.fullmatch(plain)
    if found is None:
        raise InvalidRequest("cursor must be the next of an earlier answer", field="cursor")
    return int(found[1])


def _resolution(body: Any) -> tuple[Resolution, str | None]:
    fields = no_fields(body, frozenset({"action", "remoteId"}))
    action, remote_id = fields.get("action"), fields.get("remoteId")
    if not isinstance(action, str) or action not in set(Resolution):
        raise InvalidRequest(f"action must be one of: {', '.join(Resolution)}", field="action")
    if remote_id is not None and not (
        isinstance(remote_id, str) and len(remote_id) <= MAX_NAME_CHARACTERS and _PRINTABLE_ASCII.fullmatch(remote_id)
    ):
        raise InvalidRequest("remoteId must be a string of printable ASCII characters", field="remoteId")
    if (remote_id is None) is (action == Resolution.ADOPT):
        raise InvalidRequest("remoteId goes with adopt, and with nothing else", field="remoteId")
    return Resolution(action), remote_id
