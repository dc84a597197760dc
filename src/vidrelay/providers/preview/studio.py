"""
Answers `preview://` calls by rendering (fills port Transport).

Each job is one child process, so that the relay never loads what draws, a crash of a decoder costs one clip, and a
cancelled job stops at once. A clip of a few seconds is done sooner than a person can watch; `Pace` stretches it, so
that every stage of a task can be seen.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from vidrelay.core.clock import Clock
from vidrelay.core.errors import OutboundRefused, ReplyTooLarge, TransportError, UnknownAsset
from vidrelay.core.messages import HttpRequest
from vidrelay.core.network import Reply
from vidrelay.providers.preview import words
from vidrelay.providers.preview.job import RenderJob
from vidrelay.providers.preview.parameters import read_job
from vidrelay.providers.preview.words import Status

MAX_RENDER_SECONDS = 15 * 60.0
MAX_KEPT = 64
"""So many finished clips wait to be fetched; of more, the oldest is deleted."""
CHUNK_BYTES = 256 * 1024

logger = logging.getLogger(__name__)

_RANGE = re.compile(r"bytes=([0-9]{1,18})-", re.ASCII)
_LEFTOVER = re.compile(r"[A-Za-z0-9_-]{1,128}\.mp4", re.ASCII)
# What a Python and its fonts need; keys and everything else in the environment stay here.
_ENVIRONMENT = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "PYTHONPATH", "PYTHONHOME", "XDG_DATA_HOME",
    "SYSTEMROOT", "WINDIR", "LOCALAPPDATA", "USERPROFILE", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """
    The least time of each stage, in seconds: waiting for a slot, and being rendered.
    """

    queue_seconds: float = 1.5
    min_execute_seconds: float = 4.0


@dataclass(slots=True, kw_only=True)
class _Job:
    """
    One clip and how far it is. `work` is held here until it has ended.
    """

    id: str
    body: bytes
    render: RenderJob
    path: Path
    created_at: datetime
    created: float
    status: Status = Status.QUEUED
    drawn: float = 0.0
    started_at: datetime | None = None
    started: float = 0.0
    completed_at: datetime | None = None
    execute_seconds: float | None = None
    error: str | None = None
    size_bytes: int = 0
    etag: str = ""
    work: asyncio.Task[None] | None = field(default=None, repr=False)


class PreviewStudio:
    """
    The renderer's jobs, at most `slots` at work at once.
    """

    def __init__(
        self,
        *,
        scratch: Path,
        asset_path: Callable[[str], Path],
        clock: Clock,
        slots: int | None = None,
        pace: Pace | None = None,
        command: tuple[str, ...] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """
        Render into `scratch`, a directory of its own that is made (0700) and emptied of clips at first use.

        `asset_path` says where a reference image lies, `slots` None means one for each core. `command` runs one
        rendering; None: this Python and `render`. Of `environ` (None: the process's own) it is given what it needs.
        """
        self.slots = slots or os.cpu_count() or 1
        self._scratch, self._asset_path, self._clock = scratch, asset_path, clock
        self._pace = pace or Pace()
        self._command = command or (sys.executable, "-P", "-m", "vidrelay.providers.preview.render")
        self._environ = os.environ if environ is None else environ
        self._jobs: dict[str, _Job] = {}
        self._free = asyncio.Semaphore(self.slots)
        self._ready = False

    def send(self, request: HttpRequest, *, timeout: float) -> AbstractAsyncContextManager[Reply]:
        """
        Answer one call.

        Raises:
            OutboundRefused: The address is none of the renderer's.
            TransportError: The scratch directory cannot be used.
        """
        return self._exchange(request)

    async def aclose(self) -> None:
        """
        Stop every rendering and forget every job.
        """
        for job in list(self._jobs.values()):
            await self._forget(job)

    @asynccontextmanager
    async def _exchange(self, request: HttpRequest) -> AsyncIterator[Reply]:
        if not request.url.startswith(words.PLACE):
            raise OutboundRefused("The preview account reaches nothing but the built-in renderer.")
        if not self._ready:
            try:
                await asyncio.to_thread(_make_scratch, self._scratch)
            except OSError as exc:
                raise TransportError(f"The renderer has no room to work: {exc}", maybe_sent=False) from exc
            self._ready = True
        if request.url == words.LIMITS:
            yield _reply(request, 200, {"slots": self.slots})
            return
        name, _, rest = request.url.removeprefix(words.JOBS).partition("/")
        job = self._jobs.get(name)
        match request.method, rest:
            case "PUT", "" if words.is_job_id(name):
                await self._trim()
                yield self._put(request, name, job)
            case "GET", "" if job is not None:
                yield _reply(request, 200, self._told(job))
                if job.status is Status.FAILED:
                    await self._forget(job)
            case "DELETE", "" if job is not None:
                yield await self._delete(request, job)
            case "GET", "content" if job is not None and job.status is Status.DONE:
                async with self._content(request, job) as reply:
                    yield reply
            case _:
                yield _reply(request, 404, {"error": "there is no such job"})

    def _put(self, request: HttpRequest, name: str, job: _Job | None) -> Reply:
        body = request.body if isinstance(request.body, bytes) else b""
        if job is not None:
            if job.body != body:
                return _reply(request, 409, {"error": "that id belongs to another job"})
            return _reply(request, 200, self._told(job))
        try:
            render = read_job(json.loads(body), self._asset_path)
        except (ValueError, TypeError, AttributeError, UnknownAsset) as exc:
            return _reply(request, 422, {"error": str(exc)})
        job = _Job(
            id=name,
            body=body,
            render=render,
            path=self._scratch / f"{name}.mp4",
            created_at=self._clock.now(),
            created=self._clock.monotonic(),
        )
        self._jobs[name] = job
        # Not in a TaskGroup: the work outlives the call that asks for it. The job holds it, `_forget` awaits it.
        job.work = asyncio.get_running_loop().create_task(self._work(job))
        return _reply(request, 201, self._told(job))

    async def _trim(self) -> None:
        """
        Delete clips that nobody has come for.
        """
        done = [job for job in self._jobs.values() if job.status is Status.DONE]
        for job in done[: len(done) - MAX_KEPT] if len(done) > MAX_KEPT else ():
            await self._forget(job)

    async def _delete(self, request: HttpRequest, job: _Job) -> Reply:
        if job.status in (Status.DONE, Status.FAILED):
            return _reply(request, 409, {"error": f"the job is {job.status}"})
        await self._forget(job)
        return _reply(request, 200, {"id": job.id, "status": "cancelled"})

    async def _forget(self, job: _Job) -> None:
        """
        Stop the job's work and delete what it made.
        """
        self._jobs.pop(job.id, None)
        if job.work is not None:
            job.work.cancel()
            await asyncio.wait([job.work])
        await asyncio.to_thread(job.path.unlink, missing_ok=True)

    def _told(self, job: _Job) -> dict[str, Any]:
        told: dict[str, Any] = {
            "id": job.id,
            "status": job.status,
            "created_at": job.created_at.isoformat(),
            "started_at": job.started_at.isoformat() if job.started_at else None,
            "completed_at": job.completed_at.isoformat() if job.completed_at else None,
            "execute_seconds": job.execute_seconds,
            "error": job.error,
        }
        if job.status is Status.QUEUED:
            waiting = [other.id for other in self._jobs.values() if other.status is Status.QUEUED]
            return told | {"position": waiting.index(job.id)}
        if job.status is Status.RENDERING:
            progress, left = self._progress(job)
            return told | {"progress": round(progress, 4), "eta_seconds": left}
        return told

    def _progress(self, job: _Job) -> tuple[float, float | None]:
        """
        How much of the job is done, no faster than its pace, and how many seconds are left if that can be said.
        """
        spent = self._clock.monotonic() - job.started
        least = self._pace.min_execute_seconds
        paced = spent / least if least > 0 else 1.0
        whole = max(least, spent / job.drawn) if job.drawn > 0 else None
        return min(job.drawn, paced, 1.0), None if whole is None else round(max(0.0, whole - spent), 2)

    async def _work(self, job: _Job) -> None:
        await self._clock.sleep(self._pace.queue_seconds)
        async with self._free:
            job.status = Status.RENDERING
            job.started_at, job.started = self._clock.now(), self._clock.monotonic()
            try:
                async with asyncio.timeout(MAX_RENDER_SECONDS):
                    job.error = await self._render(job)
                if job.error is None:
                    job.size_bytes, job.etag = await asyncio.to_thread(_measure, job.path)
            except TimeoutError:
                job.error = f"it was not done after {MAX_RENDER_SECONDS / 60:g} minutes"
            except Exception as exc:
                # Whatever it is, the one who asks for the job must learn that it has ended.
                logger.exception("preview.failed job=%s", job.id)
                job.error = f"the renderer could not be run: {exc}"
            if job.error is None:
                await self._clock.sleep(job.started + self._pace.min_execute_seconds - self._clock.monotonic())
        job.completed_at = self._clock.now()
        job.execute_seconds = round(self._clock.monotonic() - job.started, 3)
        job.status = Status.DONE if job.error is None else Status.FAILED

    async def _render(self, job: _Job) -> str | None:
        """
        Run the child to its end; the reason why it failed, or None.
        """
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(job.path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={name: self._environ[name] for name in _ENVIRONMENT if name in self._environ},
            start_new_session=True,
        )
        last = ""
        try:
            if process.stdin is None or process.stdout is None:
                raise OSError("it has no pipes")
            with contextlib.suppress(ConnectionError):
                process.stdin.write(job.render.to_json().encode() + b"\n")
                await process.stdin.drain()
            async for line in process.stdout:
                told = _read_line(line)
                job.drawn = max(job.drawn, min(1.0, told.get("progress", 0.0)))
                last = told.get("error", last)
            status = await process.wait()
        finally:
            await _end(process)
        return None if status == 0 else last or f"the renderer ended with status {status}"

    @asynccontextmanager
    async def _content(self, request: HttpRequest, job: _Job) -> AsyncIterator[Reply]:
        """
        The clip, from where it was asked for; once all of it was taken, the job is forgotten.
        """
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = _RANGE.fullmatch(headers.get("range", ""))
        agreed = asked and headers.get("if-range", job.etag) == job.etag
        start = int(asked[1]) if asked and agreed else 0
        told = {"content-type": "video/mp4", "etag": job.etag, "accept-ranges": "bytes"}
        if start >= job.size_bytes:
            yield _reply(request, 416, {"error": "the clip is shorter"}, {"content-range": f"bytes */{job.size_bytes}"})
            return
        told["content-length"] = str(job.size_bytes - start)
        if agreed:
            told["content-range"] = f"bytes {start}-{job.size_bytes - 1}/{job.size_bytes}"
        reply = _FileReply(206 if agreed else 200, told, job.path, start, request.max_reply_bytes)
        yield reply
        if reply.taken:
            await self._forget(job)


class _Reply:
    """
    A short answer (fills port Reply).
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, max_bytes: int) -> None:
        self.status, self.headers = status, headers
        self._body, self._max_bytes = body, max_bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        if len(self._body) > self._max_bytes:
            raise ReplyTooLarge(maybe_sent=True)
        return self._body


