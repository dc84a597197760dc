"""
The async client of a running relay.
"""

import asyncio
import json
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from vidrelay.client.answers import error_from
from vidrelay.client.beacon import Beacon
from vidrelay.client.connection import BROKEN, CALL_SECONDS, Connection
from vidrelay.client.saving import Saving
from vidrelay.client.views import TaskEvent, TaskView, task_view
from vidrelay.clock import SystemClock
from vidrelay.core.clock import Clock
from vidrelay.core.errors import ResultGone, VidrelayError, WrongState
from vidrelay.core.task import Request, Resolution, State
from vidrelay.core.wire import request_json

WAIT_SECONDS = 50
SILENCE_SECONDS = 60.0
CACHE_SECONDS = 600.0
CHECK_SECONDS = 120.0
_NOTHING_MORE = 204


@asynccontextmanager
async def open_client(
    state_dir: str | Path | None = None,
    *,
    start: bool = True,
    config: str | Path | None = None,
    app: str | None = None,
    clock: Clock | None = None,
) -> AsyncIterator["Client"]:
    """
    A client of the relay of that state directory.

    Args:
        state_dir: Its state directory; None: `VIDRELAY_STATE_DIR`, else the platform's own place.
        start: Start a detached relay where none runs (it leaves when idle for a minute).
        config: The configuration of a relay that is started; None: as the environment says.
        app: The app's name, told to the relay.
        clock: For waiting between tries; None: the machine's own.

    Raises:
        RelayUnavailable: None runs and none is to be started, or it does not start.
        ConfigError: The configuration of a relay that is started is wrong.
    """
    from vidrelay.config.places import state_directory  # noqa: PLC0415 importing the client must stay quick

    clock = clock or SystemClock()
    place = state_directory(state_dir, os.environ)
    client = Client(Connection(place, start=start, config=_absolute(config), app=app, clock=clock), clock)
    try:
        await client.connect()
        yield client
    finally:
        await client.aclose()


def _absolute(config: str | Path | None) -> Path | None:
    """
    The configuration's path for a process that runs in another directory.
    """
    return Path(config).absolute() if config is not None else None


