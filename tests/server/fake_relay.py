"""
A relay in memory, for trying the HTTP face alone: it moves tasks only when a test says so.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vidrelay.core.adapter import Prepared, Quota, Scope
from vidrelay.core.errors import (
    IdempotencyConflict,
    ResultGone,
    UnknownAccount,
    UnknownAsset,
    UnknownTask,
    UnsupportedMedia,
    WrongState,
)
from vidrelay.core.lifecycle import (
    Abandoned,
    Accepted,
    CancelRequested,
    Event,
    Found,
    Lost,
    Ready,
    ResubmitRequested,
    Saved,
    Started,
    advance,
)
from vidrelay.core.media import ANY_SIZE, check_taken, sniff
from vidrelay.core.ports import Admission, CachedResult, How, Pause, ToldQuota
from vidrelay.core.task import (
    Asset,
    CancelOutcome,
    FileRef,
    Problem,
    RemoteFile,
    Request,
    Resolution,
    Standing,
    State,
    Task,
)
from vidrelay.scheduler.face import (
    ANYONE,
    AccountCheck,
    AccountStatus,
    Announcement,
    DoorWay,
    Sender,
    Spread,
    Stats,
    WindowStatus,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
LOST = Lost(
    problem=Problem(code="answer_lost", title="Answer lost", detail="It may be charged."),
    place_until=NOW + timedelta(minutes=30),
)

FITTING_BYTES = 200
"""A larger picture is a scaled copy for every provider behind this relay."""


def kind_of(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG"):
        return "image/png"
    kind = sniff(data)
    return None if kind is None else kind.media_type


class FakeRelay:
    """
    Fills `RelayFace`. Tasks with the same prompt are twins; `move` applies an event; `tell` announces progress.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks: dict[str, Task] = {}
        self.entries: list[Task] = []
        self.standings: dict[str, Standing] = {}
        self.submitted: list[tuple[Request, Sender]] = []
        self.assets: list[bytes] = []
        self.media: Mapping[str, int] = ANY_SIZE
        self.keys: dict[str, str] = {}
        self.watchers: list[asyncio.Queue[Announcement | None]] = []
        self.changed = asyncio.Event()
        self.waiting = asyncio.Event()
        self.ways: dict[str, DoorWay] = {}
        self.prepared: list[tuple[Prepared, dict[str, Asset]]] = []
        self.stale: set[str] = set()
        self.paused = True
        self.key_is_taken: bool | None = True
        self.queue_length = 100

    # What tests do

    def make(self, prompt: str = "a fox", **fields: object) -> Task:
        number = len(self.tasks) + 1
        task = Task(
            id=f"t{number}",
            account="main",
            provider="openai",
            window="*",
            model_version="model-a",
            request=Request(prompt=prompt),
            parameters={"prompt": prompt},
            fingerprint=hashlib.sha256(prompt.encode()).hexdigest(),
            created_at=NOW,
            updated_at=NOW,
            seq=number,
        )
        return self._commit(replace(task, **fields))

    def move(self, task_id: str, *events: Event) -> Task:
        task = self.tasks[task_id]
        for event in events:
            task = self._commit(advance(task, event, NOW))
        return task

    def finish(self, task_id: str, content: bytes = b"0123456789", media_type: str = "video/mp4") -> Task:
        name = f"{task_id}-0.mp4"
        (self.folder / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        file = FileRef(index=0, path=name, size_bytes=len(content), sha256=digest, media_type=media_type)
        return self.move(
            task_id,
            Started(submission_key="k"),
            Accepted(remote_id="r1"),
            Ready(outputs=(RemoteFile(url="https://x/y"),)),
            Saved(files=(file,)),
        )

    def tell(self, task_id: str) -> None:
        self._announce(Announcement(task=self.tasks[task_id]))

    def _commit(self, task: Task) -> Task:
        task = replace(task, event_id=len(self.entries) + 1)
        self.tasks[task.id] = task
        self.entries.append(task)
        self._announce(Announcement(task=task, event_id=task.event_id))
        self.changed.set()
        self.changed = asyncio.Event()
        return task

    def _announce(self, announcement: Announcement) -> None:
        for queue in list(self.watchers):
            if queue.qsize() < self.queue_length:
                queue.put_nowait(announcement)
            else:
                self.watchers.remove(queue)
                queue.put_nowait(None)

    # What the server asks

    async def submit(self, request: Request, sender: Sender = ANYONE) -> Admission:
        self.submitted.append((request, sender))
        key = sender.client_key
        if key is not None and key in self.keys:
            task = self.tasks[self.keys[key]]
            if task.request.prompt != request.prompt:
                raise IdempotencyConflict
            return Admission(task=task, how=How.REPEATED)
        if request.account not in (None, "main"):
            raise UnknownAccount(f"no account is named {request.account!r}")
        for task in self.tasks.values():
            if task.request.prompt == request.prompt and not request.force_refresh:
                return Admission(task=task, how=How.CACHED if task.ended else How.JOINED)
        task = self.make(request.prompt, request=request)
        if key is not None:
            self.keys[key] = task.id
        return Admission(task=task, how=How.CREATED)

    async def submit_prepared(
        self, request: Request, prepared: Prepared, pictures: Mapping[str, Asset], sender: Sender = ANYONE
    ) -> Admission:
        self.prepared.append((prepared, dict(pictures)))
        admission = await self.submit(request, sender)
        if admission.how is How.CREATED:
            task = replace(admission.task, parameters=prepared.parameters, model_version=prepared.model)
            self.tasks[task.id] = task
            return Admission(task=task, how=How.CREATED)
        return admission

    def doors(self) -> dict[str, DoorWay]:
        return self.ways

    def is_stale(self, task: Task) -> bool:
        return task.id in self.stale

    async def forget(self, task_id: str) -> Task:
        task = await self.get(task_id)
        if not task.ended:
            return (await self.cancel(task_id))[0]
        for file in task.files:
            self.file_path(file).unlink(missing_ok=True)
        return task

    async def asset(self, asset_id: str) -> Asset:
        for data in self.assets:
            if asset_id == f"sha256:{hashlib.sha256(data).hexdigest()}":
                return self._asset(data)
        raise UnknownAsset

    async def fitted(self, asset: Asset, *, account: str) -> Asset:
        return replace(asset, id=asset.id[:-4] + "c0de") if asset.size_bytes > FITTING_BYTES else asset

    async def get(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise UnknownTask
        return self.tasks[task_id]

    def place(self, task: Task) -> Standing:
        return self.standing(task)

    def standing(self, task: Task) -> Standing:
        return self.standings.get(task.id, Standing())

    async def wait(self, task_id: str, *, seconds: float, seen: State | None = None) -> Task:
        self.waiting.set()
        try:
            async with asyncio.timeout(seconds):
                while (task := await self.get(task_id)).state is seen and not task.ended:
                    await self.changed.wait()
        except TimeoutError:
            pass
        return await self.get(task_id)

    async def cancel(self, task_id: str, *, unless_begun: bool = False) -> tuple[Task, CancelOutcome]:
        task = await self.get(task_id)
        if task.ended:
            return task, CancelOutcome.TOO_LATE
        moved = self.move(task_id, CancelRequested())
        return moved, moved.cancel or CancelOutcome.PENDING

    async def resolve(self, task_id: str, action: Resolution, *, remote_id: str | None = None) -> Task:
        task = await self.get(task_id)
        if task.state is not State.UNCERTAIN:
            raise WrongState(f"the task is {task.state}, not uncertain")
        match action:
            case Resolution.RETRY:
                return self.move(task_id, ResubmitRequested())
            case Resolution.ADOPT:
                return self.move(task_id, Found(remote_id=remote_id or ""))
            case Resolution.ABANDON:
                return self.move(task_id, Abandoned())

    async def page(
        self, *, states: frozenset[State] | None, account: str | None, limit: int, before: int | None
    ) -> list[Task]:
        found = [
            task
            for task in sorted(self.tasks.values(), key=lambda task: -task.seq)
            if (states is None or task.state in states)
            and (account is None or task.account == account)
            and (before is None or task.seq < before)
        ]
        return found[:limit]

    @contextmanager
    def watch(self) -> Iterator[asyncio.Queue[Announcement | None]]:
        queue: asyncio.Queue[Announcement | None] = asyncio.Queue()
        self.watchers.append(queue)
        try:
            yield queue
        finally:
            if queue in self.watchers:
                self.watchers.remove(queue)

    async def log(self, *, after: int, limit: int, task_id: str | None = None) -> list[Task] | None:
        if after > len(self.entries):
            return None
        entries = [task for task in self.entries if task.event_id > after and task_id in (None, task.id)]
        return entries[:limit]

    def live(self) -> list[Task]:
        return [task for task in self.tasks.values() if not task.ended]

    def accounts(self) -> list[AccountStatus]:
        pause = Pause(scope=Scope.CREATES, reason="balance", detail="top it up", until=NOW) if self.paused else None
        windows = (WindowStatus(name="*", limit=2, source="configured", running=1, queued=3),)
        return [
            AccountStatus(
                name="main",
                provider="openai",
                windows=windows,
                pause=pause,
                is_default=True,
                key_from="the file key",
                quota=ToldQuota(account="main", quota=Quota(left=7.5, unit="USD"), told_at=NOW),
            )
        ]

    async def resume(self, name: str) -> AccountStatus:
        if name != "main":
            raise UnknownAccount(f"no account is named {name!r}")
        self.paused = False
        return self.accounts()[0]

    async def check(self, name: str) -> AccountCheck:
        if name != "main":
            raise UnknownAccount(f"no account is named {name!r}")
        return AccountCheck(account=name, ok=self.key_is_taken, detail="7 credits left")

    async def stats(self) -> Stats:
        return Stats(
            counters={"submits": 3, "remoteCreates": 1},
            saved_clips=2,
            segments={"model-a": {"execute": Spread(median=1.5, p90=3.0)}},
        )

    async def add_asset(self, chunks: AsyncIterator[bytes], *, account: str | None = None) -> Asset:
        data = b"".join([chunk async for chunk in chunks])
        kind = kind_of(data)
        if kind != "image/png":
            if kind is None or account is None:
                raise UnsupportedMedia
            check_taken(kind, len(data), self.media, who="theirs")
        self.assets.append(data)
        return self._asset(data)

    def _asset(self, data: bytes) -> Asset:
        return Asset(
            id=f"sha256:{hashlib.sha256(data).hexdigest()}",
            pixels="p1",
            width=4,
            height=3,
            size_bytes=len(data),
            media_type=kind_of(data) or "",
        )

    async def result_file(self, task_id: str, index: int) -> tuple[Path, FileRef]:
        task = await self.get(task_id)
        if task.state is not State.DONE:
            raise WrongState(f"the task is {task.state}, so it has no result")
        if index >= len(task.files):
            raise UnknownTask("no such file")
        file = task.files[index]
        if not self.file_path(file).exists():
            raise ResultGone
        return self.file_path(file), file

    def file_path(self, file: FileRef) -> Path:
        return self.folder / file.path

    async def cached(self, *, limit: int) -> tuple[list[CachedResult], int]:
        results = [
            CachedResult(
                task_id=task.id,
                fingerprint=task.fingerprint,
                files=task.files,
                size_bytes=sum(file.size_bytes for file in task.files),
                saved_at=NOW,
                used_at=NOW,
            )
            for task in self.tasks.values()
            if task.files and all(self.file_path(file).exists() for file in task.files)
        ]
        return results[:limit], sum(result.size_bytes for result in results)

    async def verify_cache(self) -> list[str]:
        kept = {result.task_id for result in (await self.cached(limit=1000))[0]}
        return [task.id for task in self.tasks.values() if task.files and task.id not in kept]

    async def clear_cache(self) -> int:
        results, _ = await self.cached(limit=1000)
        for result in results:
            for file in result.files:
                self.file_path(file).unlink()
        return len(results)