class _FileReply:
    """
    A clip, read from the disk piece by piece; `taken` once its end was reached (fills port Reply).
    """

    def __init__(self, status: int, headers: Mapping[str, str], path: Path, start: int, max_bytes: int) -> None:
        self.status, self.headers, self.taken = status, headers, False
        self._path, self._start, self._max_bytes = path, start, max_bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            file = await asyncio.to_thread(self._path.open, "rb")
        except OSError as exc:
            raise TransportError(f"The clip is gone: {exc}", maybe_sent=True) from exc
        with file:
            file.seek(self._start)
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk
        self.taken = True

    async def read(self) -> bytes:
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > self._max_bytes:
                raise ReplyTooLarge(maybe_sent=True)
        return bytes(body)


def _reply(
    request: HttpRequest, status: int, fields: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Reply:
    body = json.dumps(fields).encode()
    told = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    return _Reply(status, told, body, request.max_reply_bytes)


def _read_line(line: bytes) -> dict[str, Any]:
    """
    One line of the renderer's; what is no line of its protocol is its last words, as an error.
    """
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"error": line.decode(errors="replace").strip()[:500]}


async def _end(process: asyncio.subprocess.Process) -> None:
    """
    Kill the child's whole group unless it has ended by itself, and give its pipes back.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


def _make_scratch(scratch: Path) -> None:
    """
    Make the directory, and delete the clips of an earlier life.
    """
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    if scratch.is_symlink():
        raise NotADirectoryError(f"{scratch} is a link")
    for entry in os.scandir(scratch):
        if _LEFTOVER.fullmatch(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            Path(entry.path).unlink(missing_ok=True)


def _measure(path: Path) -> tuple[int, str]:
    """
    The file's bytes, and a strong ETag made of its content.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
        return file.tell(), f'"{digest.hexdigest()[:32]}"'