class Client:
    """
    Calls a relay over proven loopback connections. Made by `open_client`.

    A call finds the relay anew when the one it knew is gone, and repeats itself where that is safe; a submit carries an
    Idempotency-Key, so it is safe too.
    """

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._relay = connection
        self._clock = clock

    @property
    def url(self) -> str:
        """
        Where the relay listens; empty before `connect`.
        """
        return self._relay.beacon.url if self._relay.beacon else ""

    @property
    def beacon(self) -> Beacon | None:
        """
        The `relay.json` of the relay that is spoken to; None before `connect`.
        """
        return self._relay.beacon

    async def aclose(self) -> None:
        """
        Close every connection.
        """
        await self._relay.aclose()

    async def connect(self) -> None:
        """
        Find the relay and let it prove itself; start one where none runs and that is allowed.

        Raises:
            RelayUnavailable: There is none.
            ConfigError: The configuration of the relay that was started is wrong.
        """
        await self._relay.connect()

    # Calls ------------------------------------------------------------------------------------------------------------

    async def health(self) -> Mapping[str, Any]:
        """
        The relay's own word: `status` and `version`.
        """
        return _object(await self._relay.json("GET", "/health"))

    async def generate(self, request: Request, *, key: str | None = None) -> TaskView:
        """
        Submit; the answer says whether an earlier task was joined (`deduped`) or its result was found (`from_cache`).

        Args:
            request: What is wanted; the paths of its references must be absolute.
            key: The Idempotency-Key; None makes a new one, for this call's own repeats.

        Raises:
            RequestError: It cannot be done as asked.
            RelayUnavailable: The relay cannot be reached.
        """
        headers = {"Idempotency-Key": key or f"client-{secrets.token_hex(16)}"}
        return task_view(await self._relay.json("POST", "/generate", json=request_json(request), headers=headers))

    async def task(self, task_id: str) -> TaskView:
        """
        The task as it is now.

        Raises:
            UnknownTask: There is none.
        """
        return task_view(await self._relay.json("GET", f"/task/{_segment(task_id)}"))

    async def wait(self, task_id: str, *, seconds: int = WAIT_SECONDS, seen: State | None = None) -> TaskView:
        """
        The task once its state changes, or already differs from `seen`, or after so many seconds (at most 60).

        Raises:
            UnknownTask: There is none.
        """
        params = {"wait": str(seconds)} | ({"seen": seen.value} if seen else {})
        timeout = seconds + 10.0
        return task_view(await self._relay.json("GET", f"/task/{_segment(task_id)}", params=params, timeout=timeout))

    async def ended(self, task_id: str) -> TaskView:
        """
        The task once it has ended.

        Raises:
            UnknownTask: There is none.
        """
        task = await self.task(task_id)
        while not task.ended:
            task = await self.wait(task_id, seen=task.state)
        return task

    async def tasks(
        self,
        *,
        states: Sequence[State] = (),
        account: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> tuple[list[TaskView], str | None]:
        """
        Tasks, newest first, and the cursor of the next page (None: that was all).
        """
        params = {
            "state": ",".join(states) or None,
            "account": account,
            "limit": str(limit) if limit else None,
            "cursor": cursor,
        }
        told = _object(
            await self._relay.json("GET", "/tasks", params={name: value for name, value in params.items() if value})
        )
        found = told.get("tasks")
        views = [task_view(task) for task in found] if isinstance(found, list) else []
        following = told.get("next")
        return views, following if isinstance(following, str) else None

    async def cancel(self, task_id: str) -> TaskView:
        """
        Stop the task here and, where the provider can, there; its `cancel` says what came of it.

        Raises:
            UnknownTask: There is none.
        """
        return task_view(await self._relay.json("POST", f"/task/{_segment(task_id)}/cancel"))

    async def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> TaskView:
        """
        Settle an uncertain task.

        Raises:
            UnknownTask: There is none.
            WrongState: It is not uncertain.
        """
        body = {"action": action.value} | ({"remoteId": remote_id} if remote_id else {})
        return task_view(
            await self._relay.json("POST", f"/task/{_segment(task_id)}/resolve", json=body, repeatable=False)
        )

    async def accounts(self) -> list[Mapping[str, Any]]:
        """
        How each account stands (contract section 3).
        """
        told = await self._relay.json("GET", "/accounts")
        found = told.get("accounts") if isinstance(told, dict) else told
        return [_object(account) for account in found] if isinstance(found, list) else []

    async def resume(self, account: str) -> Mapping[str, Any]:
        """
        Lift an account's pause.

        Raises:
            UnknownAccount: There is none of that name.
        """
        return _object(await self._relay.json("POST", f"/accounts/{_segment(account)}/resume"))

    async def check(self, account: str) -> Mapping[str, Any]:
        """
        Whether an account's provider takes its key, found out without paying: `ok` is None where that cannot be told.

        Raises:
            UnknownAccount: There is none of that name.
        """
        return _object(await self._relay.json("POST", f"/accounts/{_segment(account)}/check", timeout=CHECK_SECONDS))

    async def stats(self) -> Mapping[str, Any]:
        """
        The lifetime counters and segment lengths (contract section 8).
        """
        return _object(await self._relay.json("GET", "/stats"))

    async def add_asset(self, path: str | Path) -> str:
        """
        Hand in a reference image; returns its asset id.

        Raises:
            UnsupportedMedia: It is no picture that can be read.
            TooLarge: It is over 64 MiB.
        """
        data = await asyncio.to_thread(Path(path).read_bytes)
        told = _object(
            await self._relay.json(
                "POST", "/assets", content=data, headers={"Content-Type": "application/octet-stream"}
            )
        )
        return str(told.get("asset"))

    async def cached(self) -> Mapping[str, Any]:
        """
        What the result cache holds: `results`, those used longest ago first, and the `bytes` of all.
        """
        return _object(await self._relay.json("GET", "/cache"))

    async def verify_cache(self) -> Mapping[str, Any]:
        """
        Forget every kept result whose files are not whole: `forgotten` lists their tasks' ids.
        """
        return _object(await self._relay.json("POST", "/cache/verify", timeout=CACHE_SECONDS))

    async def clear_cache(self) -> Mapping[str, Any]:
        """
        Delete every kept result; their tasks stay done. `cleared` says how many there were.
        """
        return _object(await self._relay.json("POST", "/cache/clear", timeout=CACHE_SECONDS))

    async def login_code(self) -> str:
        """
        A code that lets one browser in, once and within a minute: the query of `/login?code=…`.

        It must not stand where others can read it, in a command's arguments say.
        """
        return str(_object(await self._relay.json("POST", "/login/code")).get("code"))

    async def shutdown(self) -> None:
        """
        Ask the relay to stop: it accepts no more, finishes its writes and exits.
        """
        await self._relay.json("POST", "/shutdown", repeatable=False)

    # Streams ----------------------------------------------------------------------------------------------------------

    async def events(self, *, task_id: str | None = None, after: str | None = None) -> AsyncIterator[TaskEvent]:
        """
        Announcements as they come, of one task until it has ended or of all without an end; goes on by itself where a
        broken stream left off.

        A stream without `after` (the id of an earlier event) begins with every unended task; so does one that the relay
        no longer knows the id of.

        Raises:
            UnknownTask: There is no such task.
            RelayUnavailable: The relay is gone and none is to be started.
        """
        path = f"/task/{_segment(task_id)}/events" if task_id else "/events"
        attempt = 0
        while True:
            http = await self._relay.session()
            try:
                async with aclosing(_stream(http, path, after)) as stream:
                    async for event in stream:
                        if event is None:
                            return
                        attempt = 0
                        after = event.id or after
                        yield event
                        if task_id is not None and event.task.ended:
                            return
            except BROKEN as error:
                await self._relay.lost(http, attempt, error)
                attempt += 1
            else:
                # The relay ended the stream: this client was too slow, or the relay is leaving.
                await self._clock.sleep(0.2)

    async def save_result(self, task_id: str, path: str | Path, *, index: int = 0) -> Path:
        """
        Save one file of a done task: resumed after a break, checked, and complete before its name exists.

        Args:
            task_id: A task that is done.
            path: Where to; an existing file is replaced.
            index: Which of its files.

        Raises:
            WrongState: The task is not done.
            ResultGone: The result was evicted, or there is no file of that index.
            OSError: It cannot be written there.
        """
        task = await self.task(task_id)
        if task.state is not State.DONE:
            raise WrongState(f"Task {task.id} is {task.state}; only a done task has files.")
        file = next((file for file in task.files if file.index == index), None)
        if file is None:
            raise ResultGone(f"Task {task.id} has no file {index}.")
        target = Path(path)
        saving = Saving(target, task_id=task.id, file=file)
        attempt = 0
        while True:
            http = await self._relay.session()
            try:
                await _fetch(http, task.id, index, saving, etag=f'"{file.sha256}"')
            except BROKEN as error:
                await self._relay.lost(http, attempt, error)
                attempt += 1
            else:
                break
        saving.finish()
        return target


async def _stream(http: httpx2.AsyncClient, path: str, after: str | None) -> AsyncGenerator[TaskEvent | None, None]:
    """
    What one connection tells; None: everything there will ever be has been told.
    """
    headers = {"Last-Event-ID": after} if after else {}
    timeout = httpx2.Timeout(CALL_SECONDS, read=SILENCE_SECONDS)
    async with http.sse(path, headers=headers, timeout=timeout) as source:
        if source.response.status_code >= 400:
            raise error_from(source.response.status_code, await source.response.aread())
        if source.response.status_code == _NOTHING_MORE:
            yield None
            return
        # A reader keeps the newest id, so an event without its own repeats the one before.
        last: str | None = after
        async for event in source:
            if event.event != "task":
                continue
            fresh = event.id if event.id and event.id != last else None
            last = event.id or last
            yield TaskEvent(task=task_view(_object(json.loads(event.data))), id=fresh)


async def _fetch(http: httpx2.AsyncClient, task_id: str, index: int, saving: Saving, *, etag: str) -> None:
    start = saving.have_bytes
    headers = {"Range": f"bytes={start}-", "If-Range": etag} if start else {}
    path = f"/task/{_segment(task_id)}/result"
    async with http.stream("GET", path, params={"index": str(index)}, headers=headers) as response:
        if response.status_code >= 400:
            raise error_from(response.status_code, await response.aread())
        resumed = response.status_code == 206
        with saving.open(start=start if resumed else 0) as writer:
            async for chunk in response.aiter_bytes():
                writer.write(chunk)


def _segment(text: str) -> str:
    """
    One segment of a path.
    """
    from urllib.parse import quote  # noqa: PLC0415 rarely needed by those who only import the class

    return quote(text, safe="")


def _object(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise VidrelayError("The relay's answer is in a form that this version does not know.")
    return told
